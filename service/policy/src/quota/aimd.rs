//! Additive increase, multiplicative decrease: proposals for the log, which nothing carries out.

use super::step::DEMAND_HIGH;
use super::telemetry::{Check, name};
use super::{QuotaSettings, Telemetry};

/// What a controller that does not act would set.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposal {
    /// The quota that it sees.
    pub from: f64,
    /// The quota that it would set, within the bounds; the same for none.
    pub to: f64,
    /// Why, in one word.
    pub why: &'static str,
}

impl Proposal {
    /// To a whole percent within the bounds.
    pub(super) fn new(from: f64, to: f64, why: &'static str, s: &QuotaSettings) -> Proposal {
        let to = s.clamped(to.round());
        Proposal { from, to, why }
    }
}

/// AIMD's proposal; none without the host's pressure or the throttling, and where any signal is bad.
///
/// The guard's own delay lowers nothing by itself: it only confirms a pressure that is not low.
pub fn aimd(telemetry: &Telemetry, quota: f64, settings: &QuotaSettings) -> Option<Proposal> {
    let mut check = Check::new(settings.stale_after());
    let pressure = check.needed(name::PRESSURE, &telemetry.pressure, 1.0)?;
    let delay = check.value(name::DELAY, &telemetry.delay_ms, f64::MAX);
    let throttled = check.needed(name::THROTTLED, &telemetry.throttled, 1.0)?;
    let demand = check.needed(name::DEMAND, &telemetry.demand, 1.0)?;
    if !check.faults.is_empty() || check.pending {
        return None;
    }
    let s = settings;
    let delayed = delay.is_some_and(|delay| delay >= s.delay_high);
    let low = pressure <= s.pressure_low && delay.is_none_or(|delay| delay <= s.delay_low);
    let (to, why) = if pressure >= s.pressure_high {
        (quota * s.aimd_decrease, "pressure")
    } else if pressure > s.pressure_low && delayed {
        (quota * s.aimd_decrease, "delay")
    } else if low && throttled >= s.throttle_high {
        (quota + s.aimd_add, "throttled")
    } else if low && demand >= DEMAND_HIGH {
        (quota + s.aimd_add, "demand")
    } else {
        (quota, "keep")
    };
    Some(Proposal::new(quota, to, why, s))
}
