//! How much CPU the heavy slice may have: pure controllers over a [`Telemetry`].
//!
//! [`Controller::decide`] takes what was measured and answers a [`Decision`], in numbers and in words.
//! Telemetry that is missing, stale or malformed freezes the quota: it never raises or lowers anything.
//! Quotas are percent of one logical CPU, here and everywhere in this module.

mod aimd;
mod controller;
mod decision;
mod demand;
mod gradient;
mod protected;
mod replay;
mod settings;
mod step;
mod telemetry;

#[cfg(test)]
mod tests;

pub use aimd::{Proposal, aimd};
pub use controller::Controller;
pub use decision::{Decision, Verdict};
pub use demand::{Load, demand};
pub use gradient::Gradient;
pub use protected::protected;
pub use replay::{Path, Point, Replayed, Trace, replay, traces};
pub use settings::{Policy, QuotaSettings};
pub use step::step;
pub use telemetry::{Fault, Signal, Telemetry};

/// Which way a policy wants the quota to go, and why, in words.
#[derive(Clone, Debug, PartialEq)]
pub struct Wish {
    /// Where to.
    pub direction: Direction,
    /// Such as `the host's CPU pressure is 0.55, at or above 0.4`.
    pub why: String,
}

/// Where a quota should go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// One step up.
    Up,
    /// One step down.
    Down,
    /// Nowhere.
    Stay,
}

impl Wish {
    fn new(direction: Direction, why: String) -> Wish {
        Wish { direction, why }
    }
}
