//! Puts back what Apply changed, whoever began it and however far it came.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use bench_profile::knob::{Knob, Verdict};

use crate::hands::Hands;
use crate::originals::{self, OriginalsError, Saved};
use crate::root::Root;
use crate::snapshot::SWAPS;
use crate::swap;

/// Puts everything back, the last change first. Where nothing was applied it does nothing and answers
/// nothing. What could not be put back stays saved for another try.
///
/// # Errors
///
/// What was there before cannot be read.
pub fn restore(root: &Root, hands: &mut dyn Hands) -> Result<Vec<Knob>, OriginalsError> {
    let Some(originals) = originals::load(root)? else {
        return Ok(Vec::new());
    };
    let mut work = Work {
        root,
        hands,
        refusals: BTreeMap::new(),
        back: BTreeSet::new(),
    };
    let backwards = || originals.saved.iter().rev();
    let is_unit = |saved: &Saved| matches!(saved, Saved::Unit { .. });
    for saved in backwards() {
        if matches!(saved, Saved::File { kept: false, .. }) {
            work.put_back(saved);
        }
    }
    for saved in swap_areas(&originals.saved) {
        work.put_back(saved);
    }
    // What another write changed in passing, or refused while something else was not back yet.
    for saved in backwards().filter(|saved| matches!(saved, Saved::File { .. })) {
        work.put_back(saved);
    }
    let (units, rest): (Vec<&Saved>, Vec<&Saved>) =
        originals.saved.iter().partition(|saved| is_unit(saved));
    let mut knobs: Vec<Knob> = rest.into_iter().map(|saved| work.judged(saved)).collect();
    // Last: irqbalance moves interrupts as soon as it runs.
    for saved in units {
        work.put_back(saved);
        knobs.push(work.judged(saved));
    }
    if !knobs.iter().any(|knob| knob.verdict.is_failure()) {
        originals::forget(root)?;
    }
    Ok(knobs)
}

/// In the order in which they go on. The kernel numbers those without a priority of their own downwards, -2 first, and
/// fills the first of them first.
fn swap_areas(saved: &[Saved]) -> Vec<&Saved> {
    let priority = |saved: &&Saved| match saved {
        Saved::Swap { priority, .. } => Some(Reverse(*priority)),
        _ => None,
    };
    let mut areas: Vec<&Saved> = saved
        .iter()
        .filter(|saved| priority(saved).is_some())
        .collect();
    areas.sort_by_key(priority);
    areas
}

struct Work<'a> {
    root: &'a Root,
    hands: &'a mut dyn Hands,
    refusals: BTreeMap<String, String>,
    /// Files that held their earlier bytes at some time; their CPU may be offline again by now.
    back: BTreeSet<String>,
}

impl Work<'_> {
    fn put_back(&mut self, saved: &Saved) {
        let done = match saved {
            Saved::File { path, before, .. } => match self.root.read(path) {
                Ok(Some(now)) if now != *before => {
                    let written = self.hands.write(path, before);
                    written.map_err(|error| error.to_string())
                }
                _ => Ok(()),
            },
            Saved::Swap { device, priority } if !self.in_use(device) => self
                .hands
                .swap_on(device, *priority)
                .map_err(|error| error.to_string()),
            Saved::Unit { unit } if self.hands.unit_is_active(unit) != Ok(true) => {
                self.hands.start_unit(unit)
            }
            Saved::Swap { .. } | Saved::Unit { .. } => Ok(()),
        };
        if let Saved::File { path, before, .. } = saved
            && matches!(self.root.read(path), Ok(Some(now)) if now == *before)
        {
            self.back.insert(path.clone());
        }
        match done {
            Err(refused) => self.refusals.insert(name(saved), refused),
            Ok(()) => self.refusals.remove(&name(saved)),
        };
    }

    fn in_use(&self, device: &str) -> bool {
        let swaps = self.root.read(SWAPS).ok().flatten().unwrap_or_default();
        swap::areas(&swaps).iter().any(|area| area.device == device)
    }

    fn judged(&mut self, saved: &Saved) -> Knob {
        let id = name(saved);
        let refusal = self.refusals.get(&id);
        let (what, before, now, verdict) = match saved {
            Saved::File { path, before, .. } => {
                let now = self.root.read(path).map_err(|error| error.to_string());
                let verdict = self.file(path, before, &now, refusal);
                (path, before.trim(), now.ok().flatten(), verdict)
            }
            Saved::Swap { device, .. } => {
                let on = self.in_use(device);
                let now = if on { "on" } else { "off" };
                (
                    device,
                    "on",
                    Some(now.to_owned()),
                    is_back(on, refusal, now),
                )
            }
            Saved::Unit { unit } => {
                let active = self.hands.unit_is_active(unit) == Ok(true);
                let now = if active { "active" } else { "stopped" };
                let verdict = is_back(active, refusal, now);
                (unit, "active", Some(now.to_owned()), verdict)
            }
        };
        Knob {
            id,
            what: what.clone(),
            requested: Some(before.to_owned()),
            effective: now.map(|text| text.trim().to_owned()),
            original: Some(before.to_owned()),
            verdict,
        }
    }

    fn file(
        &self,
        path: &str,
        before: &str,
        now: &Result<Option<String>, String>,
        refusal: Option<&String>,
    ) -> Verdict {
        match now {
            Ok(Some(now)) if now == before => Verdict::Ok,
            // As in Apply: an interrupt that its driver moved meanwhile is the driver's.
            Ok(Some(now)) if refusal.is_some() && path.starts_with("proc/irq/") => {
                Verdict::OverriddenBy(format!("its driver: it is {}", now.trim()))
            }
            Ok(Some(now)) => is_back(false, refusal, now),
            // It was put back, and then its CPU went offline, as it was before.
            _ if self.back.contains(path) => Verdict::Ok,
            // An interrupt of a device that left, a policy whose driver did.
            Ok(None) => Verdict::Unsupported("it is there no more".to_owned()),
            Err(error) => Verdict::Differs(format!("it cannot be read: {error}")),
        }
    }
}

fn is_back(is: bool, refusal: Option<&String>, now: &str) -> Verdict {
    match (is, refusal) {
        (true, _) => Verdict::Ok,
        (false, Some(refusal)) => Verdict::Differs(format!("the machine refused it: {refusal}")),
        (false, None) => Verdict::Differs(format!("it is {}", now.trim())),
    }
}

fn name(saved: &Saved) -> String {
    match saved {
        Saved::File { id, .. } => id.clone(),
        Saved::Swap { device, .. } => format!("swap:{device}"),
        Saved::Unit { unit } => format!("unit:{unit}"),
    }
}
