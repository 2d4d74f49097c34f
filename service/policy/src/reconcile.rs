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
    /// The workloads that this may be the half-way stop of.
    pub passing_of: Vec<String>,
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
    /// Processes of it are half-way home, from a recovery that was cut off: take that up again.
    BringHome {
        /// The workload's scope, which may be gone.
        unit: String,
        /// Its root: the saved one, or the eldest of those half-way.
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
/// whose name says no class or placement is left alone: what is in it has come back already, or is
/// half-way and nobody knows where to; its slice is the right one.
///
/// A process is the same one by its start time, never by its command line.
pub fn reconcile(saved: &[Saved], live: &[Live]) -> Vec<Decision> {
    let by_unit: HashMap<&str, &Saved> = saved
        .iter()
        .map(|saved| (saved.unit.as_str(), saved))
        .collect();
    let alive: HashSet<&str> = live.iter().map(|live| live.unit.as_str()).collect();
    let half_way: HashMap<&str, &Live> = live
        .iter()
        .filter(|live| !live.processes.is_empty())
        .flat_map(|live| {
            live.passing_of
                .iter()
                .map(move |unit| (unit.as_str(), live))
        })
        .filter(|(unit, _)| by_unit.contains_key(unit))
        .collect();
    let mut decisions: Vec<Decision> = live
        .iter()
        .filter(|live| !half_way.contains_key(live.unit.as_str()))
        .filter_map(|live| {
            let saved = by_unit.get(live.unit.as_str()).copied();
            let half = live
                .passing_of
                .iter()
                .find_map(|unit| by_unit.get(unit.as_str()));
            match (half, eldest(live)) {
                (Some(saved), Some(eldest)) => Some(Decision::BringHome {
                    unit: saved.unit.clone(),
                    root: alive_of(saved.root, live).unwrap_or(eldest),
                }),
                _ => decide(live, saved),
            }
        })
        .collect();
    let gone = saved.iter().filter(|saved| {
        let unit = saved.unit.as_str();
        !alive.contains(unit) && !half_way.contains_key(unit)
    });
    decisions.extend(gone.map(|saved| Decision::DropSaved {
        unit: saved.unit.clone(),
    }));
    decisions
}

fn eldest(live: &Live) -> Option<ProcId> {
    live.processes
        .iter()
        .copied()
        .min_by_key(|process| (process.start, process.pid))
}

fn alive_of(root: ProcId, live: &Live) -> Option<ProcId> {
    live.processes.contains(&root).then_some(root)
}

fn decide(live: &Live, saved: Option<&Saved>) -> Option<Decision> {
    let unit = live.unit.clone();
    let Some(eldest) = eldest(live) else {
        return Some(Decision::StopEmpty { unit });
    };
    let alive = |root: Option<ProcId>| root.and_then(|root| alive_of(root, live)).unwrap_or(eldest);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn id(pid: u32, start: u64) -> ProcId {
        ProcId { pid, start }
    }

    fn saved(unit: &str, root: ProcId) -> Saved {
        Saved {
            unit: unit.to_owned(),
            class: "heavy".to_owned(),
            root,
            placement: Placement::Routed,
        }
    }

    fn live(unit: &str, named_root: ProcId, processes: &[ProcId]) -> Live {
        Live {
            unit: unit.to_owned(),
            class: Some("heavy".to_owned()),
            placement: Some(Placement::Placed),
            named_root: Some(named_root),
            passing_of: Vec::new(),
            processes: processes.to_vec(),
        }
    }

    #[test]
    fn each_scope_gets_its_decision() {
        let kept = saved("kept", id(1, 10));
        let gone = saved("gone", id(2, 20));
        let emptied = saved("emptied", id(3, 30));
        let decisions = reconcile(
            &[kept, gone, emptied],
            &[
                live("emptied", id(3, 30), &[]),
                live("kept", id(1, 10), &[id(9, 5), id(1, 10)]),
                live("unknown", id(4, 40), &[id(9, 5), id(4, 40)]),
                live("empty", id(5, 50), &[]),
            ],
        );
        let expected = [
            Decision::StopEmpty {
                unit: "emptied".into(),
            },
            Decision::Keep {
                unit: "kept".into(),
                root: id(1, 10),
            },
            Decision::AdoptUnknown {
                unit: "unknown".into(),
                class: "heavy".into(),
                placement: Placement::Placed,
                root: id(4, 40),
            },
            Decision::StopEmpty {
                unit: "empty".into(),
            },
            Decision::DropSaved {
                unit: "gone".into(),
            },
        ];
        assert_eq!(decisions, expected);
    }

    #[test]
    fn a_reused_pid_is_not_the_root() {
        let root = id(1, 10);
        let inside = [id(1, 99), id(7, 50), id(6, 50)];
        let kept = reconcile(&[saved("s", root)], &[live("s", root, &inside)]);
        assert_eq!(
            kept,
            [Decision::Keep {
                unit: "s".into(),
                root: id(6, 50)
            }]
        );
        let adopted = reconcile(&[], &[live("s", root, &inside)]);
        assert!(
            matches!(&adopted[..], [Decision::AdoptUnknown { root, .. }] if *root == id(6, 50))
        );
    }

    #[test]
    fn what_came_back_already_is_left_alone_unless_it_is_empty() {
        let mut returned = live("r", id(1, 10), &[id(1, 10)]);
        returned.placement = None;
        assert_eq!(reconcile(&[], &[returned.clone()]), []);
        returned.processes.clear();
        assert_eq!(
            reconcile(&[], &[returned]),
            [Decision::StopEmpty { unit: "r".into() }]
        );
        assert_eq!(reconcile(&[], &[]), []);
    }

    #[test]
    fn a_recovery_that_was_cut_off_is_taken_up() {
        let root = id(1, 10);
        let mut passing = live("p", root, &[id(2, 20), id(3, 15)]);
        passing.placement = None;
        passing.passing_of = vec!["routed".into(), "placed".into()];
        let home = |root| {
            [Decision::BringHome {
                unit: "routed".into(),
                root,
            }]
        };
        // All of it is half-way: the workload's own scope is gone.
        let of = [saved("routed", root)];
        assert_eq!(
            reconcile(&of, std::slice::from_ref(&passing)),
            home(id(3, 15))
        );
        // A part: one decision for both, in either order.
        let rest = live("routed", root, &[root]);
        assert_eq!(
            reconcile(&of, &[rest.clone(), passing.clone()]),
            home(id(3, 15))
        );
        passing.processes.push(root);
        assert_eq!(reconcile(&of, &[passing.clone(), rest.clone()]), home(root));
        // Where to is not known: left alone.
        assert_eq!(reconcile(&[], std::slice::from_ref(&passing)), []);
        // Nobody came so far.
        passing.processes.clear();
        let decisions = reconcile(&of, &[passing, rest]);
        let expected = [
            Decision::StopEmpty { unit: "p".into() },
            Decision::Keep {
                unit: "routed".into(),
                root,
            },
        ];
        assert_eq!(decisions, expected);
    }
}
