//! The step policy: the seed's, by the host's signals.

use super::telemetry::{Check, name};
use super::{Direction, Fault, QuotaSettings, Telemetry, Wish};

/// At or above this the heavy work asks for more.
pub(super) const DEMAND_HIGH: f64 = 0.60;
/// Below this it does not use what it has.
pub(super) const DEMAND_LOW: f64 = 0.15;

/// What the step policy wishes. An error freezes the quota; an empty one waits for a second reading.
///
/// A machine without PSI is steered by the delay alone; one without both, or without the heavy slice's
/// `cpu.stat`, is not steered.
pub fn step(telemetry: &Telemetry, settings: &QuotaSettings) -> Result<Wish, Vec<Fault>> {
    let mut check = Check::new(settings.stale_after());
    let pressure = check.value(name::PRESSURE, &telemetry.pressure, 1.0);
    let delay = check.value(name::DELAY, &telemetry.delay_ms, f64::MAX);
    let throttled = check.needed(name::THROTTLED, &telemetry.throttled, 1.0);
    let demand = check.needed(name::DEMAND, &telemetry.demand, 1.0);
    if pressure.is_none() && delay.is_none() && !check.pending && check.faults.is_empty() {
        let why = "neither it nor the guard's run-queue delay is known on this machine".to_owned();
        check.faults.push(Fault {
            signal: name::PRESSURE,
            why,
        });
    }
    let (Some(throttled), Some(demand), true, false) =
        (throttled, demand, check.faults.is_empty(), check.pending)
    else {
        return Err(check.faults);
    };
    Ok(wish(pressure, delay, throttled, demand, settings))
}

fn wish(
    pressure: Option<f64>,
    delay: Option<f64>,
    throttled: f64,
    demand: f64,
    s: &QuotaSettings,
) -> Wish {
    if let Some(pressure) = pressure.filter(|&pressure| pressure >= s.pressure_high) {
        let high = s.pressure_high;
        return Wish::new(
            Direction::Down,
            format!("the host's CPU pressure is {pressure:.2}, at or above {high}"),
        );
    }
    if let Some(delay) = delay.filter(|&delay| delay >= s.delay_high) {
        let high = s.delay_high;
        return Wish::new(
            Direction::Down,
            format!("the guard waited {delay:.1} ms for a CPU, at or above {high} ms"),
        );
    }
    let low = pressure.is_none_or(|pressure| pressure <= s.pressure_low)
        && delay.is_none_or(|delay| delay <= s.delay_low);
    if !low {
        return Wish::new(
            Direction::Stay,
            format!("{} is neither high nor low", seen(pressure, delay)),
        );
    }
    if throttled >= s.throttle_high {
        let high = s.throttle_high;
        return Wish::new(
            Direction::Up,
            format!(
                "{} is low, and heavy work was throttled in {throttled:.2} of its periods, at or above {high}",
                seen(pressure, delay)
            ),
        );
    }
    if demand >= DEMAND_HIGH {
        return Wish::new(
            Direction::Up,
            format!(
                "{} is low, and the demand is {demand:.2}, at or above {DEMAND_HIGH}",
                seen(pressure, delay)
            ),
        );
    }
    if demand < DEMAND_LOW {
        return Wish::new(
            Direction::Down,
            format!("the demand is {demand:.2}, below {DEMAND_LOW}"),
        );
    }
    Wish::new(
        Direction::Stay,
        format!("the demand of {demand:.2} has what it needs"),
    )
}

/// What was seen of the host, in words.
pub(super) fn seen(pressure: Option<f64>, delay: Option<f64>) -> String {
    let parts: Vec<String> = [
        pressure.map(|pressure| format!("the host's CPU pressure ({pressure:.2})")),
        delay.map(|delay| format!("the guard's wait for a CPU ({delay:.1} ms)")),
    ]
    .into_iter()
    .flatten()
    .collect();
    parts.join(" with ")
}
