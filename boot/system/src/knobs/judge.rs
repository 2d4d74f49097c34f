//! What a knob's state means.

use bench_profile::knob::{Knob, Verdict};

use super::{Action, Entry, Meets};
use crate::snapshot::{SWAPS, Snapshot};
use crate::swap;

/// Judges an entry by what the machine shows now. `refusal` is what the machine answered when it was
/// last told otherwise, `original` what it showed before.
pub fn judge(
    entry: &Entry,
    snapshot: &Snapshot,
    refusal: Option<&str>,
    original: Option<String>,
) -> Knob {
    let (what, requested, effective, verdict) = match &entry.action {
        Action::Write { path, meets, .. } => {
            let effective = snapshot.word(path).map(str::to_owned);
            let verdict = shown(meets, effective.as_deref(), refusal);
            (path.clone(), Some(meets.to_string()), effective, verdict)
        }
        Action::Look { path, meets } => {
            let effective = snapshot.word(path).map(str::to_owned);
            let verdict = match &effective {
                Some(text) if !meets.met(text) => Verdict::Differs(format!(
                    "it is {text}, and this profile only looks at it; --boost=on sets it"
                )),
                _ => shown(meets, effective.as_deref(), None),
            };
            (path.clone(), Some(meets.to_string()), effective, verdict)
        }
        Action::Keep { path } => {
            let effective = snapshot.word(path).map(str::to_owned);
            (path.clone(), None, effective, Verdict::Ok)
        }
        Action::SwapOff => {
            let areas = swap::areas(snapshot.text(SWAPS).unwrap_or_default());
            let devices: Vec<String> = areas.into_iter().map(|area| area.device).collect();
            let verdict = match (devices.is_empty(), refusal) {
                (true, _) => Verdict::Ok,
                (false, Some(refusal)) => Verdict::Differs(refusal.to_owned()),
                (false, None) => Verdict::Differs(format!("in use: {}", devices.join(", "))),
            };
            let effective = if devices.is_empty() { "off" } else { "on" };
            (
                "swap".to_owned(),
                Some("off".to_owned()),
                Some(effective.to_owned()),
                verdict,
            )
        }
        Action::Stop { unit } => {
            let active = snapshot.unit(unit);
            let effective = active.map(|active| if active { "active" } else { "stopped" });
            let verdict = match (active, refusal) {
                (Some(false), _) => Verdict::Ok,
                (_, Some(refusal)) => Verdict::Differs(refusal.to_owned()),
                (Some(true), None) => {
                    Verdict::Differs("it runs and moves interrupts back".to_owned())
                }
                (None, None) => {
                    Verdict::Unsupported("no service manager tells whether it runs".to_owned())
                }
            };
            (
                unit.clone(),
                Some("stopped".to_owned()),
                effective.map(str::to_owned),
                verdict,
            )
        }
        Action::Unsupported(why) => (
            entry.id.clone(),
            None,
            None,
            Verdict::Unsupported(why.clone()),
        ),
    };
    Knob {
        id: entry.id.clone(),
        what,
        requested,
        effective,
        original,
        verdict,
    }
}

fn shown(meets: &Meets, effective: Option<&str>, refusal: Option<&str>) -> Verdict {
    match (effective, refusal) {
        (Some(text), _) if meets.met(text) => Verdict::Ok,
        // An interrupt that cannot be moved is its driver's; whether it arrives is what counts, and that
        // is measured.
        (Some(text), refusal) if matches!(meets, Meets::Within(_)) => {
            let refusal = refusal.map_or_else(String::new, |refusal| format!(" ({refusal})"));
            Verdict::OverriddenBy(format!(
                "its driver or another mover: it is {text}{refusal}"
            ))
        }
        (_, Some(refusal)) => Verdict::Differs(format!("the machine refused it: {refusal}")),
        (Some(text), None) => Verdict::Differs(format!("it is {text}")),
        (None, None) => Verdict::Differs("it cannot be read any more".to_owned()),
    }
}
