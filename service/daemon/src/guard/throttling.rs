//! What budgets cost each workload.

use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

use guard_insight::throttling::Throttled;
use guard_system::mover::Route;

use super::Guard;

/// Lines for one snapshot, the greatest first: a day of them has to fit in the file.
const MAX_LINES: usize = 64;
/// Workloads that ended since the last snapshot; of more the rest is left out.
const MAX_ENDED: usize = 256;

/// How long its budget held up each scope.
#[derive(Default)]
pub struct Throttling {
    /// By scope, in microseconds, where the kernel tells.
    now: HashMap<String, u64>,
    /// The same as the history was told.
    told: HashMap<String, Option<u64>>,
    ended: Vec<Throttled>,
}

impl Throttling {
    /// That of a scope, in microseconds, where the kernel tells.
    pub fn of(&self, unit: &str) -> Option<u64> {
        self.now.get(unit).copied()
    }

    /// A workload has ended, or is back where it came from: it is in the next snapshot once more.
    pub fn ended(&mut self, route: &Route) {
        if self.ended.len() < MAX_ENDED {
            let last = self.line(route);
            self.ended.push(last);
        }
    }

    /// What the history has not been told yet.
    pub fn news<'a>(&mut self, routes: impl Iterator<Item = &'a Route>) -> Vec<Throttled> {
        let living: Vec<Throttled> = routes.map(|route| self.line(route)).collect();
        self.told
            .retain(|unit, _| living.iter().any(|line| line.unit == *unit));
        let mut news = std::mem::take(&mut self.ended);
        news.extend(living);
        news.retain(|line| self.told.get(&line.unit) != Some(&line.throttled_usec));
        if news.len() > MAX_LINES {
            // In their order all the same: a scope that was made anew comes after the one before.
            let mut all: Vec<Option<u64>> = news.iter().map(|line| line.throttled_usec).collect();
            all.sort_unstable();
            let least = all[all.len() - MAX_LINES];
            news.retain(|line| line.throttled_usec >= least);
            news.truncate(MAX_LINES);
        }
        for line in &news {
            self.told.insert(line.unit.clone(), line.throttled_usec);
        }
        news
    }

    fn line(&self, route: &Route) -> Throttled {
        Throttled {
            ts: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| since.as_secs()),
            unit: route.unit.clone(),
            class: route.class.clone(),
            command: route.command.clone(),
            since: route.since / 1_000_000,
            throttled_usec: self.of(&route.unit),
        }
    }
}

impl Guard {
    /// After each sample. What is idle is held up by none: its file is not read again.
    pub(super) fn read_throttling(&mut self) {
        let mut before = std::mem::take(&mut self.throttling.now);
        for tracked in self.engine.workloads() {
            let unit = &tracked.workload.unit;
            let Some(record) = self.routes.get(unit) else {
                continue;
            };
            let idle = tracked.cpu == Some(0.0);
            let known = before.remove(unit).filter(|_| idle);
            let read = || self.cgroups.throttled_usec(&record.route.cgroup);
            if let Some(usec) = known.or_else(read) {
                self.throttling.now.insert(unit.clone(), usec);
            }
        }
    }
}
