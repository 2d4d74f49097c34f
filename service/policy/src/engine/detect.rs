//! Which watched processes are routed.

use std::collections::{HashMap, HashSet};

use super::seen::Seen;
use super::{Engine, MAX_WORKLOADS};
use crate::action::{Action, Move, Placement, Why};
use crate::event::Sample;
use crate::id::{Moment, ProcId};
use crate::rules::Match;

/// Where sustained load goes.
const HEAVY: &str = "heavy";
/// Not a place for detection: who is protected is the person's word.
const PROTECTED: &str = "protected";

impl Engine {
    /// Counts, and routes what is known to be heavy or has been hot for long enough.
    pub(super) fn detect(&mut self, sample: &Sample, now: Moment) -> Vec<Action> {
        let new = self
            .processes
            .take(sample, now, &self.settings, &self.rules, self.generation);
        self.learn(now);
        let wanted: Vec<u32> = self
            .processes
            .active()
            .filter(|seen| !self.holds.is_paused() && self.is_wanted(seen))
            .map(|seen| seen.id.pid)
            .collect();
        if wanted.is_empty() && !self.may_have_returned(&new) {
            return Vec::new();
        }
        self.mark_returned(&new);
        self.note_placed_roots();
        let roots: HashSet<ProcId> = self
            .workloads
            .values()
            .map(|tracked| tracked.workload.root)
            .collect();
        let mut chosen = self.choose(&wanted, &roots);
        let carried = |seen: &Seen| {
            self.processes.carriers(seen).any(|other| {
                // A root that is not where its workload is: the sample is older than the move.
                chosen.contains_key(&other.id.pid)
                    || self.is_busy(other.id)
                    || roots.contains(&other.id) && !self.is_settled(other)
            })
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
    fn choose(&self, wanted: &[u32], roots: &HashSet<ProcId>) -> HashMap<u32, (String, Why)> {
        let trees = self.tree_load(wanted);
        let spared = self.spared();
        let mut chosen = HashMap::new();
        for pid in wanted {
            let Some(seen) = self.processes.at(*pid) else {
                continue;
            };
            let free =
                !roots.contains(&seen.id) && !self.is_busy(seen.id) && !self.is_settled(seen);
            let free = free && !spared.has(&self.processes, seen);
            if let Some(why) = self.reason(seen, trees.get(pid).copied()).filter(|_| free) {
                chosen.insert(*pid, why);
            }
        }
        chosen
    }

    /// Whether a process could be routed as far as it alone tells. Cheap, and false for nearly all.
    fn is_wanted(&self, seen: &Seen) -> bool {
        let by_cpu = self.is_sustained(seen) || self.is_unusual(seen);
        (seen.known.is_some() || by_cpu && !self.is_apps_own(seen))
            && !seen.excluded
            && !seen.refused
            && !self.cooldowns.contains_key(&seen.id)
    }

    /// Whether it, or the tree that it explains, has been hot for long enough.
    fn is_sustained(&self, seen: &Seen) -> bool {
        seen.hot_samples.max(seen.tree.hot_samples) >= self.settings.routing.sustained_samples
    }

    fn may_have_returned(&self, new: &[u32]) -> bool {
        let none =
            self.returned.is_empty() && self.recovering.is_empty() && self.just_returned.is_empty();
        !none && !new.is_empty()
    }

    /// A tree that came back calm is not routed again by its name alone, or an idle build daemon would
    /// go to and fro for ever. Where its root has ended, its other processes cannot be told from
    /// strangers: everything that is new in that one sample then needs a hot sample too.
    fn mark_returned(&mut self, new: &[u32]) {
        let on_the_way: Vec<ProcId> = self.recovering.values().copied().collect();
        let came_back = |id: ProcId| self.returned.contains_key(&id) || on_the_way.contains(&id);
        let lost = self
            .just_returned
            .iter()
            .chain(&on_the_way)
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

    /// CPU of the tree of each wanted process that its name alone does not route.
    fn tree_load(&self, wanted: &[u32]) -> HashMap<u32, f64> {
        let spent = |pid: &&u32| self.processes.at(**pid).is_some_and(|seen| seen.spent);
        let mut trees: HashMap<u32, f64> =
            wanted.iter().filter(spent).map(|pid| (*pid, 0.0)).collect();
        if trees.is_empty() {
            return trees;
        }
        for seen in self.processes.active() {
            let Some(cpu) = seen.cpu.filter(|cpu| *cpu > 0.0) else {
                continue;
            };
            for carrier in std::iter::once(seen).chain(self.processes.carriers(seen)) {
                if let Some(sum) = trees.get_mut(&carrier.id.pid) {
                    *sum += cpu;
                }
            }
        }
        trees
    }

    /// Why a process is routed, and into which class. `tree` is the CPU of its tree if that decides.
    fn reason(&self, seen: &Seen, tree: Option<f64>) -> Option<(String, Why)> {
        let threshold = self.settings.routing.cpu_threshold;
        let known = seen.known.as_ref().filter(|known| self.takes_known(known));
        if let Some(known) = known.filter(|_| tree.is_none_or(|cpu| cpu >= threshold)) {
            let why = Why::KnownHeavy {
                rule: known.rule.clone(),
                cpu: tree.or(seen.cpu),
            };
            return Some((known.class.clone(), why));
        }
        if self.is_apps_own(seen) {
            return None;
        }
        let enough = self.settings.routing.sustained_samples;
        let tree = seen.hot_samples < enough;
        let (cpu, hot_samples) = match tree {
            false => (seen.cpu, seen.hot_samples),
            true => (seen.tree.cpu, seen.tree.hot_samples),
        };
        let sustained = cpu.filter(|_| hot_samples >= enough);
        let why = match sustained {
            Some(cpu) => Why::SustainedCpu {
                tree,
                cpu,
                threshold,
                hot_samples,
            },
            None => self.adaptive_reason(seen)?,
        };
        Some((HEAVY.to_owned(), why))
    }

    /// Whether a process is in a workload that keeps it: a routed one, or one that a person placed, of
    /// which the named processes stay, and everything when the command itself is known to be heavy.
    fn is_settled(&self, process: &Seen) -> bool {
        self.keeps(&process.cgroup, process.id)
    }

    /// The same of a process by its control group.
    pub(super) fn keeps(&self, cgroup: &str, process: ProcId) -> bool {
        let unit = cgroup.rsplit('/').find_map(|part| self.workloads.get(part));
        unit.is_some_and(|tracked| match tracked.workload.placement {
            Placement::Routed => true,
            Placement::Placed => {
                tracked.root_known
                    || tracked.workload.root == process
                    || tracked.named.contains(&process)
            }
        })
    }

    /// Whether detection routes into the class of a rule.
    pub(super) fn takes_known(&self, known: &Match) -> bool {
        known.class != PROTECTED && self.settings.class(&known.class).is_some()
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
