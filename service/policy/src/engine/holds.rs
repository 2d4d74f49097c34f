//! What holds change: who is left alone, and what is brought back when a hold begins or ends.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use super::population::Population;
use super::{Engine, Recovering, Seen};
use crate::action::{Action, Failure, Move, Placement, RecoverCause};
use crate::event::{Exec, Ticket, Workload};
use crate::holds::{HoldEvent, Holds, Kind, Terms, Wish};
use crate::id::ProcId;

/// Whom detection leaves alone.
#[derive(Debug, Default)]
pub(super) struct Spared {
    roots: HashSet<ProcId>,
    /// Those above them in the same control group, with the root that their move would take along.
    above: HashMap<ProcId, ProcId>,
}

impl Spared {
    /// The root for whose sake detection may not move a process, if there is one.
    pub fn root_for(&self, processes: &Population, seen: &Seen) -> Option<ProcId> {
        if self.roots.is_empty() {
            return None;
        }
        let above = self.above.get(&seen.id).copied();
        above.or_else(|| {
            std::iter::once(seen)
                .chain(processes.ancestors(seen))
                .find_map(|one| self.root_or_parent(one))
        })
    }

    /// It is a root, or the child of one that is not watched itself.
    fn root_or_parent(&self, seen: &Seen) -> Option<ProcId> {
        let parent = |root: &&ProcId| root.pid == seen.ppid && root.start <= seen.id.start;
        let itself = self.roots.get(&seen.id);
        itself.or_else(|| self.roots.iter().find(parent)).copied()
    }

    /// Whether a process that executes another program is of a tree that is left alone.
    pub fn hears(&self, exec: &Exec) -> bool {
        let line = exec.line.iter().map(|process| process.id);
        !self.roots.is_empty()
            && line
                .chain(exec.elsewhere.iter().copied())
                .any(|id| self.roots.contains(&id))
    }

    /// Whether a move of this process would take such a tree along.
    pub fn carries(&self, id: ProcId) -> bool {
        self.above.contains_key(&id)
    }
}

impl Engine {
    /// Every hold there is.
    pub fn holds(&self) -> &Holds {
        &self.holds
    }

    /// The unique bus names that a hold is bound to, or a lease on its way.
    pub fn bound_names(&self) -> impl Iterator<Item = &str> {
        let coming = self.leasing.values().flatten();
        self.holds
            .bus_names()
            .chain(coming.filter_map(|terms| terms.owner.bus_name.as_deref()))
    }

    /// Gives no cookie up to this one: an earlier guard did.
    pub fn skip_hold_ids(&mut self, last: u64) {
        self.holds.skip_to(last);
    }

    /// Whether a move that detection asked for is held back when its turn comes. `ancestors` are those of
    /// its root, as they are now: the engine knows the watched ones alone.
    pub fn is_withheld(&self, order: &Move, ancestors: &[ProcId]) -> bool {
        let exempt = |root: ProcId| order.processes.contains(&root) || ancestors.contains(&root);
        order.ticket.is_none() && (self.holds.is_paused() || self.holds.exempt_roots().any(exempt))
    }

    /// Whether a recovery is held back when its turn comes.
    pub fn is_kept(&self, unit: &str, cause: &RecoverCause) -> bool {
        matches!(cause, RecoverCause::Calm { .. })
            && (self.holds.is_paused() || self.holds.is_pinned(unit))
    }

    pub(super) fn spared(&self) -> Spared {
        let roots: HashSet<ProcId> = self.holds.exempt_roots().collect();
        let above = roots
            .iter()
            .filter_map(|root| self.processes.get(*root))
            .flat_map(|seen| {
                let carriers = self.processes.carriers(seen);
                carriers.map(|other| (other.id, seen.id))
            })
            .collect();
        Spared { roots, above }
    }

    pub(super) fn held(&mut self, event: HoldEvent) -> Vec<Action> {
        match event {
            HoldEvent::Wanted {
                ticket,
                wish,
                terms,
                caller_unit,
            } => {
                vec![match self.take_hold(wish, terms, caller_unit.as_deref()) {
                    Ok(id) => Action::Held { ticket, id },
                    Err(failure) => Action::Refuse { ticket, failure },
                }]
            }
            HoldEvent::LetGo { ticket, id } => self.let_go(ticket, id),
            HoldEvent::Resume { ticket } => {
                let ended = self.holds.end(|hold| hold.kind == Kind::Pause);
                vec![Action::Unheld { ticket, ended }]
            }
            HoldEvent::Restored(hold) => {
                self.holds.restore(hold);
                Vec::new()
            }
            HoldEvent::Elapsed(boot) => {
                self.holds
                    .end(|hold| hold.terms.until.is_some_and(|until| until.boot <= boot));
                self.release_leases(boot)
            }
            HoldEvent::OwnerLeft(name) => {
                let left = |terms: &Terms| terms.owner.bus_name.as_deref() == Some(&name);
                for terms in self.leasing.values_mut() {
                    if terms.as_ref().is_some_and(left) {
                        *terms = None;
                    }
                }
                self.holds.end(|hold| left(&hold.terms));
                self.release_leases(Duration::ZERO)
            }
            HoldEvent::TreeEnded(process) => {
                self.holds.end(|hold| match &hold.kind {
                    Kind::Exempt { root } => *root == process,
                    Kind::Pin { process: named, .. } => *named == process,
                    Kind::Pause | Kind::Lease { .. } => false,
                });
                Vec::new()
            }
            HoldEvent::Carried { unit } => self.bring_back(&unit),
        }
    }

    /// Whether a lease on what is about to be placed has room.
    pub(super) fn may_lease(&self, terms: Option<&Terms>) -> Result<(), Failure> {
        match terms {
            Some(terms) => self.holds.room(&terms.owner, &self.coming()),
            None => Ok(()),
        }
    }

    /// The move of a leased workload has ended. Answers what follows when its owner has left meanwhile.
    pub(super) fn lease(&mut self, root: ProcId, placed: Option<&Workload>) -> Vec<Action> {
        match (self.leasing.remove(&root), placed) {
            (Some(Some(terms)), Some(workload)) => {
                let unit = workload.unit.clone();
                self.holds.add(Kind::Lease { unit }, terms);
                Vec::new()
            }
            (Some(None), Some(workload)) => {
                let unit = workload.unit.clone();
                self.start_back(&unit, RecoverCause::LeaseEnded)
                    .into_iter()
                    .collect()
            }
            _ => Vec::new(),
        }
    }

    fn coming(&self) -> Vec<&crate::holds::Owner> {
        self.leasing
            .values()
            .flatten()
            .map(|terms| &terms.owner)
            .collect()
    }

    fn take_hold(
        &mut self,
        wish: Wish,
        terms: Terms,
        caller: Option<&str>,
    ) -> Result<u64, Failure> {
        if self.is_bounded(caller) {
            return Err(Failure::OutOfReach(
                "work of another class than protected cannot hold the guard back; its user can, from outside of \
                 that work"
                    .to_owned(),
            ));
        }
        let kind = match wish {
            Wish::Pause => Kind::Pause,
            Wish::Exempt(root) => Kind::Exempt { root },
            Wish::Pin { process, unit } => {
                match unit.filter(|unit| self.workloads.contains_key(unit)) {
                    Some(unit) => Kind::Pin { process, unit },
                    None => {
                        return Err(Failure::NoSuchWorkload(format!(
                            "process {process} is in no workload that could be kept in its class; \
                         to have detection leave it alone, exempt it"
                        )));
                    }
                }
            }
        };
        self.holds.room(&terms.owner, &self.coming())?;
        Ok(self.holds.add(kind, terms))
    }

    fn let_go(&mut self, ticket: Ticket, id: u64) -> Vec<Action> {
        let ended = self.holds.end(|hold| hold.id == id);
        if ended == 0 {
            return vec![Action::Refuse {
                ticket,
                failure: Failure::NoSuchHold(format!(
                    "there is no hold {id}; `workload-guard holds` lists them"
                )),
            }];
        }
        let mut actions = vec![Action::Unheld { ticket, ended }];
        actions.extend(self.release_leases(Duration::ZERO));
        actions
    }

    /// Begins to release what was placed until a lease ended.
    fn release_leases(&mut self, boot: Duration) -> Vec<Action> {
        let mut actions = Vec::new();
        for unit in self.holds.over(boot) {
            if self.workloads.contains_key(&unit) {
                actions.extend(self.start_back(&unit, RecoverCause::LeaseEnded));
            } else {
                // The workload ended when nobody was there to hear of it.
                self.holds.workload_ended(&unit);
            }
        }
        actions
    }

    fn bring_back(&mut self, unit: &str) -> Vec<Action> {
        let routed = |placement: Placement| placement == Placement::Routed;
        match self.workloads.get(unit) {
            Some(tracked) if routed(tracked.workload.placement) => self
                .start_back(unit, RecoverCause::Exempted)
                .into_iter()
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Begins to release a workload; when it is busy or was tried just now, a later sample does.
    fn start_back(&mut self, unit: &str, cause: RecoverCause) -> Option<Action> {
        let tracked = self.workloads.get_mut(unit)?;
        tracked.owed = Some(cause.clone());
        let root = tracked.workload.root;
        if self.recovering.contains_key(unit)
            || self.moving.contains_key(&root)
            || tracked.is_resting()
        {
            return None;
        }
        let recovering = Recovering {
            root,
            on_word: false,
        };
        self.recovering.insert(unit.to_owned(), recovering);
        Some(Action::Recover {
            unit: unit.to_owned(),
            cause,
            ticket: None,
        })
    }
}
