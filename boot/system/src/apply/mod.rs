//! Brings a machine into a profile's state, and back.
//!
//! What was there is saved before the first change, each change is read back, and what another change
//! undid is done once more.

mod restore;

use std::collections::BTreeMap;

use bench_profile::knob::Knob;
use bench_profile::requested::Requested;

pub use restore::restore;

use crate::hands::Hands;
use crate::knobs::{self, Action, Entry, judge};
use crate::originals::{self, Originals, OriginalsError};
use crate::root::Root;
use crate::snapshot::{SWAPS, Snapshot};
use crate::swap;

/// Nothing was applied, or not all of it could be begun.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// What the machine was cannot be saved or read.
    #[error(transparent)]
    Originals(#[from] OriginalsError),
    /// Swap cannot go off. Nothing else was done.
    #[error("swap cannot be switched off: {0}")]
    Swap(String),
    /// Another profile is in force and cannot be taken back.
    #[error("the state of {profile} cannot be taken back first: {what}")]
    Restore {
        /// The profile in force.
        profile: bench_profile::profile::Profile,
        /// The knobs that stay as they are.
        what: String,
    },
}

/// Brings the machine into the state. Where another request is in force, that is restored first.
///
/// The knobs say what came of each; the machine is in the state when none [`is a
/// failure`](bench_profile::knob::Verdict::is_failure).
///
/// # Errors
///
/// Nothing is changed then, but for what a restore put back.
pub fn apply(
    root: &Root,
    hands: &mut dyn Hands,
    requested: &Requested,
) -> Result<Vec<Knob>, ApplyError> {
    let known = match originals::load(root)? {
        Some(known) if !known.are_of(requested) => {
            take_back(root, hands, &known)?;
            None
        }
        known => known,
    };
    let fresh = known.is_none();
    let mut work = Work {
        root,
        hands,
        originals: known.unwrap_or_else(|| Originals::new(requested)),
        refusals: BTreeMap::new(),
    };
    let snapshot = work.look();
    let areas = swap::areas(snapshot.text(SWAPS).unwrap_or_default());
    let meminfo = snapshot.text("proc/meminfo").unwrap_or_default();
    if let Some(why) = swap::too_full(&areas, meminfo) {
        return Err(ApplyError::Swap(why));
    }
    // Switching SMT moves interrupts and policies, so all of it is saved as it is now.
    work.save(&knobs::all(requested, &snapshot), &snapshot)?;
    if let Err(why) = work.swap_off(&areas) {
        if fresh {
            originals::forget(root)?;
        }
        return Err(ApplyError::Swap(why));
    }
    for entry in knobs::first(requested, &snapshot) {
        work.carry_out(&entry, &snapshot);
    }
    let snapshot = work.look();
    let entries = knobs::rest(requested, &snapshot);
    work.save(&entries, &snapshot)?;
    for entry in &entries {
        work.carry_out(entry, &snapshot);
    }
    work.once_more(requested)?;
    Ok(work.knobs(requested))
}

fn take_back(root: &Root, hands: &mut dyn Hands, known: &Originals) -> Result<(), ApplyError> {
    let left: Vec<String> = restore(root, hands)?
        .into_iter()
        .filter(|knob| knob.verdict.is_failure())
        .map(|knob| format!("{}: {}", knob.id, knob.verdict))
        .collect();
    if left.is_empty() {
        return Ok(());
    }
    Err(ApplyError::Restore {
        profile: known.requested.profile,
        what: left.join("; "),
    })
}

struct Work<'a> {
    root: &'a Root,
    hands: &'a mut dyn Hands,
    originals: Originals,
    refusals: BTreeMap<String, String>,
}

impl Work<'_> {
    fn look(&mut self) -> Snapshot {
        Snapshot::read(self.root, self.hands)
    }

    fn save(&mut self, entries: &[Entry], snapshot: &Snapshot) -> Result<(), OriginalsError> {
        self.originals.merge(entries, snapshot);
        originals::save(self.root, &self.originals)
    }

    /// All areas, or none.
    fn swap_off(&mut self, areas: &[swap::Area]) -> Result<(), String> {
        for (n, area) in areas.iter().enumerate() {
            let Err(error) = self.hands.swap_off(&area.device) else {
                continue;
            };
            let mut why = format!("{}: {error}; nothing was changed", area.device);
            for done in &areas[..n] {
                if let Err(error) = self.hands.swap_on(&done.device, done.priority) {
                    why = format!(
                        "{}; and {} is off and cannot be switched on again: {error}",
                        why.trim_end_matches("; nothing was changed"),
                        done.device
                    );
                }
            }
            return Err(why);
        }
        Ok(())
    }

    fn carry_out(&mut self, entry: &Entry, snapshot: &Snapshot) {
        let refused = match &entry.action {
            Action::Write { path, value, meets } => match snapshot.text(path) {
                Some(text) if !meets.met(text) => self
                    .hands
                    .write(path, value)
                    .err()
                    .map(|error| error.to_string()),
                _ => None,
            },
            Action::Stop { unit } if snapshot.unit(unit) == Some(true) => {
                self.hands.stop_unit(unit).err()
            }
            // Swap is off already.
            _ => None,
        };
        if let Some(refused) = refused {
            self.refusals.insert(entry.id.clone(), refused);
        }
    }

    /// A later write can undo an earlier one (a governor resets no_turbo), and an interrupt can be new.
    fn once_more(&mut self, requested: &Requested) -> Result<(), OriginalsError> {
        let snapshot = self.look();
        let open: Vec<Entry> = knobs::rest(requested, &snapshot)
            .into_iter()
            .filter(|entry| !self.refusals.contains_key(&entry.id))
            .filter(|entry| match &entry.action {
                Action::Write { path, meets, .. } => {
                    snapshot.text(path).is_some_and(|text| !meets.met(text))
                }
                _ => false,
            })
            .collect();
        if open.is_empty() {
            return Ok(());
        }
        self.save(&open, &snapshot)?;
        for entry in &open {
            self.carry_out(entry, &snapshot);
        }
        Ok(())
    }

    fn knobs(&mut self, requested: &Requested) -> Vec<Knob> {
        let snapshot = self.look();
        let asked = |entry: &Entry| !matches!(entry.action, Action::Keep { .. });
        let judged = |entry: Entry| {
            let original = entry
                .path()
                .and_then(|path| self.originals.before(path))
                .map(|text| text.trim().to_owned());
            let refusal = self.refusals.get(&entry.id).map(String::as_str);
            judge(&entry, &snapshot, refusal, original)
        };
        let entries = knobs::all(requested, &snapshot).into_iter();
        entries.filter(asked).map(judged).collect()
    }
}
