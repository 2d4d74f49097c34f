//! What happens to the engine.

use std::sync::Arc;

use crate::action::{Failure, Placement};
use crate::holds::{HoldEvent, Terms};
use crate::id::ProcId;

/// Everything that the engine is told.
#[derive(Clone, Debug)]
pub enum Event {
    /// A periodic look at what is watched.
    Sample(Sample),
    /// A watched process executes another program, told by the kernel.
    Exec(Exec),
    /// A caller asks for a placement (`Attach`) or a route (`Route`). The answer carries `ticket`.
    Request(Request),
    /// A caller asks for the end of a workload. The answer carries `ticket`.
    Release {
        /// Names the caller's call in the answer.
        ticket: Ticket,
        /// The scope of the workload.
        unit: String,
    },
    /// A workload that was found at start, or that the CLI made without us.
    Adopted(Workload),
    /// A route or placement that an action asked for has ended.
    Moved {
        /// The root that the action named.
        root: ProcId,
        /// The new workload, or why there is none.
        outcome: Result<Workload, Failure>,
    },
    /// A move that an action asked for was not begun, since [`crate::engine::Engine::is_overtaken`]
    /// or [`crate::engine::Engine::is_withheld`].
    Overtaken {
        /// The root that the action named.
        root: ProcId,
    },
    /// Something about holds.
    Hold(HoldEvent),
    /// A recovery that an action asked for was not begun, since [`crate::engine::Engine::is_kept`].
    Kept {
        /// The scope that the action named.
        unit: String,
    },
    /// A recovery that an action asked for has ended.
    Recovered {
        /// The scope that the action named.
        unit: String,
        /// Every process that was brought back; on failure the workload stays where it is.
        outcome: Result<Vec<ProcId>, Failure>,
    },
    /// The scope of a workload is gone: its last process ended, or somebody stopped it.
    Gone {
        /// The scope.
        unit: String,
    },
}

/// A call that waits for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// A caller's wish.
#[derive(Clone, Debug)]
pub struct Request {
    /// Names the caller's call in the answer.
    pub ticket: Ticket,
    /// Root first; never empty.
    pub processes: Vec<ProcId>,
    /// The class's name as the caller wrote it.
    pub class: String,
    /// Placed (`Attach`) or routed (`Route`).
    pub placement: Placement,
    /// What the caller said of the reason, printable; may be empty.
    pub reason: String,
    /// The workload that the caller itself is in, if any: routed work cannot promote itself.
    pub caller_unit: Option<String>,
    /// The workload is released when this ends; none: by a release alone.
    pub lease: Option<Terms>,
}

/// One look at everything that is watched, and at our workloads.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// Processes in the watched units and below that were read, in no order. One that earlier samples
    /// showed and that is neither here nor in `ended` used no CPU since it was last shown.
    pub processes: Vec<Process>,
    /// Processes that earlier samples showed and that are no longer there, or no longer watched.
    pub ended: Vec<ProcId>,
    /// Each workload's scope that still exists, of placed ones too. A workload that three samples in a
    /// row lack is forgotten.
    pub workloads: Vec<Usage>,
}

/// A watched process.
#[derive(Clone, Debug)]
pub struct Process {
    /// Who it is.
    pub id: ProcId,
    /// Its parent's PID.
    pub ppid: u32,
    /// Its control group, relative to the cgroup mount.
    pub cgroup: Arc<str>,
    /// CPU time used so far by all of its threads, user and system, in microseconds.
    pub cpu_usec: u64,
    /// CPU time of its ended children, of theirs and so on, as far as they were waited for, likewise.
    pub reaped_usec: u64,
    /// It leads its session: a terminal's shell, or what was started apart from its parent.
    pub leads_session: bool,
    /// It has a controlling terminal: somebody started it, or what started it, in one.
    pub has_terminal: bool,
    /// Its arguments; empty for a zombie. Shared between samples while the program stays the same.
    pub argv: Arc<[Box<str>]>,
}

/// A process that executes another program, as it is when that was heard of.
#[derive(Clone, Debug)]
pub struct Exec {
    /// The process, then its watched ancestors, parent first. What lies in between may be missing.
    pub line: Vec<Process>,
    /// Its ancestors outside of what is watched: such as one that a move in flight took away already.
    pub elsewhere: Vec<ProcId>,
}

/// A workload's CPU use.
#[derive(Clone, Debug)]
pub struct Usage {
    /// Its scope.
    pub unit: String,
    /// `usage_usec` of the scope's `cpu.stat`, in microseconds.
    pub usage_usec: u64,
}

/// A process tree in a scope of ours, as the engine knows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Its scope, which is its identity.
    pub unit: String,
    /// Its class.
    pub class: String,
    /// Its root process.
    pub root: ProcId,
    /// Routed (comes back when calm) or placed (stays).
    pub placement: Placement,
}
