//! At start: what was saved, beside what systemd has.

use std::collections::{HashMap, HashSet};

use crate::action::Placement;
use crate::id::ProcId;

/// A route of the state file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    /// The scope.
    pub unit: String,
    /// The class.
    pub class: String,
    /// The root process when it was saved.
    pub root: ProcId,
    /// Routed or placed.
    pub placement: Placement,
}

/// A scope of ours that systemd has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Live {
    /// The scope.
    pub unit: String,
    /// The class in its name; none when the name says none.
    pub class: Option<String>,
    /// The placement in its name; none for a scope in which something came back.
    pub placement: Option<Placement>,
    /// The identity in its name.
    pub named_root: Option<ProcId>,
    /// The processes in it.
    pub processes: Vec<ProcId>,
}

/// What to do with one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Saved and alive: go on.
    Keep {
        /// The scope.
        unit: String,
        /// Its root: the saved one, or the eldest process when that has ended.
        root: ProcId,
    },
    /// Alive but not saved: a workload whose source is not known.
    AdoptUnknown {
        /// The scope.
        unit: String,
        /// The class in its name.
        class: String,
        /// The placement in its name.
        placement: Placement,
        /// Its root.
        root: ProcId,
    },
    /// Nobody is in it: stop it, since an empty scope can stay active for ever.
    StopEmpty {
        /// The scope.
        unit: String,
    },
    /// Saved, but no longer there: forget it.
    DropSaved {
        /// The scope.
        unit: String,
    },
}

/// One decision for each scope that was saved or lives, in the order of `live`, then of `saved`. A scope
/// whose name says no class or placement is left alone: what is in it has come back already.
///
/// A process is the same one by its start time, never by its command line.
pub fn reconcile(saved: &[Saved], live: &[Live]) -> Vec<Decision> {
    let by_unit: HashMap<&str, &Saved> = saved
        .iter()
        .map(|saved| (saved.unit.as_str(), saved))
        .collect();
    let alive: HashSet<&str> = live.iter().map(|live| live.unit.as_str()).collect();
    let mut decisions: Vec<Decision> = live
        .iter()
        .filter_map(|live| decide(live, by_unit.get(live.unit.as_str()).copied()))
        .collect();
    let gone = saved
        .iter()
        .filter(|saved| !alive.contains(saved.unit.as_str()));
    decisions.extend(gone.map(|saved| Decision::DropSaved {
        unit: saved.unit.clone(),
    }));
    decisions
}

fn decide(live: &Live, saved: Option<&Saved>) -> Option<Decision> {
    let unit = live.unit.clone();
    let Some(eldest) = live
        .processes
        .iter()
        .copied()
        .min_by_key(|process| (process.start, process.pid))
    else {
        return Some(Decision::StopEmpty { unit });
    };
    let alive = |root: Option<ProcId>| {
        root.filter(|root| live.processes.contains(root))
            .unwrap_or(eldest)
    };
    match (saved, &live.class, live.placement) {
        (Some(saved), _, _) => Some(Decision::Keep {
            unit,
            root: alive(Some(saved.root)),
        }),
        (None, Some(class), Some(placement)) => Some(Decision::AdoptUnknown {
            unit,
            class: class.clone(),
            placement,
            root: alive(live.named_root),
        }),
        (None, _, _) => None,
    }
}
