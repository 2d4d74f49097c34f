//! Which watched processes are routed.

use std::collections::HashMap;

use super::seen::Seen;
use super::stay::Moving;
use super::{Engine, MAX_WORKLOADS};
use crate::action::{Action, Move, Placement, Why};
use crate::event::Sample;
use crate::id::{Moment, ProcId};

impl Engine {
    /// Counts, and routes what is known to be heavy or has been hot for long enough.
    pub(super) fn detect(&mut self, sample: &Sample, now: Moment) -> Vec<Action> {
        let new = self
            .processes
            .take(sample, now, &self.settings, &self.rules, self.generation);
        self.learn(now);
        let wanted: Vec<u32> = match self.holds.is_paused() {
            true => Vec::new(),
            false => self
                .processes
                .active()
                .filter(|seen| self.stays_alone(seen).is_none())
                .map(|seen| seen.id.pid)
                .collect(),
        };
        if wanted.is_empty() && !self.may_have_returned(&new) {
            return Vec::new();
        }
        self.mark_returned(&new);
        self.note_placed_roots();
        let moving = self.moving_now();
        let mut chosen = self.choose(&wanted, &moving);
        let carried = |seen: &Seen| {
            let goes = |other: &Seen| chosen.contains_key(&other.id.pid);
            self.carrier(seen, &moving, goes).is_some()
        };
        let mut topmost: Vec<ProcId> = chosen
            .keys()
            .filter_map(|pid| self.processes.at(*pid))
            .filter(|seen| !carried(seen))
            .map(|seen| seen.id)
            .collect();
        topmost.sort();
        topmost.truncate(MAX_WORKLOADS.saturating_sub(self.load()));
        topmost
            .into_iter()
            .filter_map(|root| Some((root, chosen.remove(&root.pid)?)))
            .map(|(root, why)| self.route(root, why, now))
            .collect()
    }

    /// Who is to be routed, by PID, and why.
    fn choose(&self, wanted: &[u32], moving: &Moving) -> HashMap<u32, (String, Why)> {
        let trees = self.tree_load(wanted);
        let judge = |pid: &u32| {
            let seen = self.processes.at(*pid)?;
            let why = self.stays_among(seen, moving, trees.get(pid).copied());
            Some((*pid, why.ok()?))
        };
        wanted.iter().filter_map(judge).collect()
    }

    fn may_have_returned(&self, new: &[u32]) -> bool {
        let none = self.returned.is_empty() && self.recovering.is_empty();
        !none && !new.is_empty()
    }

    /// A tree that came back calm is not routed again by its name alone, or an idle build daemon would
    /// go to and fro for ever. While it is on its way and its root has ended, its other processes cannot be
    /// told from strangers: everything that is new in that one sample then needs a hot sample too.
    fn mark_returned(&mut self, new: &[u32]) {
        let on_the_way: Vec<ProcId> = self
            .recovering
            .values()
            .map(|recovering| recovering.root)
            .collect();
        let came_back = |id: ProcId| self.returned.contains_key(&id) || on_the_way.contains(&id);
        let lost = on_the_way
            .iter()
            .any(|root| !self.processes.contains(*root));
        let of_tree = |seen: &Seen| {
            lost || came_back(seen.id)
                || self
                    .processes
                    .ancestors(seen)
                    .any(|other| came_back(other.id))
        };
        let marked: Vec<ProcId> = new
            .iter()
            .filter_map(|pid| self.processes.at(*pid))
            .filter(|seen| of_tree(seen))
            .map(|seen| seen.id)
            .collect();
        for id in marked {
            if let Some(seen) = self.processes.get_mut(id) {
                seen.spent = true;
            }
        }
    }

    fn note_placed_roots(&mut self) {
        for tracked in self.workloads.values_mut() {
            if let Some(seen) = self.processes.get(tracked.workload.root) {
                tracked.root_known = seen.known.is_some();
            }
        }
    }

    pub(super) fn route(
        &mut self,
        root: ProcId,
        (class, why): (String, Why),
        now: Moment,
    ) -> Action {
        self.cool_down(root, now);
        self.moving.insert(root, vec![root]);
        Action::Move(Move {
            processes: vec![root],
            class,
            placement: Placement::Routed,
            why,
            ticket: None,
        })
    }
}
