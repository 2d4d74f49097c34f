//! One process, seen by the policy in force and by the shadow policy, each move carried out at once.

use std::sync::Arc;
use std::time::Duration;

use guard_policy::action::Action;
use guard_policy::engine::Engine;
use guard_policy::event::{Event, Process, Sample, Usage, Workload};
use guard_policy::id::{Moment, ProcId};
use guard_policy::rules::RuleSet;
use guard_policy::settings::Settings;
use guard_policy::shadow::{Decision, Shadow};

const WATCHED: &str = "/protected.slice/work.scope";
const HEAVY: &str = "/heavy.slice/work.scope";
const SCOPE: &str = "work.scope";
const PROCESS: ProcId = ProcId { pid: 7, start: 1 };

/// When a policy routed the process and brought it back for the first time, since the first sample.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Routed.
    pub route: Option<Duration>,
    /// Brought back.
    pub recover: Option<Duration>,
}

/// What both policies do with the same samples: the one in force, then the shadow.
pub fn replay(loads: &[f64], settings: &Arc<Settings>) -> (Outcome, Outcome) {
    let interval = settings.sampling.interval;
    let mut machine = Machine {
        engine: Engine::new(Arc::clone(settings), Arc::new(RuleSet::default())),
        shadow: Shadow::default(),
        settings: Arc::clone(settings),
        used: 0,
        used_in_heavy: 0,
        routed: false,
        at: Duration::ZERO,
        baseline: Outcome::default(),
        candidate: Outcome::default(),
    };
    // What makes the next sample, the first of the trace, a rate.
    machine.sample(interval);
    for (n, load) in loads.iter().enumerate() {
        machine.burn((load / 100.0 * interval.as_micros() as f64).round() as u64);
        machine.at = interval * u32::try_from(n).unwrap_or(u32::MAX);
        machine.sample(interval * 2 + machine.at);
    }
    (machine.baseline, machine.candidate)
}

struct Machine {
    engine: Engine,
    shadow: Shadow,
    settings: Arc<Settings>,
    /// CPU time of the process, in microseconds.
    used: u64,
    /// Of it, since it was moved.
    used_in_heavy: u64,
    routed: bool,
    /// Since the first sample.
    at: Duration,
    baseline: Outcome,
    candidate: Outcome,
}

impl Machine {
    fn burn(&mut self, usec: u64) {
        self.used += usec;
        if self.routed {
            self.used_in_heavy += usec;
        }
    }

    fn process(&self) -> Process {
        Process {
            id: PROCESS,
            ppid: 1,
            cgroup: if self.routed { HEAVY } else { WATCHED }.into(),
            cpu_usec: self.used,
            reaped_usec: 0,
            leads_session: false,
            has_terminal: false,
            argv: Arc::new([Box::from("a-program")]),
        }
    }

    fn sample(&mut self, now: Duration) {
        let mut sample = Sample::default();
        let mut inside = Vec::new();
        if self.routed {
            inside.push(self.process());
            sample.workloads.push(Usage {
                unit: SCOPE.to_owned(),
                usage_usec: self.used_in_heavy,
            });
        } else {
            sample.processes.push(self.process());
        }
        let now = Moment(now);
        for candidate in self.shadow.sample(&sample, &inside, now, &self.settings) {
            match candidate.decision {
                Decision::Route => self.candidate.route.get_or_insert(self.at),
                Decision::Recover => self.candidate.recover.get_or_insert(self.at),
            };
        }
        for action in self.engine.step(Event::Sample(sample), now) {
            let outcome = self.carry_out(&action);
            self.engine.step(outcome, now);
        }
    }

    fn carry_out(&mut self, action: &Action) -> Event {
        self.used_in_heavy = 0;
        match action {
            Action::Move(order) => {
                self.baseline.route.get_or_insert(self.at);
                self.routed = true;
                Event::Moved {
                    root: order.root(),
                    outcome: Ok(Workload {
                        unit: SCOPE.to_owned(),
                        class: order.class.clone(),
                        root: order.root(),
                        placement: order.placement,
                    }),
                }
            }
            Action::Recover { unit, .. } => {
                self.baseline.recover.get_or_insert(self.at);
                self.routed = false;
                Event::Recovered {
                    unit: unit.clone(),
                    outcome: Ok(vec![PROCESS]),
                }
            }
            Action::Refuse { .. } | Action::Held { .. } | Action::Unheld { .. } => {
                unreachable!("nobody asks for anything")
            }
        }
    }
}
