//! An audited run: a command on the CPUs that are measured on, with the audit around it.

mod child;
mod migrations;
mod signals;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::PathBuf;

use bench_profile::cpus::CpuSet;
use serde::Serialize;

use crate::audit::{self, Audit, AuditError, Note};
use crate::root::Root;

/// What to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The program's file.
    pub file: PathBuf,
    /// Its arguments, its name first.
    pub argv: Vec<OsString>,
    /// The CPUs that are watched.
    pub cpus: CpuSet,
    /// Whether the command is kept on them. Without it, interrupts are told and judged by nobody.
    pub pin: bool,
}

/// How the command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// By itself, with this status.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// How the command ended.
    pub ended: Ended,
    /// What reached the CPUs meanwhile.
    pub audit: Audit,
    /// Whether the interrupts are judged.
    pub judged: bool,
}

/// The status that says "interference": a harness repeats the run.
pub const INTERFERENCE: u8 = 125;

/// Why the command did not run, or was not audited.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The counters cannot be read. Nothing was started, or the run counts for nothing.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// The kernel refused the CPUs.
    #[error("the command cannot be kept on CPUs {cpus}: {error}")]
    Affinity {
        /// The set.
        cpus: String,
        /// The kernel's answer.
        #[source]
        error: nix::Error,
    },
    /// The program cannot be executed.
    #[error("{}: {error}", file.display())]
    Start {
        /// The program.
        file: PathBuf,
        /// The kernel's answer.
        #[source]
        error: std::io::Error,
    },
    /// Waiting for it failed.
    #[error("cannot wait for the command: {0}")]
    Wait(#[from] std::io::Error),
}

impl Report {
    /// The exit status. A command that a signal ended was broken off, and a broken-off run is not worth a retry:
    /// that comes before interference, which comes before the command's own status.
    pub fn status(&self) -> u8 {
        match self.ended {
            Ended::Signalled(signal) => u8::try_from(128 + signal).unwrap_or(u8::MAX),
            _ if self.judged && !self.audit.interference.is_empty() => INTERFERENCE,
            Ended::Exited(status) => u8::try_from(status).unwrap_or(1),
        }
    }
}

/// Runs the command to its end. Signals that are sent to this process go to it.
///
/// Call it while the process has no other threads: signals are held back from the thread that calls, and another
/// one would take them.
///
/// # Errors
///
/// When the command was not started, or its run could not be audited.
pub fn run(root: &Root, order: &Order) -> Result<Report, RunError> {
    let signals = signals::Signals::block()?;
    let usage = child::Usage::of_children();
    let before = audit::look(root, &order.cpus)?;
    let mut started = child::start(order, signals.mask_before)?;
    let ended = signals.until_it_ends(&mut started.child)?;
    let after = audit::look(root, &order.cpus)?;
    let mut audit = audit::compare(&before, &after, &order.cpus);
    audit.notes.push(usage.since());
    audit.notes.push(migrations::note(started.migrations));
    if !order.pin {
        audit.notes.push(Note::new(
            "not-judged",
            "nothing is pinned and interrupts are not judged: this profile shares its CPUs with housekeeping",
        ));
    }
    Ok(Report {
        ended,
        audit,
        judged: order.pin,
    })
}
