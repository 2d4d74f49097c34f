//! What can be typed behind `workload-guard bench`.

use std::ffi::OsString;
use std::path::PathBuf;

use bench_profile::cpus::CpuSet;
use bench_profile::profile::Profile;
use bench_system::entries::Loader;
use clap::{Args, Subcommand};
use clap_complete::ArgValueCandidates;

use crate::complete;

const CANARY_HELP: &str = "\
One spinner is timed alone, then one for each CPU at once. Where work spreads, all of them together take about as \
long as one. Exit status 0 when it does, 1 when it does not or nothing could be measured.";

const CANARY_JSON: &str = "\
JSON, one object:
  cpus, workers, parallelism, divisor  what was asked
  iterations                           of each worker
  one_ms, all_ms                       one worker alone, all at once
  allowed, seen                        CPUs: let by the kernel, run on
  effective, floor                     what was reached, what had to be
  passed                               whether work spreads
Keys are kept; new ones may be added.";

const RUN_HELP: &str = "\
The command runs on the CPUs of the booted profile, and the interrupts of devices that reach those CPUs meanwhile \
are counted. In the unlimited profile nothing is pinned and nothing is judged. With --cpus no profile is needed: \
these CPUs are used and watched, and no state is asserted. What the audit saw goes to standard error.

Exit status:
  the command's own, or 128 + N when signal N ended it
  125  interrupts reached the CPUs: the measurement is invalid, try again
  126  the command cannot be executed
  127  the command was not found
  1    the machine is not in the state of a profile, with each reason
Signals that are sent to this program go to the command.";

const PLAN_HELP: &str = "\
Prints a machine file for this machine, with the reason for each choice, and writes nothing. Review it, then put it \
at /etc/bench-profile/machine.toml.";

const PLAN_JSON: &str = "\
JSON, one object:
  machine  the proposal, as `bench config --json` has it
  reasons  {key: [text]}: why each key has its value
  notes    [text]: what this machine cannot do, or what should be looked at
Keys are kept; new ones may be added.";

const STATUS_HELP: &str = "\
Without --expect this is a report: it always ends with status 0, on any boot, and what is short of a profile is a \
WARN, so that its output can be kept beside results. With --expect (or the word expect-PROFILE) it ends with 0, or \
with 1 and each reason. An unknown argument ends with 2. In multi-core and unlimited it takes a second, since the \
canary runs.";

const STATUS_JSON: &str = "\
JSON, one object:
  booted       the profile of this boot, or null
  expected     the profile that was compared with, or null
  ok           whether nothing falls short
  environment  [{name, value}]
  checks       [{id, level, text}], level: ok, note or differs
  canary       as `bench canary --json` has it, or null
Keys are kept; new ones may be added.";

const APPLY_HELP: &str = "\
bench-prepd does it, on the system bus; other users than root need polkit's word. What was there is saved before \
anything changes. Exit status 0 means that each setting was read back as asked, or is not offered here, and in \
multi-core that the canary passed; 1 names what differs, 69 is no service, 77 not permitted.";

const RESTORE_HELP: &str = "\
Every setting gets the bytes that it had before the first apply, also after a crash. Where nothing was applied, it \
does nothing. A reboot does the same.";

const KNOBS_JSON: &str = "\
JSON, one object:
  applied  the profile that is applied now, or null
  knobs    [{id, place, requested, effective, original, verdict, reason}]
           verdict: ok, unsupported or overridden
Keys are kept; new ones may be added.";

const ENTRIES_HELP: &str = "\
Each kernel entry of this machine that boot.kernel_entry_match in the machine file names gets one entry for each \
profile, in the files of the boot loader: Limine, systemd-boot or GRUB. None of them becomes the default.";

const PREVIEW_HELP: &str = "\
Prints what regenerate would change as a unified diff, and writes nothing. Without root the service answers, and the \
diff has no unchanged lines around a change. Notes go to standard error.";

const REGENERATE_HELP: &str = "\
bench-prepd does it, on the system bus; other users than root need polkit's word. Files that are as they should be \
are not touched; what is replaced is kept in /var/backups/bench-profile first. With --hook or --root this program \
does it itself, without a bus. Exit status 1 names what stands in the way, and the file is as it was.";

const PREVIEW_JSON: &str = "\
JSON, one object:
  loader   limine, systemd-boot or grub
  diff     as without --json
  notes    [text]
Keys are kept; new ones may be added.";

const REGENERATE_JSON: &str = "\
JSON, one object:
  changed  [{path, action}], action: written or removed
  notes    [text]
Keys are kept; new ones may be added.";

const REBOOT_HELP: &str = "\
The boot loader is told to start the profile's entry once; the boot after that is a normal one again. systemd-boot is \
told through logind, GRUB through its environment block where it can take that back by itself. Limine cannot be told: \
choose the entry in its menu. Exit status 1 says why it cannot be done; nothing is restarted then.";

const COMPARE_HELP: &str = "\
Reports are those of `bench status --json`. Exit status 0 when nothing differs that bears on results, 1 with each \
item that does: kernel, command line, microcode, topology, mitigations, clocks, the machine file and so on. The \
host's name and when its kernel was built are told, and decide nothing; so is what neither report knows.";

const COMPARE_JSON: &str = "\
JSON, one object:
  comparable   whether nothing differs that bears on results
  differing    [{name, first, second}], null where a report lacks the item
  incidental   likewise, of what bears on no result
  unknown      [name]: what neither knows
Keys are kept; new ones may be added.";

/// `workload-guard bench …`
#[derive(Clone, Debug, PartialEq, Subcommand)]
pub enum BenchCommand {
    /// Report the state of this machine, or assert that of a profile
    #[command(after_help = STATUS_HELP, after_long_help = STATUS_JSON)]
    Status {
        /// Assert the state of this profile
        #[arg(long, value_name = "PROFILE", add = ArgValueCandidates::new(complete::profiles))]
        expect: Option<Profile>,
        /// The same in one word
        #[arg(value_name = "expect-PROFILE", value_parser = expectation, conflicts_with = "expect")]
        word: Option<Profile>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Tell whether results that were taken beside two reports are comparable
    #[command(after_help = COMPARE_HELP, after_long_help = COMPARE_JSON)]
    Compare {
        /// A report of `bench status --json`
        #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
        first: PathBuf,
        /// Another one; else this machine as it is
        #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
        second: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Bring this machine into the state of a profile, as far as that can be done without a boot
    #[command(after_help = APPLY_HELP, after_long_help = KNOBS_JSON)]
    Apply {
        /// single-core, multi-core or unlimited; else the profile of this boot
        #[arg(add = ArgValueCandidates::new(complete::profiles))]
        profile: Option<Profile>,
        /// Clocks above the base clock, otherwise than the machine file has it
        #[arg(long, value_name = "on|off", value_parser = switch)]
        boost: Option<bool>,
        /// The second threads of the cores, otherwise than the machine file has it
        #[arg(long, value_name = "on|off", value_parser = switch)]
        smt: Option<bool>,
        /// In multi-core, take no housekeeping CPU offline
        #[arg(long)]
        keep_housekeeping_cores: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Put back what apply changed
    #[command(after_help = RESTORE_HELP, after_long_help = KNOBS_JSON)]
    Restore {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Run a command on the profile's CPUs and audit the interrupts around it
    #[command(after_help = RUN_HELP)]
    Run {
        /// Use and watch these CPUs, such as 8-15, without a profile and without asserting a state
        #[arg(long, value_name = "LIST")]
        cpus: Option<CpuSet>,
        /// The command with its arguments
        #[arg(required = true, trailing_var_arg = true, value_name = "CMD", value_hint = clap::ValueHint::CommandWithArguments)]
        command: Vec<OsString>,
    },
    /// Prove that work spreads across the benchmark CPUs
    #[command(after_help = CANARY_HELP, after_long_help = CANARY_JSON)]
    Canary {
        /// Over these CPUs, such as 8-15; else the machine file's, else all that this program may use
        #[arg(long, value_name = "LIST")]
        cpus: Option<CpuSet>,
        /// The floor is the available parallelism divided by this
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=8192))]
        divisor: Option<u32>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Propose a machine file for this machine
    #[command(after_help = PLAN_HELP, after_long_help = PLAN_JSON)]
    Plan {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the machine file with the derived masks
    Config {
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Print instead a machine file that says what the machine.conf of the older tools says
        #[arg(long, value_name = "FILE", conflicts_with = "json", value_hint = clap::ValueHint::FilePath)]
        import: Option<PathBuf>,
    },
    /// Print the profile that this boot is in; status 1 on a normal boot
    Which,
    /// Keep an entry for each profile in the boot loader's menu
    #[command(after_help = ENTRIES_HELP)]
    BootEntries {
        /// What to do
        #[command(subcommand)]
        action: EntriesAction,
    },
    /// Restart this machine into a profile, once
    #[command(after_help = REBOOT_HELP)]
    Reboot {
        /// The profile of the next boot alone
        #[arg(long, value_name = "PROFILE", required = true, add = ArgValueCandidates::new(complete::profiles))]
        once: Profile,
    },
}

/// `workload-guard bench boot-entries …`
#[derive(Clone, Debug, PartialEq, Subcommand)]
pub enum EntriesAction {
    /// Show what regenerate would change, as a diff
    #[command(after_help = PREVIEW_HELP, after_long_help = PREVIEW_JSON)]
    Preview {
        /// Where
        #[command(flatten)]
        place: PlaceArgs,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Write the entries
    #[command(after_help = REGENERATE_HELP, after_long_help = REGENERATE_JSON)]
    Regenerate {
        /// Where
        #[command(flatten)]
        place: PlaceArgs,
        /// Without the bus, as hooks of boot loaders and of kernel installations call it; without a machine file there
        /// is nothing to do
        #[arg(long)]
        hook: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// For /etc/grub.d: turn the entries of 10_linux, on standard input, into those of the profiles
    #[command(hide = true)]
    PrintGrub {
        /// Of the system below this folder
        #[arg(long, value_name = "DIR")]
        root: Option<PathBuf>,
    },
}

/// Which loader's files.
#[derive(Args, Clone, Debug, PartialEq)]
pub struct PlaceArgs {
    /// limine, systemd-boot or grub; else the one that booted this machine
    #[arg(long)]
    pub loader: Option<Loader>,
    /// The boot partition; else /boot, /efi and /boot/efi are looked at
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub boot: Option<PathBuf>,
    /// Of the system below this folder
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub root: Option<PathBuf>,
}

impl PlaceArgs {
    /// Whether something else is meant than the service would find.
    pub fn is_particular(&self) -> bool {
        self.loader.is_some() || self.boot.is_some() || self.root.is_some()
    }
}

fn switch(word: &str) -> Result<bool, &'static str> {
    match word {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("on or off is known here"),
    }
}

/// `expect-multi-core` and the like, as the older tools had it.
fn expectation(word: &str) -> Result<Profile, String> {
    let name = word
        .strip_prefix("expect-")
        .ok_or("expect-single-core, expect-multi-core or expect-unlimited is known here")?;
    name.parse()
        .map_err(|error: bench_profile::profile::UnknownProfile| error.to_string())
}
