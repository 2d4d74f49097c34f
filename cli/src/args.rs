//! What can be typed. The help texts are the reference: the man page and the completions come from here.

mod bench;
mod holds;
mod insight;
mod remote;
mod status;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand, ValueEnum};
use clap_complete::ArgValueCandidates;
use guard_policy::holds::timespan;

use crate::complete;

pub use bench::{BenchCommand, EntriesAction, PlaceArgs};
pub use holds::{HoldCommand, TermsArgs};
pub use insight::InsightCommand;
pub use remote::{RemoteArgs, Target};
pub use status::StatusArgs;

const EXIT_CODES: &str = "\
Exit status:
  0    done
  1    refused or failed; the message says why
  2    wrong usage
  69   no bus, no systemd or no guard to talk to
  77   not permitted: another user's process, or one out of reach
  126  (run, protect) the command exists but cannot be executed
  127  (run, protect) the command was not found
Otherwise run and protect end with the command's own status, since the
command takes their place.";

const EXPLAIN_JSON: &str = "\
JSON, one object:
  verdict        routed, placed, moving, due, counting, calm, resting,
                 held, excluded, never-moved, out-of-reach, not-watched
  sentences      [text]: the same in words
  pid, command, control_group
  workload       its object, where there is one
  rule           FILE:LINE and name of the rule that names its command
  hold           number of the hold that keeps it
  throttled_usec how long its budget held its workload up, over all CPUs
  cpu, threshold, samples, samples_needed
                 the counter that applies: CPU at the last sample and
                 the threshold in percent of one CPU, samples in a row
                 beyond it and how many are needed
Keys without a value are absent. Keys are kept; new ones may be added.";

const CONFIG_JSON: &str = "\
JSON: a list of {key, value, origin}, in which value is what TOML would write. Keys are kept; new ones \
may be added.";

const STATS_HELP: &str = "\
With adaptive routing on, each sample of every watched process is scored by what its command used before: \
0.65 for a whole CPU, and up to 0.35 more the more unusual that is. See [adaptive] in guard.toml.";

const STATS_JSON: &str = "\
JSON, one object:
  enabled        whether adaptive routing is on
  threshold      the score at which a process is routed
  min_samples    samples of a command before it is scored
  watched        processes that each sample scores
  commands       [{command, samples, mean, deviation, score}]
                 mean and deviation in percent of one logical CPU,
                 score null while too little is known
Keys are kept; new ones may be added.";

const WATCH_HELP: &str = "\
In the slices that are watched, heavy work is routed. The guard keeps the list in a file of its own among the \
settings (guard.toml.d/50-watch.toml) and puts it in force at once; no other file is changed.

app.slice holds what a desktop starts. With it, builds in any terminal are routed, by name or by their CPU \
use; terminals, editors, browsers and other apps stay where they are, and so do their own helpers, whatever they use.

JSON: a list of {unit, processes}: the slices and how many processes each holds. Keys are kept; new ones may \
be added.";

const QUOTA_JSON: &str = "\
JSON, one object; quotas in percent of one logical CPU, null for none:
  slice          the heavy class's slice
  quota          what systemd has, whoever set it
  enforced       what the kernel has (cpu.max)
  minimum, maximum   bounds of the settings
  dynamic        whether the settings have a controller move the quota
  policy         step or protected
  control        static, auto, frozen, set or yielded
  signals        [{name, state, value, age_sec, note}]
                 state is read, pending, absent or broken
  last_decision  the controller's, in words
  last_change    by whomever, in words
  changes        since the guard started
Keys are kept; new ones may be added.";

const PROTECT_HELP: &str = "\
The command replaces this program: the same PID, terminal and exit status. All that it starts is watched, and \
routed away when it is heavy. A standard stream that is closed is /dev/null for the command.

When the guard cannot be reached, systemd itself is asked for the scope and a warning is printed: the budget \
is the slice's, so it holds either way. Without systemd the command is not started.";

const RUN_HELP: &str = "\
The command replaces this program: the same PID, terminal and exit status. Without a command an interactive \
shell ($SHELL) starts there, and all that is started from it stays there. Called by the name run-workload, \
this program is `workload-guard run`. A standard stream that is closed is /dev/null for the command.

When the guard cannot be reached, systemd itself is asked for the scope and a warning is printed: the budget \
is the slice's, so it holds either way. Without systemd the command is not started.";

const COMPLETIONS_HELP: &str = "\
An installation has put it where the shell looks. Beside words of this program the script completes PIDs, \
workloads, holds and classes: it asks the guard of this session where one runs, and starts none.";

/// A shell that completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    /// The GNU shell.
    Bash,
    /// The friendly one.
    Fish,
    /// The Z shell.
    Zsh,
}

impl Shell {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Shell::Bash => "bash",
            Shell::Fish => "fish",
            Shell::Zsh => "zsh",
        }
    }
}

fn processes() -> ArgValueCandidates {
    ArgValueCandidates::new(complete::processes)
}

fn workloads() -> ArgValueCandidates {
    ArgValueCandidates::new(complete::workloads)
}

fn classes() -> ArgValueCandidates {
    ArgValueCandidates::new(complete::classes)
}

fn slices() -> ArgValueCandidates {
    ArgValueCandidates::new(complete::slices)
}

fn pages() -> ArgValueCandidates {
    ArgValueCandidates::new(complete::pages)
}

/// Keeps heavy work from taking the machine away from what must stay responsive.
#[derive(Debug, Parser)]
#[command(name = "workload-guard", version, after_help = EXIT_CODES, arg_required_else_help = true)]
pub struct Cli {
    /// Whose guard is asked.
    #[command(flatten)]
    pub remote: RemoteArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show the guard's state, what it watches, and the workloads
    #[command(after_help = status::HELP)]
    Status(StatusArgs),
    /// Tell why a process is where it is, and what would move it or bring it back
    #[command(after_help = EXPLAIN_JSON)]
    Explain {
        /// The process
        #[arg(value_parser = clap::value_parser!(u32).range(1..), add = processes())]
        pid: u32,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show what adaptive routing learned of each command
    #[command(long_about = STATS_HELP, after_help = STATS_JSON)]
    Stats {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// What happened, and why
    #[command(flatten)]
    Insight(InsightCommand),
    /// Run a command in the protected class
    #[command(after_help = PROTECT_HELP)]
    Protect {
        /// The command with its arguments
        #[arg(required = true, trailing_var_arg = true, value_name = "CMD", value_hint = clap::ValueHint::CommandWithArguments)]
        command: Vec<OsString>,
    },
    /// Run a command, or a shell, in the heavy class
    #[command(after_help = RUN_HELP)]
    Run {
        /// The command with its arguments; an interactive shell when there is none
        #[arg(trailing_var_arg = true, value_name = "CMD", value_hint = clap::ValueHint::CommandWithArguments)]
        command: Vec<OsString>,
    },
    /// Put running processes, with their descendants, into a class until they are released, or the time is over
    Attach {
        /// The processes; the first is the root of the new workload
        #[arg(required = true, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..), add = processes())]
        pids: Vec<u32>,
        /// The class: heavy, protected, or another one of the settings
        #[arg(long, add = classes())]
        class: String,
        /// Why, for status
        #[arg(long)]
        reason: Option<String>,
        /// Release them after this time: 90s, 30m, 2h
        #[arg(long = "for", value_name = "TIME", value_parser = timespan::parse)]
        span: Option<Duration>,
        /// Stay, and release them when this program ends
        #[arg(long)]
        lease: bool,
    },
    /// Move a running process as detection would: it comes back when it calms down
    Route {
        /// The root of the process tree
        #[arg(value_parser = clap::value_parser!(u32).range(1..), add = processes())]
        pid: u32,
        /// The class to move it into
        #[arg(long, default_value = "heavy", add = classes())]
        class: String,
    },
    /// Bring a workload back to where it came from
    Release {
        /// Any process of the workload
        #[arg(value_parser = clap::value_parser!(u32).range(1..), add = workloads())]
        pid: u32,
    },
    /// What the guard leaves alone for the time being
    #[command(flatten)]
    Hold(HoldCommand),
    /// Show or set the heavy class's CPU quota, and what its controller sees
    #[command(after_help = QUOTA_JSON, args_conflicts_with_subcommands = true)]
    Quota {
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Something other than showing it
        #[command(subcommand)]
        action: Option<QuotaAction>,
    },
    /// Show every setting, its value and where the value came from; or check settings files
    #[command(after_help = CONFIG_JSON, args_conflicts_with_subcommands = true)]
    Config {
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Something other than showing them
        #[command(subcommand)]
        action: Option<ConfigAction>,
    },
    /// Show which slices are watched, watch more of them, or some no longer
    #[command(after_help = WATCH_HELP)]
    Watch {
        /// Slices such as app.slice, with everything nested in them
        #[arg(value_name = "UNIT", add = slices())]
        units: Vec<String>,
        /// Watch them no longer
        #[arg(long, requires = "units")]
        remove: bool,
        /// Show what is watched, as without a UNIT
        #[arg(long, conflicts_with_all = ["units", "remove"])]
        list: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Have the guard read its settings again
    Reload,
    /// Work with the rules that name heavy commands
    Rules {
        /// What to do with them
        #[command(subcommand)]
        action: RulesAction,
    },
    /// Bring this machine into a known state for benchmarks, assert it, measure in it
    Bench {
        /// What to do
        #[command(subcommand)]
        action: BenchCommand,
    },
    /// Print the version
    Version,
    /// Print a completion script
    #[command(after_help = COMPLETIONS_HELP)]
    Completions {
        /// For this shell
        shell: Shell,
    },
    /// Print a page of the manual (troff): `workload-guard man | man -l -`
    Man {
        /// Its name, as `--list` prints it
        #[arg(value_name = "PAGE", default_value = "workload-guard.1", add = pages())]
        page: String,
        /// Print the names of all pages instead
        #[arg(long)]
        list: bool,
    },
}

/// `workload-guard quota …`
#[derive(Debug, Subcommand)]
pub enum QuotaAction {
    /// Set it until `quota auto`, or until the guard stops
    Set {
        /// Percent of one logical CPU, such as 250%, within quota.min and quota.max of the settings
        #[arg(value_name = "PERCENT", value_parser = percent)]
        percent: u32,
        /// Why, for `quota` and the journal
        #[arg(long)]
        reason: Option<String>,
    },
    /// Take back what was set: the slice's own value again, or the controller's where the settings have one
    Auto,
}

/// `250%` or `250`.
fn percent(text: &str) -> Result<u32, String> {
    let number = text.strip_suffix('%').unwrap_or(text);
    match number.parse() {
        Ok(percent) if percent > 0 => Ok(percent),
        _ => Err("a whole number of percent of one logical CPU is wanted, such as 250%".into()),
    }
}

/// `workload-guard config …`
#[derive(Debug, Subcommand)]
pub enum ConfigAction {
    /// Check settings files without the guard; without a FILE those that it would read. A FILE in a folder
    /// `rules.d` is checked as rules
    Check {
        /// Settings files (TOML)
        #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
        files: Vec<PathBuf>,
    },
    /// Print as a settings file what the workload-guard.env of the Python original sets
    Import {
        /// That file
        #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
        file: PathBuf,
    },
}

/// `workload-guard rules …`
#[derive(Debug, Subcommand)]
pub enum RulesAction {
    /// Say which rule a command would match, without the guard and without running it; status 1 when none does
    Test {
        /// The command with its arguments
        #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
        command: Vec<OsString>,
    },
}

/// That a command does nothing elsewhere.
pub fn works_here_alone(target: &Target) -> clap::Error {
    let way = match target {
        Target::Host { destination, .. } => format!("ssh {destination} workload-guard …"),
        Target::Machine { user, name } => {
            format!("systemd-run -M {user}@{name} --user -P workload-guard …")
        }
    };
    Cli::command().error(
        ErrorKind::ArgumentConflict,
        format!(
            "--host and --machine ask another session's guard; this command works on the machine that it runs on. \
             To run it there: {way}"
        ),
    )
}

/// The help of `status` behind its options.
#[cfg(test)]
pub fn status_help() -> &'static str {
    status::HELP
}

/// Names that this program is called by beside its own, and the subcommands that they stand for.
const NAMES: &[(&str, &[&str])] = &[
    ("run-workload", &["run"]),
    ("bench-prep", &["bench", "apply"]),
    ("bench-profile-run", &["bench", "run"]),
    ("bench-profile-status", &["bench", "status"]),
];

/// The command line that was meant: under the name `run-workload` it is `workload-guard run`, and so on.
pub fn by_name(argv: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut argv: Vec<OsString> = argv.into_iter().collect();
    let called = argv.first().map(PathBuf::from);
    let name = called.as_deref().and_then(|path| path.file_name());
    if let Some((_, words)) = NAMES.iter().find(|(known, _)| name == Some(known.as_ref())) {
        argv[0] = "workload-guard".into();
        argv.splice(1..1, words.iter().map(OsString::from));
    }
    argv
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &[&str]) -> Result<Command, clap::Error> {
        Cli::try_parse_from(by_name(line.iter().map(OsString::from))).map(|cli| cli.command)
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn options_after_the_command_belong_to_it() {
        let Ok(Command::Run { command }) =
            parse(&["workload-guard", "run", "make", "-j8", "--help"])
        else {
            panic!("not a run");
        };
        assert_eq!(command, ["make", "-j8", "--help"]);
        let Ok(Command::Protect { command }) =
            parse(&["workload-guard", "protect", "--", "vim", "-R"])
        else {
            panic!("not a protect");
        };
        assert_eq!(command, ["vim", "-R"]);
    }

    #[test]
    fn run_workload_is_run() {
        let Ok(Command::Run { command }) =
            parse(&["/usr/bin/run-workload", "cargo", "test", "--", "--json"])
        else {
            panic!("not a run");
        };
        assert_eq!(command, ["cargo", "test", "--", "--json"]);
        assert!(
            matches!(parse(&["run-workload"]), Ok(Command::Run { command }) if command.is_empty())
        );
    }

    #[test]
    fn the_bench_tools_are_known_by_their_older_names() {
        let expected = |line: &[&str]| match parse(line) {
            Ok(Command::Bench {
                action: BenchCommand::Status { expect, word, .. },
            }) => Ok(expect.or(word).map(|profile| profile.name())),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error.exit_code()),
        };
        assert_eq!(
            expected(&["/usr/bin/bench-profile-status", "expect-multi-core"]),
            Ok(Some("multi-core"))
        );
        assert_eq!(
            expected(&["workload-guard", "bench", "status", "--expect", "unlimited"]),
            Ok(Some("unlimited"))
        );
        assert_eq!(expected(&["bench-profile-status"]), Ok(None));
        for wrong in ["expect-turbo", "multi-core", "--frob"] {
            assert_eq!(expected(&["bench-profile-status", wrong]), Err(2));
        }
        let Ok(Command::Bench {
            action: BenchCommand::Run { command, .. },
        }) = parse(&["bench-profile-run", "cargo", "bench", "--cpus", "1"])
        else {
            panic!("not a run");
        };
        assert_eq!(command, ["cargo", "bench", "--cpus", "1"]);
        let applied = parse(&["bench-prep", "--boost=off", "--keep-housekeeping-cores"]);
        assert!(matches!(
            applied,
            Ok(Command::Bench {
                action: BenchCommand::Apply {
                    profile: None,
                    boost: Some(false),
                    smt: None,
                    keep_housekeeping_cores: true,
                    json: false,
                },
            })
        ));
        for wrong in ["--boost=maybe", "--smt", "turbo"] {
            assert_eq!(parse(&["bench-prep", wrong]).unwrap_err().exit_code(), 2);
        }
    }

    #[test]
    fn pid_0_is_not_a_process_that_one_can_name() {
        for line in [
            &["workload-guard", "attach", "0", "--class", "heavy"][..],
            &["workload-guard", "route", "0"],
            &["workload-guard", "release", "0"],
            &["workload-guard", "exempt", "0"],
            &["workload-guard", "pin", "0"],
            &["workload-guard", "unhold", "0"],
            &["workload-guard", "pause", "--for", "soon"],
        ] {
            assert_eq!(parse(line).unwrap_err().exit_code(), 2);
        }
    }

    #[test]
    fn a_quota_is_a_whole_percentage() {
        let set = |text| match parse(&["workload-guard", "quota", "set", text]) {
            Ok(Command::Quota {
                action: Some(QuotaAction::Set { percent, .. }),
                ..
            }) => Some(percent),
            _ => None,
        };
        assert_eq!((set("250%"), set("250")), (Some(250), Some(250)));
        for bad in ["0", "-5", "2.5", "250%%", "%", "1e3", "99999999999"] {
            assert_eq!(set(bad), None, "{bad}");
        }
    }

    #[test]
    fn protect_wants_a_command() {
        assert_eq!(
            parse(&["workload-guard", "protect"])
                .unwrap_err()
                .exit_code(),
            2
        );
    }
}
