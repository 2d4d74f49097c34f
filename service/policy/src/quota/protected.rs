//! The protected policy: by the pressure that the protected side suffers.
//!
//! The host's pressure includes what the heavy slice suffers from its own quota, since time that a group
//! is throttled counts as pressure (kernel, "psi: Fix cpu.pressure for cpu.max and competing cgroups",
//! 5.7): a lower quota then makes more pressure, which lowers the quota. The protected side's pressure
//! has no such loop, but for its own budget; while that is what holds it up, taking from the heavy side
//! would help nobody.

use super::step::DEMAND_HIGH;
use super::telemetry::{Check, name};
use super::{Direction, Fault, QuotaSettings, Telemetry, Wish};

/// What the protected policy wishes. An error freezes the quota; an empty one waits for a second reading.
///
/// It takes nothing from heavy work that has little to do: nobody gains by it.
pub fn protected(telemetry: &Telemetry, settings: &QuotaSettings) -> Result<Wish, Vec<Fault>> {
    let mut check = Check::new(settings.stale_after());
    let pressure = check.needed(name::PROTECTED_PRESSURE, &telemetry.protected_pressure, 1.0);
    let own = check.needed(
        name::PROTECTED_THROTTLED,
        &telemetry.protected_throttled,
        1.0,
    );
    let throttled = check.needed(name::THROTTLED, &telemetry.throttled, 1.0);
    let demand = check.needed(name::DEMAND, &telemetry.demand, 1.0);
    let (Some(pressure), Some(own), Some(throttled), Some(demand)) =
        (pressure, own, throttled, demand)
    else {
        return Err(check.faults);
    };
    let (high, low) = (settings.pressure_high, settings.pressure_low);
    let (direction, why) = if pressure >= high && own > 0.0 {
        (
            Direction::Stay,
            format!(
                "the protected side's CPU pressure is {pressure:.2}, but its own budget throttled it in {own:.2} of its periods"
            ),
        )
    } else if pressure >= high {
        (
            Direction::Down,
            format!("the protected side's CPU pressure is {pressure:.2}, at or above {high}"),
        )
    } else if pressure > low {
        (
            Direction::Stay,
            format!("the protected side's CPU pressure of {pressure:.2} is neither high nor low"),
        )
    } else if throttled >= settings.throttle_high {
        (
            Direction::Up,
            format!(
                "the protected side's CPU pressure is {pressure:.2}, at or below {low}, and heavy work was throttled in {throttled:.2} of its periods"
            ),
        )
    } else if demand >= DEMAND_HIGH {
        (
            Direction::Up,
            format!(
                "the protected side's CPU pressure is {pressure:.2}, at or below {low}, and the demand is {demand:.2}"
            ),
        )
    } else {
        (
            Direction::Stay,
            format!("the demand of {demand:.2} has what it needs"),
        )
    };
    Ok(Wish::new(direction, why))
}
