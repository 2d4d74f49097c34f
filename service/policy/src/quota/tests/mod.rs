mod edges;
mod frozen;
mod paths;
mod properties;

use super::{QuotaSettings, Signal, Telemetry};

/// A calm machine with nothing to do.
fn calm() -> Telemetry {
    Telemetry {
        pressure: Signal::now(0.0),
        delay_ms: Signal::now(0.0),
        throttled: Signal::now(0.0),
        demand: Signal::now(0.3),
        protected_pressure: Signal::now(0.0),
        protected_throttled: Signal::now(0.0),
    }
}

fn settings() -> QuotaSettings {
    QuotaSettings::default()
}
