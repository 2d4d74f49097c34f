//! What the engine asks for.

use std::sync::Arc;

use crate::event::Ticket;
use crate::id::ProcId;
use crate::rules::RuleName;

/// What should follow an event.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Move a tree into a class; report [`crate::event::Event::Moved`].
    Move(Move),
    /// Bring a workload back; report [`crate::event::Event::Recovered`].
    Recover {
        /// Its scope.
        unit: String,
        /// Why.
        cause: RecoverCause,
        /// The call that waits for it, if any.
        ticket: Option<Ticket>,
    },
    /// Answer a call that wanted a hold: this is its cookie.
    Held {
        /// The call.
        ticket: Ticket,
        /// The cookie.
        id: u64,
    },
    /// Answer a call that ended holds.
    Unheld {
        /// The call.
        ticket: Ticket,
        /// How many.
        ended: u32,
    },
    /// Answer a call that is refused without a move.
    Refuse {
        /// The call.
        ticket: Ticket,
        /// Why.
        failure: Failure,
    },
}

/// A tree to move.
#[derive(Clone, Debug, PartialEq)]
pub struct Move {
    /// Root first; the rest only when a caller named several.
    pub processes: Vec<ProcId>,
    /// The class to move into.
    pub class: String,
    /// Routed or placed.
    pub placement: Placement,
    /// Why.
    pub why: Why,
    /// The call that waits for it, if any.
    pub ticket: Option<Ticket>,
}

impl Move {
    /// The root of the tree.
    pub fn root(&self) -> ProcId {
        self.processes[0]
    }
}

/// Whether a workload comes back by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Placement {
    /// By detection or by `Route`: it comes back when it calms down.
    Routed,
    /// The person's word: only a release ends it.
    Placed,
}

/// Why a tree is moved.
#[derive(Clone, Debug, PartialEq)]
pub enum Why {
    /// A rule named its command.
    KnownHeavy {
        /// Which.
        rule: RuleName,
        /// CPU at the last sample, in percent of one logical CPU, where there were two.
        cpu: Option<f64>,
    },
    /// CPU at or above the threshold.
    SustainedCpu {
        /// Not of the process alone but of the tree below it, whose processes live too briefly.
        tree: bool,
        /// CPU at the last sample, in percent of one logical CPU.
        cpu: f64,
        /// The threshold, likewise.
        threshold: f64,
        /// Samples in a row at or above it.
        hot_samples: u32,
    },
    /// Far more CPU than its command usually uses.
    Adaptive {
        /// The command, such as `git:gc`.
        command: Arc<str>,
        /// CPU at the last sample, in percent of one logical CPU.
        cpu: f64,
        /// How unusual that is, from 0 to 1.
        score: f64,
        /// The score at which a process is routed.
        threshold: f64,
        /// What the command used on average before, in percent of one logical CPU.
        mean: f64,
        /// Samples behind that.
        samples: u64,
    },
    /// A caller asked for it.
    Asked {
        /// What it said, printable; may be empty.
        reason: String,
    },
}

/// Why a workload is brought back.
#[derive(Clone, Debug, PartialEq)]
pub enum RecoverCause {
    /// It calmed down.
    Calm {
        /// CPU of the whole workload at the last sample, in percent of one logical CPU.
        cpu: f64,
        /// Samples in a row below the threshold.
        samples: u32,
    },
    /// A caller released it.
    Released,
    /// The recovery of an earlier guard was cut off half-way.
    Resumed,
    /// It was placed for as long as a lease, which is over.
    LeaseEnded,
    /// A process in it was exempted from routing.
    Exempted,
}

/// Why something was not done. The daemon gives each its error name on the bus.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Failure {
    /// It is gone.
    #[error("{0}")]
    NoSuchProcess(String),
    /// It is one that stays where it is.
    #[error("{0}")]
    NeverMoved(crate::eligibility::NeverMoved),
    /// Another user's, or beyond a user manager.
    #[error("{0}")]
    OutOfReach(String),
    /// No such class.
    #[error("{0}")]
    UnknownClass(String),
    /// No such workload.
    #[error("{0}")]
    NoSuchWorkload(String),
    /// No such hold.
    #[error("{0}")]
    NoSuchHold(String),
    /// Too many.
    #[error("{0}")]
    LimitExceeded(String),
    /// systemd did not finish in time.
    #[error("{0}")]
    Timeout(String),
    /// systemd refused, or a success of it did not hold when read back.
    #[error("{0}")]
    SystemdRefused(String),
}
