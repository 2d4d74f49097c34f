//! The quota as the bus shows it.

use guard_policy::quota::{QuotaSettings, Signal};
use workload_guard_dbus::types::SignalRow;

use super::{Control, Steering};
use crate::published::QuotaView;

/// A quota in words.
pub(super) fn percent(quota: Option<f64>) -> String {
    quota.map_or("no limit".to_owned(), |quota| {
        format!("{}%", (quota * 10.0).round() / 10.0)
    })
}

impl Steering {
    /// What getters answer.
    pub fn view(&self, settings: &QuotaSettings) -> QuotaView {
        let t = &self.telemetry;
        let signals = [
            ("pressure", &t.pressure),
            ("delay_ms", &t.delay_ms),
            ("throttled", &t.throttled),
            ("demand", &t.demand),
            ("protected_pressure", &t.protected_pressure),
            ("protected_throttled", &t.protected_throttled),
        ];
        let control = match (&self.control, settings.dynamic, &self.frozen) {
            (Control::Caller, ..) => "set",
            (Control::Yielded, ..) => "yielded",
            (Control::Settings, false, _) => "static",
            (Control::Settings, true, None) => "auto",
            (Control::Settings, true, Some(_)) => "frozen",
        };
        QuotaView {
            slice: self.slice.clone(),
            quota: self.found.percent().unwrap_or(0.0),
            enforced: self
                .found
                .kernel
                .as_ref()
                .and_then(|max| max.quota_percent())
                .unwrap_or(0.0),
            minimum: settings.min,
            maximum: settings.max,
            dynamic: settings.dynamic,
            policy: settings.policy.to_string(),
            control: control.to_owned(),
            // Before the first look nothing is known, not even that it is absent.
            signals: match self.looked {
                Some(_) => signals.map(|(name, signal)| row(name, signal)).to_vec(),
                None => Vec::new(),
            },
            looked: self.looked,
            last_decision: self.last_decision.clone(),
            last_change: self.last_change.clone(),
            changes: self.changes,
        }
    }
}

fn row(name: &str, signal: &Signal) -> SignalRow {
    let (state, value, age, note) = match signal {
        Signal::Absent => ("absent", 0.0, 0.0, String::new()),
        Signal::Pending => ("pending", 0.0, 0.0, String::new()),
        Signal::Broken(why) => ("broken", 0.0, 0.0, why.clone()),
        Signal::Read { value, age } => ("read", *value, age.as_secs_f64(), String::new()),
    };
    SignalRow {
        name: name.to_owned(),
        state: state.to_owned(),
        value,
        age,
        note,
    }
}
