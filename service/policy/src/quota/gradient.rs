//! A proposal after Gradient2, which lowers a limit when latency grows: for replays only.

use super::telemetry::{Check, name};
use super::{Proposal, QuotaSettings, Telemetry};

/// The delay must have grown by more than this.
const RATIO: f64 = 1.05;
/// At or above this a growing delay lowers the quota, in milliseconds.
const HIGH_MS: f64 = 20.0;
/// At or below this a delay that does not grow raises it.
const LOW_MS: f64 = 5.0;
const DECREASE: f64 = 0.90;
const ADD: f64 = 10.0;

/// Remembers the delay before.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gradient {
    previous_ms: Option<f64>,
}

impl Gradient {
    /// The proposal of the next interval. The first delay, and one after a gap, has nothing to grow from.
    pub fn propose(
        &mut self,
        telemetry: &Telemetry,
        quota: f64,
        settings: &QuotaSettings,
    ) -> Option<Proposal> {
        let mut check = Check::new(settings.stale_after());
        let latency = check.value(name::DELAY, &telemetry.delay_ms, f64::MAX);
        let previous = std::mem::replace(&mut self.previous_ms, latency);
        let latency = latency?;
        let grown = previous.is_some_and(|previous| latency > previous * RATIO);
        let (to, why) = if latency >= HIGH_MS && grown {
            (quota * DECREASE, "growing")
        } else if latency <= LOW_MS && !grown {
            (quota + ADD, "low")
        } else {
            (quota, "keep")
        };
        Some(Proposal::new(quota, to, why, settings))
    }
}
