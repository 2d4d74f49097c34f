//! Workloads: their CPU, and when they come back.

use std::time::Duration;

use super::meter::{Meter, Reading};
use super::{Engine, MISSING_SAMPLES};
use crate::action::{Action, Failure, Placement, RecoverCause};
use crate::event::{Usage, Workload};
use crate::id::{Moment, ProcId};
use crate::settings::Settings;

/// A sample comes at its time give or take some milliseconds. Where the dwell is a multiple of the interval, as it
/// is by default, one that comes a bit early would else cost a whole interval.
pub(crate) const JITTER_PART: u32 = 10;

/// A workload with its counters.
#[derive(Clone, Debug)]
pub struct Tracked {
    /// What it is.
    pub workload: Workload,
    /// CPU of the whole scope at the last sample, in percent of one logical CPU, where there were two.
    pub cpu: Option<f64>,
    /// Samples in a row at or above the routing threshold.
    pub hot_samples: u32,
    /// Samples in a row below the recovery threshold.
    pub low_samples: u32,
    /// Processes that the caller named, which are as much its word as the root is.
    pub(super) named: Vec<ProcId>,
    /// It is to be released as soon as that can be, and why.
    pub(super) owed: Option<RecoverCause>,
    /// A rule names the root's program.
    pub(super) root_known: bool,
    low_since: Option<Moment>,
    /// No attempt to bring it back before this.
    not_before: Option<Moment>,
    /// Attempts that failed, one after the other.
    failures: u32,
    missing: u32,
    meter: Meter,
}

impl Tracked {
    pub(super) fn new(workload: Workload, named: Vec<ProcId>) -> Tracked {
        Tracked {
            workload,
            cpu: None,
            hot_samples: 0,
            low_samples: 0,
            named,
            owed: None,
            root_known: false,
            low_since: None,
            not_before: None,
            failures: 0,
            missing: 0,
            meter: Meter::default(),
        }
    }

    fn update(&mut self, usage_usec: u64, now: Moment, settings: &Settings) {
        self.missing = 0;
        match self.meter.read(now, usage_usec, settings.sampling.interval) {
            Reading::TooSoon => {}
            Reading::Fresh => {
                self.cpu = None;
                self.hot_samples = 0;
                self.busy();
            }
            Reading::Percent(cpu) => {
                self.cpu = Some(cpu);
                let hot = cpu >= settings.routing.cpu_threshold;
                self.hot_samples = if hot {
                    self.hot_samples.saturating_add(1)
                } else {
                    0
                };
                if cpu < settings.recovery.cpu_threshold {
                    self.low_samples = self.low_samples.saturating_add(1);
                    self.low_since.get_or_insert(now);
                } else {
                    self.busy();
                }
            }
        }
    }

    fn busy(&mut self) {
        self.low_samples = 0;
        self.low_since = None;
    }

    /// Whether an attempt to bring it back failed just now.
    pub(super) fn is_resting(&self) -> bool {
        self.not_before.is_some()
    }

    /// For how long its CPU has been low.
    pub(super) fn low_for(&self, now: Moment) -> Option<Duration> {
        self.low_since.map(|since| now.since(since))
    }

    /// For how long it is left where it is after an attempt that failed.
    pub(super) fn rests_for(&self, now: Moment) -> Option<Duration> {
        self.not_before.map(|moment| moment.since(now))
    }

    /// Its CPU, once it was low for long enough.
    fn calm(&self, now: Moment, settings: &Settings) -> Option<f64> {
        let since = self.low_since?;
        let due = self.workload.placement == Placement::Routed
            && self.low_samples >= settings.recovery.samples
            && now.since(since) + settings.sampling.interval / JITTER_PART
                >= settings.recovery.dwell
            && !self.is_resting();
        self.cpu.filter(|_| due)
    }
}

/// A workload on its way back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recovering {
    pub root: ProcId,
    /// Somebody released it.
    pub on_word: bool,
}

/// A process that came back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Returned {
    /// The end of its tree's cooldown.
    pub until: Moment,
    /// Somebody released it: nothing of the tree is routed before then.
    pub on_word: bool,
}

impl Engine {
    /// Counts, and brings back what has been calm for long enough.
    pub(super) fn recover_calm(&mut self, usages: &[Usage], now: Moment) -> Vec<Action> {
        for tracked in self.workloads.values_mut() {
            tracked.missing += 1;
        }
        let mut actions = Vec::new();
        let paused = self.holds.is_paused();
        for usage in usages {
            let Some(tracked) = self.workloads.get_mut(&usage.unit) else {
                continue;
            };
            tracked.update(usage.usage_usec, now, &self.settings);
            let root = tracked.workload.root;
            let busy = self.recovering.contains_key(&usage.unit) || self.moving.contains_key(&root);
            if tracked.not_before.is_some_and(|moment| moment <= now) {
                tracked.not_before = None;
            }
            let calm = tracked
                .calm(now, &self.settings)
                .filter(|_| !paused && !self.holds.is_pinned(&usage.unit))
                .map(|cpu| RecoverCause::Calm {
                    cpu,
                    samples: tracked.low_samples,
                });
            let owed = tracked.owed.clone().filter(|_| !tracked.is_resting());
            if let Some(cause) = owed.or(calm).filter(|_| !busy) {
                let recovering = Recovering {
                    root,
                    on_word: false,
                };
                self.recovering.insert(usage.unit.clone(), recovering);
                actions.push(Action::Recover {
                    unit: usage.unit.clone(),
                    cause,
                    ticket: None,
                });
            }
        }
        let missing = |tracked: &Tracked| tracked.missing >= MISSING_SAMPLES;
        for (unit, _) in self
            .workloads
            .iter()
            .filter(|(_, tracked)| missing(tracked))
        {
            self.holds.workload_ended(unit);
        }
        self.workloads.retain(|_, tracked| !missing(tracked));
        actions
    }

    pub(super) fn recovered(
        &mut self,
        unit: &str,
        outcome: Result<Vec<ProcId>, Failure>,
        now: Moment,
    ) {
        let in_flight = self.recovering.remove(unit);
        match outcome {
            Ok(processes) => {
                self.holds.workload_ended(unit);
                let tracked = self
                    .workloads
                    .remove(unit)
                    .map(|tracked| tracked.workload.root);
                if let Some(root) = tracked.or(in_flight.map(|recovering| recovering.root)) {
                    self.cool_down(root, now);
                }
                let returned = Returned {
                    until: self.cooled_down(now),
                    on_word: in_flight.is_some_and(|recovering| recovering.on_word),
                };
                for id in processes {
                    self.returned.insert(id, returned);
                    // A sample may have shown it while it was on its way.
                    if let Some(seen) = self.processes.get_mut(id) {
                        seen.spent = true;
                    }
                }
            }
            Err(Failure::NoSuchWorkload(_)) => {
                self.holds.workload_ended(unit);
                self.workloads.remove(unit);
            }
            Err(_) => {
                let Some(tracked) = self.workloads.get_mut(unit) else {
                    return;
                };
                tracked.failures = tracked.failures.saturating_add(1);
                let failures = tracked.failures;
                let until = self.next_try(failures, now);
                if let Some(tracked) = self.workloads.get_mut(unit) {
                    tracked.not_before = Some(until);
                }
            }
        }
    }
}
