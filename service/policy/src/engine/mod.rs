//! The engine: one state, one event at a time, answers what should follow.
//!
//! What it knows is bounded by the watched processes that samples showed and did not report as ended, by
//! [`MAX_WORKLOADS`], by [`adaptive::MAX_COMMANDS`], and by cooldowns that have not expired. What a sample
//! costs is in proportion to the processes that it shows; with adaptive routing, to all that are watched.

pub mod adaptive;
mod apps;
mod detect;
mod executed;
pub mod explain;
mod holds;
pub(crate) mod meter;
mod population;
mod recovery;
mod requests;
mod seen;
mod stay;
mod trees;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use crate::action::{Action, Failure, Move, Placement};
use crate::event::{Event, Sample, Workload};
use crate::holds::{Holds, Terms};
use crate::id::{Moment, ProcId};
use crate::rules::RuleSet;
use crate::settings::Settings;

use population::Population;
pub(crate) use recovery::JITTER_PART;
pub use recovery::Tracked;
use recovery::{Recovering, Returned};
pub use seen::Seen;
pub(crate) use seen::is_excluded;
pub use trees::Tree;

/// Where sustained load goes.
const HEAVY: &str = "heavy";
/// Not a place for detection: who is protected is the person's word.
const PROTECTED: &str = "protected";

/// The most workloads at once, with those on their way.
pub const MAX_WORKLOADS: usize = 1024;
/// The most processes that one request may name.
pub const MAX_PROCESSES: usize = 256;

/// Samples in a row that lack a workload's scope, after which it is forgotten. The event that says so
/// can come before the move's own end is reported; and one sample may be older than the workload.
const MISSING_SAMPLES: u32 = 3;

/// From the second failure in a row on, at least this until the next attempt, doubled with each.
const RETRY_AT_LEAST: Duration = Duration::from_secs(1);
/// How often the wait is doubled.
const RETRY_DOUBLINGS: u32 = 5;

/// The guard's decisions.
#[derive(Debug)]
pub struct Engine {
    settings: Arc<Settings>,
    rules: Arc<RuleSet>,
    /// Counts [`Engine::configure`], so that verdicts of old rules are known.
    generation: u64,
    processes: Population,
    /// By scope.
    workloads: BTreeMap<String, Tracked>,
    /// Moves in flight by root, with every process that they name.
    moving: HashMap<ProcId, Vec<ProcId>>,
    /// Recoveries in flight by scope.
    recovering: HashMap<String, Recovering>,
    /// No attempt by detection before this.
    cooldowns: HashMap<ProcId, Moment>,
    /// Processes that came back, until their tree's cooldown ends.
    returned: HashMap<ProcId, Returned>,
    learned: adaptive::Learned,
    /// What clients and people have the guard leave alone.
    holds: Holds,
    /// Leases on what is being moved, by root; without terms when the owner has left meanwhile.
    leasing: HashMap<ProcId, Option<Terms>>,
}

impl Engine {
    /// An engine that knows of no process.
    pub fn new(settings: Arc<Settings>, rules: Arc<RuleSet>) -> Engine {
        Engine {
            settings,
            rules,
            generation: 0,
            processes: Population::default(),
            workloads: BTreeMap::new(),
            moving: HashMap::new(),
            recovering: HashMap::new(),
            cooldowns: HashMap::new(),
            returned: HashMap::new(),
            learned: adaptive::Learned::default(),
            holds: Holds::default(),
            leasing: HashMap::new(),
        }
    }

    /// Puts other settings and rules in force. Counters go on.
    pub fn configure(&mut self, settings: Arc<Settings>, rules: Arc<RuleSet>) {
        self.processes.settle(&self.settings);
        self.settings = settings;
        self.rules = rules;
        self.generation += 1;
    }

    /// The settings in force.
    pub fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }

    /// Every workload, by the name of its scope.
    pub fn workloads(&self) -> impl Iterator<Item = &Tracked> {
        self.workloads.values()
    }

    /// The workload in a scope.
    pub fn workload(&self, unit: &str) -> Option<&Tracked> {
        self.workloads.get(unit)
    }

    /// The scope of the innermost workload that a control group is in.
    pub fn workload_of(&self, cgroup: &str) -> Option<&str> {
        let tracked = self.workload_in(cgroup)?;
        Some(&tracked.workload.unit)
    }

    /// What is known of a watched process, as of the last sample.
    pub fn process(&self, id: ProcId) -> Option<Seen> {
        self.processes.current(id, &self.settings)
    }

    /// Whether a move that detection asked for is no longer wanted when its turn comes: another move took
    /// its root along meanwhile, into the routed workload `unit`. A large tree takes longer to move than a
    /// sample to come, and the root, which goes first, then carries nothing that the sample still shows.
    pub fn is_overtaken(&self, order: &Move, unit: &str) -> bool {
        let routed = |tracked: &Tracked| tracked.workload.placement == Placement::Routed;
        order.ticket.is_none() && self.workloads.get(unit).is_some_and(routed)
    }

    /// Takes one event in. The caller carries out what it answers, in that order, and reports each
    /// [`Action::Move`] as [`Event::Moved`] (or [`Event::Overtaken`]) and each [`Action::Recover`] as
    /// [`Event::Recovered`].
    pub fn step(&mut self, event: Event, now: Moment) -> Vec<Action> {
        match event {
            Event::Sample(sample) => self.sample(&sample, now),
            Event::Exec(exec) => self.executed(&exec, now),
            Event::Request(request) => vec![self.request(request)],
            Event::Release { ticket, unit } => vec![self.release(ticket, unit)],
            Event::Adopted(workload) => {
                self.track(workload, Vec::new());
                Vec::new()
            }
            Event::Moved { root, outcome } => self.moved(root, outcome, now),
            Event::Hold(event) => self.held(event),
            Event::Kept { unit } => {
                self.recovering.remove(&unit);
                Vec::new()
            }
            Event::Overtaken { root } => {
                self.moving.remove(&root);
                Vec::new()
            }
            Event::Recovered { unit, outcome } => {
                self.recovered(&unit, outcome, now);
                Vec::new()
            }
            Event::Gone { unit } => {
                self.workloads.remove(&unit);
                self.holds.workload_ended(&unit);
                Vec::new()
            }
        }
    }

    fn sample(&mut self, sample: &Sample, now: Moment) -> Vec<Action> {
        self.cooldowns.retain(|_, until| *until > now);
        self.returned.retain(|_, returned| returned.until > now);
        let mut actions = self.recover_calm(&sample.workloads, now);
        actions.extend(self.detect(sample, now));
        actions
    }

    fn moved(
        &mut self,
        root: ProcId,
        outcome: Result<Workload, Failure>,
        now: Moment,
    ) -> Vec<Action> {
        let named = self.moving.remove(&root).unwrap_or_default();
        match outcome {
            Ok(workload) => {
                self.track(workload.clone(), named);
                self.lease(root, Some(&workload))
            }
            Err(failure) => {
                let following = self.lease(root, None);
                let mut failures = 1;
                if let Some(seen) = self.processes.get_mut(root) {
                    // The process itself does not allow it: only another program would.
                    if matches!(failure, Failure::NeverMoved(_) | Failure::OutOfReach(_)) {
                        seen.refused = true;
                    } else {
                        seen.failures = seen.failures.saturating_add(1);
                        failures = seen.failures;
                    }
                }
                let until = self.next_try(failures, now);
                self.cooldowns.insert(root, until);
                following
            }
        }
    }

    fn track(&mut self, workload: Workload, named: Vec<ProcId>) {
        match self.workloads.get_mut(&workload.unit) {
            Some(known) => known.workload = workload,
            None => {
                self.workloads
                    .insert(workload.unit.clone(), Tracked::new(workload, named));
            }
        }
    }

    fn cool_down(&mut self, process: ProcId, now: Moment) {
        self.cooldowns.insert(process, self.cooled_down(now));
    }

    /// The end of a cooldown that begins now.
    fn cooled_down(&self, now: Moment) -> Moment {
        Moment(now.0.saturating_add(self.settings.routing.cooldown))
    }

    /// When something that failed so often in a row is tried again: what fails for ever must not keep
    /// systemd busy for ever, whatever the cooldown.
    fn next_try(&self, failures: u32, now: Moment) -> Moment {
        let cooldown = self.settings.routing.cooldown;
        let wait = match failures {
            0 | 1 => cooldown,
            more => {
                let doubled = 1 << (more - 1).min(RETRY_DOUBLINGS);
                cooldown.max(RETRY_AT_LEAST).saturating_mul(doubled)
            }
        };
        Moment(now.0.saturating_add(wait))
    }

    /// Workloads, and moves that will make one.
    fn load(&self) -> usize {
        self.workloads.len() + self.moving.len()
    }
}
