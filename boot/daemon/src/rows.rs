//! What was found and done, as it travels and as it is logged.

use bench_profile::knob::{Knob, Verdict};
use bench_system::status::{Finding, Level};
use workload_guard_dbus::bench_types::{CheckRow, KnobRow};

/// The knobs as rows.
pub fn of(knobs: Vec<Knob>) -> Vec<KnobRow> {
    knobs.into_iter().map(knob).collect()
}

fn knob(knob: Knob) -> KnobRow {
    let (verdict, reason) = match knob.verdict {
        Verdict::Ok => ("ok", String::new()),
        Verdict::Differs(why) => ("differs", why),
        Verdict::Unsupported(why) => ("unsupported", why),
        Verdict::OverriddenBy(what) => ("overridden", what),
    };
    KnobRow {
        id: knob.id,
        place: knob.what,
        requested: knob.requested.unwrap_or_default(),
        effective: knob.effective.unwrap_or_default(),
        original: knob.original.unwrap_or_default(),
        verdict: verdict.into(),
        reason,
    }
}

/// A finding as a row.
pub fn check(finding: Finding) -> CheckRow {
    CheckRow {
        id: finding.id.into(),
        level: match finding.level {
            Level::Ok => "ok",
            Level::Note => "note",
            Level::Differs => "differs",
        }
        .into(),
        text: finding.text,
    }
}

/// Writes down what was asked of each setting and what came of it.
pub fn log(knobs: &[Knob]) {
    for knob in knobs {
        let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".into());
        let line = format!(
            "{} ({}): {} -> {}, asked {}: {}",
            knob.id,
            knob.what,
            shown(&knob.original),
            shown(&knob.effective),
            shown(&knob.requested),
            knob.verdict
        );
        match knob.verdict {
            Verdict::Differs(_) => log::warn!("{line}"),
            Verdict::Ok | Verdict::OverriddenBy(_) => log::info!("{line}"),
            Verdict::Unsupported(_) => log::debug!("{line}"),
        }
    }
}
