//! What can be typed about holds.

use std::time::Duration;

use clap::{Args, Subcommand};
use clap_complete::ArgValueCandidates;
use guard_policy::holds::timespan;

use crate::complete;

const HOLDS_HELP: &str = "\
Holds end with their time, which goes on while the machine is suspended,
with the process that was named, or by `unhold`; those that a program took
for as long as it is on the bus end with it. A restart of the guard ends
none of them.";

const HOLDS_JSON: &str = "\
JSON: a list of {id, kind, pid, subject, unit, owner, owner_pid,
owner_command, reason, since_usec, until_usec}
  kind        pause, exempt, pin or lease
  pid         process that was named, 0 for a pause and a lease
  subject     command of what is held
  unit        the workload's scope, of a pin and a lease
  owner       unique bus name that the hold ends with, or empty
  until_usec  microseconds since 1970, 0 when there is no end
Keys are kept; new ones may be added.";

/// Why, and how long.
#[derive(Debug, Default, Args)]
pub struct TermsArgs {
    /// Until then; without it there is no end. As systemd writes it: 90s, 30m, 2h, `1h 30min`
    #[arg(long = "for", value_name = "TIME", value_parser = timespan::parse)]
    pub span: Option<Duration>,
    /// Why, for status
    #[arg(value_name = "REASON")]
    pub reason: Vec<String>,
}

/// The subcommands about holds.
#[derive(Debug, Subcommand)]
pub enum HoldCommand {
    /// Have the guard route nothing and bring nothing back by itself; what you ask for is still done
    #[command(after_help = HOLDS_HELP)]
    Pause {
        /// Why, and how long
        #[command(flatten)]
        terms: TermsArgs,
    },
    /// End every pause
    Resume,
    /// Never route a process and its descendants by detection; what was routed of them comes back at once
    #[command(after_help = HOLDS_HELP)]
    Exempt {
        /// The root of the process tree
        #[arg(value_parser = clap::value_parser!(u32).range(1..), add = ArgValueCandidates::new(complete::processes))]
        pid: u32,
        /// Why, and how long
        #[command(flatten)]
        terms: TermsArgs,
    },
    /// Keep a workload in its class, however calm it gets
    #[command(after_help = HOLDS_HELP)]
    Pin {
        /// A process of the workload
        #[arg(value_parser = clap::value_parser!(u32).range(1..), add = ArgValueCandidates::new(complete::workloads))]
        pid: u32,
        /// Why, and how long
        #[command(flatten)]
        terms: TermsArgs,
    },
    /// End a hold; the end of a lease releases its workload
    Unhold {
        /// Its number, as `holds` and `status` show it
        #[arg(value_name = "HOLD", value_parser = clap::value_parser!(u64).range(1..), add = ArgValueCandidates::new(complete::holds))]
        id: u64,
    },
    /// List what is held, by whom and for how long
    #[command(after_help = HOLDS_JSON)]
    Holds {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}
