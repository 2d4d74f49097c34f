//! CPU of process trees whose processes live too briefly to be seen as hot themselves: `make -j8`, `npm
//! test`, a shell's loop over compilers.
//!
//! What a tree used since the last sample is what its living processes used themselves, and what its ended
//! ones used, which the kernel adds to the parent that waits for them (`cutime` and `cstime`); of the
//! latter, what was counted while they lived is taken off again. A process explains its tree's load where
//! that load is not the work of a child that goes on: then the child is looked at instead. So the one
//! that is found is the lowest, `make` and not the terminal above it.

use std::collections::{BTreeSet, HashMap};

use super::meter::Meter;
use super::population::Population;
use super::seen::Seen;
use crate::id::Moment;
use crate::settings::Settings;

/// A process that has ended is waited for soon, or by nobody: samples for which its time is expected to
/// show in its parent's.
const DEBT_SAMPLES: u8 = 2;

/// What is known of the tree below a process, with itself.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// CPU of the tree at the last sample, in percent of one logical CPU, where it used any.
    pub cpu: Option<f64>,
    /// Samples, in a row of those in which the tree was at or above the routing threshold, that no child
    /// explains.
    pub hot_samples: u32,
    /// Time of the process and of the children it waited for, as far as it was counted; `None` before
    /// that.
    counted: Option<u64>,
}

/// What is kept between samples.
#[derive(Debug, Default)]
pub(super) struct Trees {
    last: Option<Moment>,
    /// Shown since then.
    shown: BTreeSet<u32>,
    /// The latest start of a process at the last sample: who was born since has a later one.
    newest: u64,
    /// By the PID of who will wait for them: time of ended processes that was counted while they lived.
    debts: HashMap<u32, Debt>,
    /// Trees with a counter.
    hot: BTreeSet<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Debt {
    usec: u64,
    age: u8,
}

impl Trees {
    /// A process was shown.
    pub fn shown(&mut self, pid: u32) {
        self.shown.insert(pid);
    }

    /// Processes have ended, and are no longer in `living`.
    pub fn ended(&mut self, gone: &HashMap<u32, Seen>, living: &HashMap<u32, Seen>) {
        for seen in gone.values() {
            let Some(usec) = seen.tree.counted.filter(|usec| *usec > 0) else {
                continue;
            };
            // Who waits for it may have ended too, and be waited for by the next one.
            let mut heir = seen.ppid;
            for _ in 0..gone.len() {
                match gone.get(&heir) {
                    Some(other) if !living.contains_key(&heir) => heir = other.ppid,
                    _ => break,
                }
            }
            if living.contains_key(&heir) {
                let debt = self.debts.entry(heir).or_default();
                debt.usec += usec;
                debt.age = 0;
            }
        }
    }
}

impl Population {
    /// Counts trees up to the sample that was just taken in. Answers whose counter goes on.
    pub(super) fn count_trees(&mut self, now: Moment, settings: &Settings) {
        let interval = settings.sampling.interval;
        let elapsed = self.trees.last.map(|last| now.since(last));
        if elapsed.is_some_and(|elapsed| Meter::is_too_soon(elapsed, interval)) {
            return;
        }
        self.trees.last = Some(now);
        let used = self.used_since();
        let fresh = elapsed.is_none_or(|elapsed| Meter::is_stale(elapsed, interval));
        let before = std::mem::take(&mut self.trees.hot);
        let mut loads = HashMap::new();
        if let Some(elapsed) = elapsed.filter(|_| !fresh) {
            let percent = 100.0 / elapsed.as_micros().max(1) as f64;
            loads = self.loads(&used, percent, settings.routing.cpu_threshold);
        }
        for pid in before.iter().filter(|pid| !loads.contains_key(pid)) {
            if let Some(seen) = self.by_pid.get_mut(pid) {
                (seen.tree.cpu, seen.tree.hot_samples) = (None, 0);
            }
        }
        for (pid, load) in loads {
            let Some(seen) = self.by_pid.get_mut(&pid) else {
                continue;
            };
            // As for the process alone, first sight is no rate.
            let known = seen.tree.counted.is_some();
            if known && load.tree >= settings.routing.cpu_threshold {
                seen.tree.cpu = Some(load.tree);
                if load.own >= settings.routing.cpu_threshold {
                    seen.tree.hot_samples = seen.tree.hot_samples.saturating_add(1);
                }
                self.trees.hot.insert(pid);
                self.active.insert(pid);
            } else {
                (seen.tree.cpu, seen.tree.hot_samples) = (None, 0);
            }
        }
        for pid in std::mem::take(&mut self.trees.shown) {
            if let Some(seen) = self.by_pid.get_mut(&pid) {
                seen.tree.counted = Some(seen.total_usec());
                self.trees.newest = self.trees.newest.max(seen.id.start);
            }
        }
    }

    /// What each shown process and the children that it waited for used since the last sample, in
    /// microseconds, if anything.
    fn used_since(&mut self) -> Vec<(u32, u64)> {
        let mut used = Vec::new();
        for pid in &self.trees.shown {
            let Some(seen) = self.by_pid.get(pid) else {
                continue;
            };
            let mut usec = match seen.tree.counted {
                Some(counted) => seen.total_usec().saturating_sub(counted),
                None if self.was_born_since(seen) => seen.total_usec(),
                None => 0,
            };
            if let Some(debt) = self.trees.debts.get_mut(pid) {
                let paid = debt.usec.min(usec);
                debt.usec -= paid;
                usec -= paid;
            }
            if usec > 0 {
                used.push((*pid, usec));
            }
        }
        self.trees.debts.retain(|_, debt| {
            debt.age += 1;
            debt.usec > 0 && debt.age < DEBT_SAMPLES
        });
        used
    }

    /// Whether a process that was not seen before is one that started after the last sample, and not one
    /// that came from elsewhere with what it had used there.
    fn was_born_since(&self, seen: &Seen) -> bool {
        seen.id.start >= self.trees.newest && self.ancestors(seen).next().is_some()
    }

    /// The load of each tree that used anything.
    fn loads(&self, used: &[(u32, u64)], percent: f64, threshold: f64) -> HashMap<u32, Load> {
        let mut loads: HashMap<u32, Load> = HashMap::new();
        for (pid, usec) in used {
            let Some(seen) = self.by_pid.get(pid) else {
                continue;
            };
            for carrier in std::iter::once(seen).chain(self.carriers(seen)) {
                loads.entry(carrier.id.pid).or_default().usec += usec;
            }
        }
        for load in loads.values_mut() {
            load.tree = load.usec as f64 * percent;
            load.own = load.tree;
        }
        let explained: Vec<(u32, f64)> = loads
            .iter()
            .filter_map(|(pid, load)| {
                let seen = self.by_pid.get(pid)?;
                let parent = self.carriers(seen).next()?;
                // A child that was there before and is hot explains itself; what is in a session of its
                // own is somebody else's work: a terminal is not what its tabs do.
                let goes_on = seen.tree.counted.is_some() && load.tree >= threshold;
                (goes_on || seen.leads_session).then_some((parent.id.pid, load.tree))
            })
            .collect();
        for (parent, cpu) in explained {
            if let Some(load) = loads.get_mut(&parent) {
                load.own -= cpu;
            }
        }
        loads
    }
}

/// What a tree used since the last sample.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    usec: u64,
    /// In percent of one logical CPU.
    tree: f64,
    /// Likewise, without the children that explain what they use.
    own: f64,
}
