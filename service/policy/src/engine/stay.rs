//! Why detection leaves a watched process where it is: the one judgement that decisions and explanations
//! come from, so that they cannot differ.

use std::collections::{HashMap, HashSet};

use super::holds::Spared;
use super::seen::Seen;
use super::{Engine, HEAVY, PROTECTED};
use crate::action::{Placement, Why};
use crate::id::{Moment, ProcId};
use crate::rules::Match;

/// Why a process stays.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Stay {
    /// Nothing names it, and it did not use much for long enough.
    Light,
    /// The user excluded it.
    Excluded,
    /// A move was refused for what it is.
    Refused,
    /// It was tried, or came back, just now, or somebody released its tree.
    Resting(Moment),
    /// It is on its way already.
    Busy,
    /// Its workload keeps it.
    Settled,
    /// A hold exempts this process: it, an ancestor, or one that would be taken along.
    Exempt(ProcId),
    /// A rule names it, but its tree came back calm and has not been hot since.
    Spent {
        /// CPU of the tree at the last sample, in percent of one logical CPU.
        cpu: f64,
    },
}

/// What judgements of one moment have in common.
pub(super) struct Moving {
    /// Roots of workloads.
    pub roots: HashSet<ProcId>,
    spared: Spared,
}

impl Engine {
    pub(super) fn moving_now(&self) -> Moving {
        let root = |tracked: &super::Tracked| tracked.workload.root;
        Moving {
            roots: self.workloads.values().map(root).collect(),
            spared: self.spared(),
        }
    }

    /// Why a process stays, as far as it alone tells. Cheap, and an answer for nearly all.
    pub(super) fn stays_alone(&self, seen: &Seen) -> Option<Stay> {
        let by_cpu = self.is_sustained(seen) || self.is_unusual(seen);
        let wanted = seen.known.is_some() || by_cpu && !self.is_apps_own(seen);
        if seen.excluded {
            Some(Stay::Excluded)
        } else if seen.refused {
            Some(Stay::Refused)
        } else if !wanted {
            Some(Stay::Light)
        } else {
            let until = self.cooldowns.get(&seen.id);
            until.map(|until| Stay::Resting(*until))
        }
    }

    /// Where a process that [`Engine::stays_alone`] lets go is routed and why, or why it stays. `tree` is the
    /// CPU of its tree if that decides.
    pub(super) fn stays_among(
        &self,
        seen: &Seen,
        moving: &Moving,
        tree: Option<f64>,
    ) -> Result<(String, Why), Stay> {
        if self.is_busy(seen.id) {
            Err(Stay::Busy)
        } else if moving.roots.contains(&seen.id) || self.is_settled(seen) {
            Err(Stay::Settled)
        } else if let Some(root) = moving.spared.root_for(&self.processes, seen) {
            Err(Stay::Exempt(root))
        } else if let Some(until) = self.released_until(seen) {
            Err(Stay::Resting(until))
        } else {
            self.reason(seen, tree).ok_or(match tree {
                Some(cpu) => Stay::Spent { cpu },
                None => Stay::Light,
            })
        }
    }

    /// The end of the cooldown of a tree that somebody released a short while ago, with what it started since.
    fn released_until(&self, process: &Seen) -> Option<Moment> {
        if self.returned.is_empty() {
            return None;
        }
        std::iter::once(process)
            .chain(self.processes.ancestors(process))
            .filter_map(|other| self.returned.get(&other.id))
            .filter(|returned| returned.on_word)
            .map(|returned| returned.until)
            .max()
    }

    /// An ancestor in the same control group whose move takes a process along: one that is `chosen`, or
    /// that is on its way.
    pub(super) fn carrier<'a>(
        &'a self,
        seen: &'a Seen,
        moving: &Moving,
        chosen: impl Fn(&Seen) -> bool,
    ) -> Option<&'a Seen> {
        self.processes.carriers(seen).find(|other| {
            // A root that is not where its workload is: the sample is older than the move.
            chosen(other)
                || self.is_busy(other.id)
                || moving.roots.contains(&other.id) && !self.is_settled(other)
        })
    }

    /// Whether it, or the tree that it explains, has been hot for long enough.
    fn is_sustained(&self, seen: &Seen) -> bool {
        seen.hot_samples.max(seen.tree.hot_samples) >= self.settings.routing.sustained_samples
    }

    /// CPU of the tree of each wanted process that its name alone does not route.
    pub(super) fn tree_load(&self, wanted: &[u32]) -> HashMap<u32, f64> {
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
        self.workload_in(cgroup)
            .is_some_and(|tracked| match tracked.workload.placement {
                Placement::Routed => true,
                Placement::Placed => {
                    tracked.root_known
                        || tracked.workload.root == process
                        || tracked.named.contains(&process)
                }
            })
    }

    /// The innermost workload that a control group is in.
    pub(super) fn workload_in(&self, cgroup: &str) -> Option<&super::Tracked> {
        cgroup.rsplit('/').find_map(|part| self.workloads.get(part))
    }

    /// Whether detection routes into the class of a rule.
    pub(super) fn takes_known(&self, known: &Match) -> bool {
        known.class != PROTECTED && self.settings.class(&known.class).is_some()
    }
}
