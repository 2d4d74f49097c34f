//! Starts the command where it belongs.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::thread;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::SigSet;

use super::migrations::Counter;
use super::{Order, RunError};
use crate::affinity;
use crate::audit::Note;

/// A command that runs.
pub struct Started {
    /// The process.
    pub child: Child,
    /// Counts how often its tree changes CPUs; or why nobody does.
    pub migrations: nix::Result<Counter>,
}

/// Starts the command.
///
/// A thread of its own takes the CPUs first and then starts it: affinity and counter are inherited, from before
/// the first instruction on, and this process keeps its own. `mask` is the signals that the command has blocked.
pub fn start(order: &Order, mask: SigSet) -> Result<Started, RunError> {
    thread::scope(|scope| {
        scope
            .spawn(|| {
                if order.pin {
                    affinity::set(&order.cpus).map_err(|error| RunError::Affinity {
                        cpus: order.cpus.to_string(),
                        error,
                    })?;
                }
                let migrations = Counter::open();
                let (name, arguments) = order.argv.split_first().expect("an order has a name");
                let mut command = Command::new(&order.file);
                command.arg0(name).args(arguments);
                // SAFETY: it runs between fork and exec, and pthread_sigmask(3) is all that it calls, which
                // is async-signal-safe; the set is copied, nothing is allocated.
                unsafe {
                    command.pre_exec(move || Ok(mask.thread_set_mask()?));
                }
                let child = command.spawn().map_err(|error| RunError::Start {
                    file: order.file.clone(),
                    error,
                })?;
                Ok(Started { child, migrations })
            })
            .join()
            .expect("starting a command does not panic")
    })
}

/// What the children of this process that have ended, and theirs, took (getrusage(2)).
pub struct Usage {
    voluntary: i64,
    involuntary: i64,
}

impl Usage {
    /// Until now.
    pub fn of_children() -> Usage {
        getrusage(UsageWho::RUSAGE_CHILDREN).map_or(
            // Only an unknown `who` fails.
            Usage {
                voluntary: 0,
                involuntary: 0,
            },
            |usage| Usage {
                voluntary: usage.voluntary_context_switches(),
                involuntary: usage.involuntary_context_switches(),
            },
        )
    }

    /// Since then, as a remark.
    pub fn since(&self) -> Note {
        let now = Usage::of_children();
        Note::new(
            "context-switches",
            format!(
                "context switches of the command's tree: {} voluntary, {} involuntary",
                now.voluntary - self.voluntary,
                now.involuntary - self.involuntary
            ),
        )
    }
}
