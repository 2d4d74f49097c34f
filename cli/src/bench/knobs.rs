//! What Apply and Restore did, for a person and as JSON.

use serde::Serialize;
use workload_guard_dbus::bench_types::KnobRow;

/// The JSON of `bench apply` and `bench restore`; their help documents the keys.
#[derive(Serialize)]
pub struct View<'a> {
    applied: Option<&'a str>,
    knobs: &'a [KnobRow],
}

impl<'a> View<'a> {
    /// What is applied now, and each setting.
    pub fn new(applied: &'a str, knobs: &'a [KnobRow]) -> View<'a> {
        View {
            applied: (!applied.is_empty()).then_some(applied),
            knobs,
        }
    }
}

/// What is as asked is counted; what is not is told.
pub fn text(applied: &str, knobs: &[KnobRow]) -> String {
    let ok = knobs.iter().filter(|knob| knob.verdict == "ok").count();
    let mut text = match (applied.is_empty(), knobs.is_empty()) {
        (true, true) => "nothing was applied, so nothing is put back\n".to_owned(),
        (true, false) => format!("put back: {ok} settings are as they were\n"),
        (false, _) => format!("{applied}: {ok} settings are as it asks\n"),
    };
    for knob in knobs.iter().filter(|knob| knob.verdict != "ok") {
        text.push_str(&format!(
            "  {:<12} {}: {}\n",
            knob.verdict, knob.id, knob.reason
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn knob(id: &str, verdict: &str, reason: &str) -> KnobRow {
        KnobRow {
            id: id.into(),
            place: String::new(),
            requested: String::new(),
            effective: String::new(),
            original: String::new(),
            verdict: verdict.into(),
            reason: reason.into(),
        }
    }

    #[test]
    fn what_is_not_as_asked_is_told() {
        let knobs = [
            knob("swap", "ok", ""),
            knob("boost", "unsupported", "no cpufreq driver"),
        ];
        assert_eq!(
            text("multi-core", &knobs),
            "multi-core: 1 settings are as it asks\n  unsupported  boost: no cpufreq driver\n"
        );
        assert!(text("", &knobs).starts_with("put back: 1 settings are as they were\n"));
        assert!(text("", &[]).starts_with("nothing was applied"));
    }
}
