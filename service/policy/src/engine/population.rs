//! The watched processes. A sample shows only those that may have used CPU; what it says of the others,
//! that they used none, is worked out when somebody asks.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use super::meter::Meter;
use super::seen::{Program, Seen};
use super::trees::Trees;
use crate::event::Sample;
use crate::id::{Moment, ProcId};
use crate::rules::RuleSet;
use crate::settings::Settings;

/// The longest line of ancestors that is followed: with equal start times a sample, which is no snapshot,
/// can hold a circle.
const MAX_ANCESTORS: usize = 1024;
/// Samples that are remembered. More are needed only when one comes too soon after the other again and
/// again.
const MAX_PAST: usize = 64;

/// Every watched process, by PID.
#[derive(Debug, Default)]
pub(super) struct Population {
    pub(super) by_pid: HashMap<u32, Seen>,
    /// Those of which more is to be said than that they are idle: shown by the last sample, or with CPU
    /// or a counter left from it, or named by a rule.
    pub(super) active: BTreeSet<u32>,
    pub(super) trees: Trees,
    past: Past,
    /// The rules that everybody was judged by.
    generation: u64,
}

/// The last samples, as far as those who were not shown have to catch up with them.
#[derive(Debug, Default)]
struct Past {
    /// Counts samples.
    round: u64,
    last: Option<Moment>,
    samples: VecDeque<Taken>,
}

#[derive(Clone, Copy, Debug)]
struct Taken {
    round: u64,
    now: Moment,
    /// So long after the one before that each process known then has a rate.
    firm: bool,
}

impl Past {
    fn push(&mut self, now: Moment, settings: &Settings) {
        let interval = settings.sampling.interval;
        let firm = self
            .last
            .is_some_and(|last| !Meter::is_too_soon(now.since(last), interval));
        if firm {
            // Whatever came before the last firm one, its value is the base now.
            let keep = self.samples.iter().rposition(|taken| taken.firm);
            self.samples.drain(..keep.unwrap_or(0));
        }
        self.round += 1;
        self.last = Some(now);
        self.samples.push_back(Taken {
            round: self.round,
            now,
            firm,
        });
    }

    /// Takes in, for a process that used nothing, the samples that did not show it.
    fn catch_up(&self, seen: &mut Seen, settings: &Settings) {
        if seen.round < self.round {
            let behind = seen.round;
            for taken in self.samples.iter().filter(|taken| taken.round > behind) {
                seen.idle(taken.now, settings);
            }
            seen.round = self.round;
        }
    }
}

impl Population {
    /// How many there are.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.by_pid.len()
    }

    /// The process that has a PID.
    pub fn at(&self, pid: u32) -> Option<&Seen> {
        self.by_pid.get(&pid)
    }

    /// Whether a process is watched.
    pub fn contains(&self, id: ProcId) -> bool {
        self.get(id).is_some()
    }

    /// What is known of a process. Its CPU and counter may be behind unless it is among [`Self::active`].
    pub fn get(&self, id: ProcId) -> Option<&Seen> {
        self.by_pid.get(&id.pid).filter(|seen| seen.id == id)
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, id: ProcId) -> Option<&mut Seen> {
        self.by_pid.get_mut(&id.pid).filter(|seen| seen.id == id)
    }

    /// What is known of a process as of the last sample.
    pub fn current(&self, id: ProcId, settings: &Settings) -> Option<Seen> {
        let mut seen = self.get(id)?.clone();
        self.past.catch_up(&mut seen, settings);
        Some(seen)
    }

    /// Everybody that could be routed, or has CPU at the last sample.
    pub fn active(&self) -> impl Iterator<Item = &Seen> {
        self.active.iter().filter_map(|pid| self.by_pid.get(pid))
    }

    /// Takes a sample in. Answers whose program is new.
    pub fn take(
        &mut self,
        sample: &Sample,
        now: Moment,
        settings: &Settings,
        rules: &RuleSet,
        generation: u64,
    ) -> Vec<u32> {
        let mut gone = HashMap::new();
        for id in &sample.ended {
            if self.contains(*id) {
                self.active.remove(&id.pid);
                gone.extend(self.by_pid.remove_entry(&id.pid));
            }
        }
        self.trees.ended(&gone, &self.by_pid);
        let mut new = Vec::new();
        for process in &sample.processes {
            let known = self
                .by_pid
                .get_mut(&process.id.pid)
                .filter(|seen| seen.id == process.id);
            let (seen, first) = match known {
                Some(seen) => (seen, false),
                None => {
                    self.by_pid.insert(process.id.pid, Seen::new(process));
                    match self.by_pid.get_mut(&process.id.pid) {
                        Some(seen) => (seen, true),
                        None => continue,
                    }
                }
            };
            if !first {
                self.past.catch_up(seen, settings);
            }
            seen.round = self.past.round + 1;
            seen.update(process, now, settings);
            if seen.judge(process, first, settings, rules, generation) == Program::New {
                new.push(process.id.pid);
            }
            self.active.insert(process.id.pid);
            self.trees.shown(process.id.pid);
        }
        self.past.push(now, settings);
        self.count_trees(now, settings);
        if self.generation != generation {
            self.judge_all(settings, rules, generation);
        }
        let (by_pid, past) = (&mut self.by_pid, &self.past);
        self.active.retain(|pid| {
            by_pid.get_mut(pid).is_some_and(|seen| {
                past.catch_up(seen, settings);
                seen.is_active()
            })
        });
        if self.past.samples.len() > MAX_PAST {
            self.settle(settings);
        }
        new
    }

    /// Brings everybody up to the last sample, before settings that decide about it change.
    pub fn settle(&mut self, settings: &Settings) {
        for seen in self.by_pid.values_mut() {
            self.past.catch_up(seen, settings);
        }
        self.past.samples.clear();
    }

    /// Brings everybody up to the last sample, and calls `each` with each of them.
    pub fn each_current(&mut self, settings: &Settings, mut each: impl FnMut(&mut Seen)) {
        for seen in self.by_pid.values_mut() {
            self.past.catch_up(seen, settings);
            each(seen);
        }
    }

    fn judge_all(&mut self, settings: &Settings, rules: &RuleSet, generation: u64) {
        self.generation = generation;
        for (pid, seen) in &mut self.by_pid {
            seen.judge_again(settings, rules, generation);
            if seen.known.is_some() {
                self.active.insert(*pid);
            }
        }
    }

    /// The parent, its parent, and so on, as far as they are watched. One that started later than its
    /// child is another one that got the PID.
    pub fn ancestors<'a>(&'a self, of: &'a Seen) -> impl Iterator<Item = &'a Seen> {
        let parent = |seen: &&Seen| {
            self.by_pid
                .get(&seen.ppid)
                .filter(|parent| parent.id != seen.id && parent.id.start <= seen.id.start)
        };
        std::iter::successors(parent(&of), parent).take(MAX_ANCESTORS)
    }

    /// Of those, the ones in the same control group: a move of one takes the process along.
    pub fn carriers<'a>(&'a self, of: &'a Seen) -> impl Iterator<Item = &'a Seen> {
        self.ancestors(of).filter(move |other| {
            Arc::ptr_eq(&other.cgroup, &of.cgroup) || other.cgroup == of.cgroup
        })
    }
}
