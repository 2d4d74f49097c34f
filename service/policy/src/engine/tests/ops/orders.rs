//! What the engine asks for: whether it may, and how the machine carries it out.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::unit;
use super::world::{MAX_PROCESSES, Scope, World};
use crate::action::{Failure, Move, Placement, RecoverCause, Why};
use crate::eligibility::NeverMoved;
use crate::event::{Event, Workload};
use crate::id::ProcId;

impl World {
    pub fn ordered(&mut self, order: Move) {
        for id in &order.processes {
            assert!(
                !self.moves.iter().any(|other| other.processes.contains(id)),
                "{id} is asked to move twice at once"
            );
        }
        if order.ticket.is_none() {
            self.detected(&order);
        }
        self.moves.push(order);
    }

    /// What detection may never ask for.
    fn detected(&mut self, order: &Move) {
        let root = order.root();
        let process = self
            .processes
            .get(&root.pid)
            .filter(|process| process.id == root)
            .expect("a process of the sample");
        assert!(!process.excluded, "excluded");
        self.not_held(order);
        assert_eq!(
            (order.placement, order.class.as_str()),
            (Placement::Routed, "heavy")
        );
        assert!(self.is_watched(process), "in a workload already");
        let placed = self.scopes.values().any(|scope| {
            scope.workload.placement == Placement::Placed && scope.workload.root == root
        });
        assert!(!placed, "the root of a placed workload");
        assert!(
            self.refused.get(&root) != Some(&process.argv),
            "it was refused for good"
        );
        let cooldown = self.engine.settings().routing.cooldown;
        let last = self.attempts.insert(root, self.now);
        assert!(
            last.is_none_or(|last| self.now - last >= cooldown),
            "too soon after the last attempt"
        );
        for id in self.line_of(root) {
            let released = self.released.get(&id);
            assert!(
                released.is_none_or(|then| self.now - *then >= cooldown),
                "{root}: {id} was released a short while ago"
            );
        }
        self.count("routed");
        if matches!(order.why, Why::SustainedCpu { tree: true, .. }) {
            self.count("tree");
        }
        if matches!(order.why, Why::Adaptive { .. }) {
            assert!(self.engine.settings().adaptive.enabled, "it is off");
            self.count("adaptive");
        }
    }

    /// A process and its watched ancestors.
    fn line_of(&self, id: ProcId) -> Vec<ProcId> {
        let parent = |id: &ProcId| {
            let child = &self.processes[&id.pid];
            let parent = self.processes.get(&child.ppid)?;
            (self.is_watched(parent) && parent.id.start <= id.start).then_some(parent.id)
        };
        std::iter::successors(Some(id), parent)
            .take(MAX_PROCESSES)
            .collect()
    }

    pub fn finish_move(&mut self) {
        if self.moves.is_empty() {
            return;
        }
        let order = self.moves.swap_remove(self.dice.below(self.moves.len()));
        let root = order.root();
        if self.is_withheld(&order) {
            self.count("withheld");
            return self.step(Event::Overtaken { root });
        }
        let outcome = if !self.alive(root) {
            Err(Failure::NoSuchProcess("it ended".to_owned()))
        } else if self.dice.one_in(6) {
            Err(Failure::Timeout("late".to_owned()))
        } else if self.dice.one_in(8) {
            let argv = Arc::clone(&self.processes[&root.pid].sampled_argv);
            if self.engine.process(root).is_some() {
                self.refused.insert(root, argv);
            }
            Err(Failure::NeverMoved(NeverMoved::ServiceMain))
        } else {
            Ok(self.carry_out(&order))
        };
        self.count(if outcome.is_ok() {
            "moved"
        } else {
            "not moved"
        });
        if outcome.is_err() {
            self.attempts.insert(root, self.now);
        }
        let unit = outcome.as_ref().ok().map(|made| made.unit.clone());
        self.step(Event::Moved { root, outcome });
        if order.ticket.is_none() {
            self.carried(unit);
        }
    }

    fn carry_out(&mut self, order: &Move) -> Workload {
        let root = order.root();
        let name = format!("{}-{}", self.next_ticket, unit(root.pid));
        self.next_ticket += 1;
        let source = self.processes[&root.pid].scope.clone();
        let mut tree: BTreeSet<u32> = order.processes.iter().map(|id| id.pid).collect();
        loop {
            let more: Vec<u32> = self
                .processes
                .iter()
                .filter(|(pid, process)| {
                    tree.contains(&process.ppid) && !tree.contains(pid) && process.scope == source
                })
                .map(|(pid, _)| *pid)
                .collect();
            if more.is_empty() {
                break;
            }
            tree.extend(more);
        }
        for pid in &tree {
            if let Some(process) = self.processes.get_mut(pid) {
                process.enter(Some(name.clone()));
            }
        }
        let workload = Workload {
            unit: name.clone(),
            class: order.class.clone(),
            root,
            placement: order.placement,
        };
        let scope = Scope {
            workload: workload.clone(),
            usage: 0,
            idle_ticks: 0,
            failures: 0,
        };
        self.scopes.insert(name, scope);
        self.drop_empty_scopes();
        workload
    }

    fn drop_empty_scopes(&mut self) {
        let inhabited: BTreeSet<String> = self
            .processes
            .values()
            .filter_map(|process| process.scope.clone())
            .collect();
        let empty: Vec<String> = self
            .scopes
            .keys()
            .filter(|unit| !inhabited.contains(*unit))
            .cloned()
            .collect();
        for unit in empty {
            self.scopes.remove(&unit);
            self.step(Event::Gone { unit });
        }
    }

    pub fn finish_recovery(&mut self) {
        if self.recoveries.is_empty() {
            return;
        }
        let unit = self
            .recoveries
            .swap_remove(self.dice.below(self.recoveries.len()));
        let cause = self.held.causes.remove(&unit).expect("it was asked for");
        if self.engine.is_kept(&unit, &cause) {
            self.count("kept");
            return self.step(Event::Kept { unit });
        }
        let outcome = match self.scopes.get(&unit) {
            None => Err(Failure::NoSuchWorkload("it ended".to_owned())),
            Some(_) if self.dice.one_in(6) => Err(Failure::SystemdRefused("no".to_owned())),
            Some(scope) => {
                self.attempts.insert(scope.workload.root, self.now);
                self.scopes.remove(&unit);
                let inside = self
                    .processes
                    .values_mut()
                    .filter(|process| process.scope.as_ref() == Some(&unit));
                let ids: Vec<ProcId> = inside
                    .map(|process| {
                        process.enter(None);
                        process.id
                    })
                    .collect();
                if cause == RecoverCause::Released {
                    self.released.extend(ids.iter().map(|id| (*id, self.now)));
                    self.count("released");
                }
                Ok(ids)
            }
        };
        self.count(if outcome.is_ok() {
            "recovered"
        } else {
            "not recovered"
        });
        if outcome.is_err() {
            self.scopes
                .values_mut()
                .filter(|scope| scope.workload.unit == unit)
                .for_each(|scope| {
                    scope.idle_ticks = 0;
                    scope.failures += 1;
                });
        }
        self.step(Event::Recovered { unit, outcome });
    }
}
