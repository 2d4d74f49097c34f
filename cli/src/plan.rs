//! What is to be done: the command line with every default filled in. Pure.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use crate::args::{
    BenchCommand, Command, ConfigAction, HoldCommand, QuotaAction, RulesAction, Shell, StatusArgs,
    TermsArgs,
};
use crate::render::format::Format;

mod insight;

pub use insight::InsightCall;

/// The class of `run`.
pub const HEAVY: &str = "heavy";
/// The class of `protect`.
pub const PROTECTED: &str = "protected";

/// One thing to do, by what it needs.
#[derive(Debug, PartialEq)]
pub enum Plan {
    /// Needs nothing but files.
    Offline(Offline),
    /// One question or request to the guard.
    Call(Call),
    /// Moves this process into a class and becomes the command.
    Place(Placement),
    /// Prepares, asserts or measures this machine; it has exit statuses of its own.
    Bench(BenchCommand),
}

/// What needs no bus.
#[derive(Debug, PartialEq)]
pub enum Offline {
    /// Check these settings files; when there are none, those that the guard would read.
    CheckConfig(Vec<PathBuf>),
    /// What this environment file sets, as a settings file.
    ImportConfig(PathBuf),
    /// Which rule matches this command?
    TestRule(Vec<String>),
    /// Print the version.
    Version,
    /// Print completions.
    Completions(Shell),
    /// Print a page of the manual.
    Man(String),
    /// Print the names of all pages.
    ManPages,
}

/// What is asked of the guard.
#[derive(Debug, PartialEq)]
pub enum Call {
    /// Everything that `status` shows.
    Status {
        /// As JSON.
        json: bool,
        /// And what happens from then on.
        follow: bool,
        /// As this line.
        format: Option<Format>,
    },
    /// Why a process is where it is.
    Explain {
        /// The process.
        pid: u32,
        /// As JSON.
        json: bool,
    },
    /// What was learned of commands.
    Stats {
        /// As JSON.
        json: bool,
    },
    /// Every setting.
    Config {
        /// As JSON.
        json: bool,
    },
    /// What is watched.
    Watched {
        /// As JSON.
        json: bool,
    },
    /// Watch more, or some no longer.
    Watch {
        /// Slices.
        units: Vec<String>,
        /// More, or no longer.
        add: bool,
        /// As JSON.
        json: bool,
    },
    /// Everything about the heavy class's quota.
    Quota {
        /// As JSON.
        json: bool,
    },
    /// Set it.
    SetQuota {
        /// Percent of one logical CPU.
        percent: u32,
        /// Why.
        reason: Option<String>,
    },
    /// Take back what was set.
    ResetQuota,
    /// Read the settings again.
    Reload,
    /// Put processes into a class.
    Attach {
        /// The processes.
        pids: Vec<u32>,
        /// The class.
        class: String,
        /// Why and how long.
        terms: Terms,
    },
    /// Route one as detection would.
    Route {
        /// The root of the tree.
        pid: u32,
        /// The class.
        class: String,
    },
    /// Bring one back.
    Release {
        /// A process of the workload.
        pid: u32,
    },
    /// About holds.
    Hold(HoldCall),
    /// About what happened.
    Insight(InsightCall),
}

/// What is asked about holds.
#[derive(Debug, PartialEq)]
pub enum HoldCall {
    /// Pause routing.
    Pause(Terms),
    /// Leave a tree alone.
    Exempt(u32, Terms),
    /// Keep the workload of a process in its class.
    Pin(u32, Terms),
    /// End one.
    Unhold(u64),
    /// End every pause.
    Resume,
    /// List them.
    List {
        /// As JSON.
        json: bool,
    },
}

/// Why something is held or placed, and how long.
#[derive(Debug, Default, PartialEq)]
pub struct Terms {
    /// Why.
    pub reason: Option<String>,
    /// Seconds after which it ends.
    pub seconds: Option<u32>,
    /// It ends with this program.
    pub lease: bool,
}

impl Terms {
    fn new(span: Option<Duration>, words: &[String]) -> Terms {
        Terms {
            reason: (!words.is_empty()).then(|| words.join(" ")),
            seconds: span.map(whole_seconds),
            lease: false,
        }
    }
}

/// Rounded up: shorter than asked for would be wrong.
fn whole_seconds(span: Duration) -> u32 {
    let seconds = span.as_secs() + u64::from(span.subsec_nanos() > 0);
    u32::try_from(seconds).unwrap_or(u32::MAX)
}

impl Call {
    /// How long the guard takes for it by its nature.
    pub fn takes(&self) -> Duration {
        match self {
            Call::Insight(InsightCall::Profile { duration, .. }) => *duration,
            _ => Duration::ZERO,
        }
    }

    /// Whether the answer is to be printed as JSON.
    pub fn json(&self) -> bool {
        if let Call::Insight(call) = self {
            return call.json();
        }
        matches!(
            self,
            Call::Status { json: true, .. }
                | Call::Explain { json: true, .. }
                | Call::Stats { json: true }
                | Call::Config { json: true }
                | Call::Watched { json: true }
                | Call::Watch { json: true, .. }
                | Call::Hold(HoldCall::List { json: true })
                | Call::Quota { json: true }
        )
    }

    /// Whether this program stays on the bus after the answer.
    pub fn stays(&self) -> bool {
        matches!(self, Call::Attach { terms, .. } if terms.lease)
    }
}

/// A command that takes the place of this process, inside a class.
#[derive(Debug, PartialEq)]
pub struct Placement {
    /// The class.
    pub class: &'static str,
    /// What to become: the program first. Never empty.
    pub argv: Vec<OsString>,
    /// Why, for status.
    pub reason: &'static str,
    /// Whether it is a shell that nobody named.
    pub shell: bool,
}

/// Fills in the defaults. `shell` is the value of `$SHELL`.
pub fn plan(command: Command, shell: Option<&OsStr>) -> Plan {
    match command {
        Command::Status(StatusArgs {
            json,
            follow,
            format,
        }) => Plan::Call(Call::Status {
            json,
            follow,
            format,
        }),
        Command::Explain { pid, json } => Plan::Call(Call::Explain { pid, json }),
        Command::Stats { json } => Plan::Call(Call::Stats { json }),
        Command::Insight(command) => Plan::Call(Call::Insight(insight::plan(command))),
        Command::Config { json, action: None } => Plan::Call(Call::Config { json }),
        Command::Config {
            action: Some(ConfigAction::Check { files }),
            ..
        } => Plan::Offline(Offline::CheckConfig(files)),
        Command::Config {
            action: Some(ConfigAction::Import { file }),
            ..
        } => Plan::Offline(Offline::ImportConfig(file)),
        Command::Watch { units, json, .. } if units.is_empty() => {
            Plan::Call(Call::Watched { json })
        }
        Command::Watch {
            units,
            remove,
            json,
            ..
        } => Plan::Call(Call::Watch {
            units,
            add: !remove,
            json,
        }),
        Command::Quota { json, action } => Plan::Call(match action {
            None => Call::Quota { json },
            Some(QuotaAction::Set { percent, reason }) => Call::SetQuota { percent, reason },
            Some(QuotaAction::Auto) => Call::ResetQuota,
        }),
        Command::Reload => Plan::Call(Call::Reload),
        Command::Attach {
            pids,
            class,
            reason,
            span,
            lease,
        } => Plan::Call(Call::Attach {
            pids,
            class,
            terms: Terms {
                reason,
                seconds: span.map(whole_seconds),
                lease,
            },
        }),
        Command::Hold(command) => Plan::Call(Call::Hold(hold(command))),
        Command::Route { pid, class } => Plan::Call(Call::Route { pid, class }),
        Command::Release { pid } => Plan::Call(Call::Release { pid }),
        Command::Protect { command } => Plan::Place(Placement {
            class: PROTECTED,
            argv: command,
            reason: "workload-guard protect",
            shell: false,
        }),
        Command::Run { command } if command.is_empty() => Plan::Place(Placement {
            class: HEAVY,
            argv: vec![
                shell
                    .filter(|s| !s.is_empty())
                    .unwrap_or("/bin/sh".as_ref())
                    .to_owned(),
            ],
            reason: "workload-guard run, a shell",
            shell: true,
        }),
        Command::Run { command } => Plan::Place(Placement {
            class: HEAVY,
            argv: command,
            reason: "workload-guard run",
            shell: false,
        }),
        Command::Rules {
            action: RulesAction::Test { command },
        } => Plan::Offline(Offline::TestRule(
            // As the guard reads them from /proc: a byte that is not UTF-8 is shown as a replacement character.
            command
                .iter()
                .map(|arg| arg.to_string_lossy().into_owned())
                .collect(),
        )),
        Command::Bench { action } => Plan::Bench(action),
        Command::Version => Plan::Offline(Offline::Version),
        Command::Completions { shell } => Plan::Offline(Offline::Completions(shell)),
        Command::Man { list: true, .. } => Plan::Offline(Offline::ManPages),
        Command::Man { page, .. } => Plan::Offline(Offline::Man(page)),
    }
}

fn hold(command: HoldCommand) -> HoldCall {
    let terms = |args: TermsArgs| Terms::new(args.span, &args.reason);
    match command {
        HoldCommand::Pause { terms: args } => HoldCall::Pause(terms(args)),
        HoldCommand::Exempt { pid, terms: args } => HoldCall::Exempt(pid, terms(args)),
        HoldCommand::Pin { pid, terms: args } => HoldCall::Pin(pid, terms(args)),
        HoldCommand::Unhold { id } => HoldCall::Unhold(id),
        HoldCommand::Resume => HoldCall::Resume,
        HoldCommand::Holds { json } => HoldCall::List { json },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_rounded_up_and_the_words_are_one_reason() {
        let words = ["a".to_owned(), "meeting".to_owned()];
        assert_eq!(
            Terms::new(Some(Duration::from_millis(1500)), &words),
            Terms {
                reason: Some("a meeting".into()),
                seconds: Some(2),
                lease: false
            }
        );
        assert_eq!(Terms::new(None, &[]), Terms::default());
    }

    #[test]
    fn run_without_a_command_is_the_persons_shell() {
        let place = |shell| match plan(Command::Run { command: vec![] }, shell) {
            Plan::Place(placement) => placement,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            place(Some("/usr/bin/fish".as_ref())).argv,
            ["/usr/bin/fish"]
        );
        assert_eq!(place(None).argv, ["/bin/sh"]);
        assert_eq!(place(Some("".as_ref())).argv, ["/bin/sh"]);
        assert!(place(None).shell);
    }

    #[test]
    fn a_named_command_is_kept_as_it_is() {
        let command = vec!["make".into(), "-j8".into()];
        let Plan::Place(placement) = plan(Command::Protect { command }, None) else {
            panic!("not a placement")
        };
        assert_eq!((placement.class, placement.shell), (PROTECTED, false));
        assert_eq!(placement.argv, ["make", "-j8"]);
    }
}
