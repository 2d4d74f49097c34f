//! Carrying out what the engine asks for: one move at a time, beside the loop.

use std::collections::VecDeque;
use std::future::Future;
use std::time::{Duration, Instant};

use futures::channel::oneshot::Receiver;
use guard_policy::action::{Action, Failure, Move, RecoverCause};
use guard_policy::event::{Event, Ticket, Workload};
use guard_system::mover::{Arrival, Route};
use workload_guard_dbus::{Guard1, names};
use zbus::object_server::SignalEmitter;

use super::holds::HoldAnswer;
use super::runner::Runner;
use super::{Guard, Waiting, Wake};
use crate::bus::GuardObject;
use crate::journal;
use crate::record::Record;

/// A change that waits for its turn.
enum Job {
    Move(Move),
    Recover {
        unit: String,
        cause: RecoverCause,
        ticket: Option<Ticket>,
    },
}

/// A change that has ended.
pub enum Finished {
    /// A move into a class.
    Moved {
        /// What was asked for.
        order: Move,
        /// The new workload, or why there is none.
        outcome: Result<Box<Route>, Failure>,
    },
    /// A move back.
    Recovered {
        /// The workload.
        unit: String,
        /// Why.
        cause: RecoverCause,
        /// The call that waits.
        ticket: Option<Ticket>,
        /// Where to, or why not.
        outcome: Result<Arrival, Failure>,
    },
}

/// Changes in order: systemd would run two at once, but then one could steal the other's processes.
#[derive(Default)]
pub struct Jobs {
    queue: VecDeque<Job>,
    running: Option<Running>,
    runner: Runner,
    /// When the last change began.
    began: Option<Instant>,
}

struct Running {
    /// The scope that a recovery empties.
    unit: Option<String>,
    outcome: Receiver<Finished>,
}

impl Jobs {
    /// Whether a recovery of this scope runs or waits.
    pub fn concerns(&self, unit: &str) -> bool {
        self.running
            .as_ref()
            .is_some_and(|running| running.unit.as_deref() == Some(unit))
            || self
                .queue
                .iter()
                .any(|job| matches!(job, Job::Recover { unit: other, .. } if other == unit))
    }

    /// Whether a change runs.
    pub fn is_running(&self) -> bool {
        self.running.is_some()
    }

    fn run<F: Future<Output = Finished>>(
        &mut self,
        unit: Option<String>,
        change: impl FnOnce() -> F + Send + 'static,
    ) {
        self.began = Some(Instant::now());
        let outcome = self.runner.run(change);
        self.running = Some(Running { unit, outcome });
    }

    /// How long the change that has just ended took.
    pub fn took(&self) -> Option<Duration> {
        self.began.map(|began| began.elapsed())
    }

    /// Waits for the running change; for ever when there is none.
    pub async fn next(&mut self) -> Wake {
        let Some(running) = &mut self.running else {
            return std::future::pending().await;
        };
        // Only a panic there ends a change without an outcome.
        let finished = (&mut running.outcome)
            .await
            .expect("a change goes on to its end");
        self.running = None;
        Wake::Finished(finished)
    }
}

impl Guard {
    /// Starts the next change when none runs.
    pub(super) fn start_next(&mut self) {
        if self.jobs.running.is_some() {
            return;
        }
        let Some(job) = self.next_wanted() else {
            return;
        };
        let mover = self.mover.clone();
        match job {
            Job::Move(order) => {
                let class = self.config.settings.class(&order.class).cloned();
                // Out of another workload of ours: home stays where that one came from.
                let earlier = self
                    .workload_of(order.root().pid)
                    .and_then(|unit| self.routes.get(&unit))
                    .map(|record| record.route.clone());
                self.jobs.run(None, move || async move {
                    let outcome = match (class, earlier) {
                        (Some(class), Some(earlier)) => {
                            mover.reroute(&order, &class, &earlier).await
                        }
                        (Some(class), None) => mover.route(&order, &class).await,
                        // The settings changed while the move waited.
                        (None, _) => Err(Failure::UnknownClass(format!(
                            "there is no class {} any more",
                            order.class
                        ))),
                    };
                    Finished::Moved {
                        order,
                        outcome: outcome.map(Box::new),
                    }
                });
            }
            Job::Recover {
                unit,
                cause,
                ticket,
            } => {
                let route = self.routes.get(&unit).map(|record| record.route.clone());
                self.jobs.run(Some(unit.clone()), move || async move {
                    let outcome = match route {
                        Some(route) => mover.recover(&route).await,
                        None => Err(Failure::NoSuchWorkload(format!("{unit} has ended"))),
                    };
                    Finished::Recovered {
                        unit,
                        cause,
                        ticket,
                        outcome,
                    }
                });
            }
        }
    }

    /// Takes the next change out of the queue, past those that another one made needless.
    fn next_wanted(&mut self) -> Option<Job> {
        loop {
            let job = self.jobs.queue.pop_front()?;
            let order = match &job {
                Job::Move(order) => order,
                Job::Recover { unit, cause, .. } if self.engine.is_kept(unit, cause) => {
                    let unit = unit.clone();
                    self.decide(Event::Kept { unit });
                    continue;
                }
                Job::Recover { .. } => return Some(job),
            };
            let root = order.root();
            if self.is_withheld(order) {
                log::debug!("process {root} stays: it, or all routing, is held");
                self.decide(Event::Overtaken { root });
                continue;
            }
            let overtaken = self
                .workload_of(root.pid)
                .is_some_and(|unit| self.engine.is_overtaken(order, &unit));
            if !overtaken {
                return Some(job);
            }
            log::debug!("process {root} went along with the tree that it belongs to");
            self.decide(Event::Overtaken { root });
        }
    }

    /// Queues what the engine asks for.
    pub(super) fn act(&mut self, action: Action) {
        match action {
            Action::Move(order) => self.jobs.queue.push_back(Job::Move(order)),
            Action::Recover {
                unit,
                cause,
                ticket,
            } => {
                self.jobs.queue.push_back(Job::Recover {
                    unit,
                    cause,
                    ticket,
                });
            }
            Action::Held { ticket, id } => {
                if let Some(Waiting::Held(answer)) = self.waiting.remove(&ticket) {
                    self.hold_answers.push(HoldAnswer::Held(answer, id));
                }
            }
            Action::Unheld { ticket, ended } => {
                if let Some(Waiting::Unheld(answer)) = self.waiting.remove(&ticket) {
                    self.hold_answers.push(HoldAnswer::Unheld(answer, ended));
                }
            }
            Action::Refuse { ticket, failure } => {
                if let Some(waiting) = self.waiting.remove(&ticket) {
                    waiting.refuse(failure);
                }
            }
        }
    }

    /// Takes note of a change that has ended, and tells everybody who wants to know.
    pub(super) async fn finished(&mut self, finished: Finished) {
        self.sampler.expect_moved();
        match finished {
            Finished::Moved {
                order,
                outcome: Ok(route),
            } => self.moved(order, *route).await,
            Finished::Moved {
                order,
                outcome: Err(failure),
            } => self.move_failed(order, failure).await,
            Finished::Recovered {
                unit,
                cause,
                ticket,
                outcome: Ok(arrival),
            } => {
                self.recovered(unit, cause, ticket, arrival).await;
            }
            Finished::Recovered {
                unit,
                ticket,
                outcome: Err(failure),
                ..
            } => {
                if let Some(record) = self.routes.get(&unit) {
                    journal::recovery_failed(&record.route, &failure);
                }
                self.refuse(ticket, failure.clone());
                self.decide(Event::Recovered {
                    unit: unit.clone(),
                    outcome: Err(failure),
                });
                // What ended while it was to be brought back is gone after all.
                if !self.still_there(&unit) {
                    self.gone(&unit).await;
                }
            }
        }
    }

    async fn moved(&mut self, order: Move, route: Route) {
        let reason = journal::reason_of(&order.why, order.placement);
        journal::routed(&route, &order.why, reason);
        self.totals.routed += 1;
        self.count_route(reason.as_str(), self.jobs.took());
        let workload = Workload {
            unit: route.unit.clone(),
            class: route.class.clone(),
            root: route.root,
            placement: route.placement,
        };
        let root = order.root();
        let unit = route.unit.clone();
        self.routes.insert(unit.clone(), Record { reason, route });
        self.decide(Event::Moved {
            root,
            outcome: Ok(workload),
        });
        if order.ticket.is_none() {
            self.bring_back_exempt(&unit);
        }
        // The object is there before anybody is told its path.
        self.publish().await;
        let path = names::workload_path(&unit);
        if let (Some(emitter), Some(Record { route, .. })) =
            (self.emitter(), self.routes.get(&unit))
        {
            let sent = Guard1::<GuardObject>::routed(
                &emitter,
                path.clone(),
                route.root.pid,
                &route.class,
                reason.as_str(),
                &route.source.cgroup,
                &route.cgroup,
                &route.command,
            )
            .await;
            report(sent);
        }
        if let Some(Waiting::Placed(answer)) =
            order.ticket.and_then(|ticket| self.waiting.remove(&ticket))
        {
            let _ = answer.send(Ok(path));
        }
    }

    async fn move_failed(&mut self, order: Move, failure: Failure) {
        let error = error_name(&failure);
        journal::move_failed(&order, &failure, &error);
        self.totals.failed += 1;
        if let Some(emitter) = self.emitter() {
            let text = failure.to_string();
            let sent = Guard1::<GuardObject>::move_failed(
                &emitter,
                order.root().pid,
                &order.class,
                &error,
                &text,
            )
            .await;
            report(sent);
        }
        self.refuse(order.ticket, failure.clone());
        self.decide(Event::Moved {
            root: order.root(),
            outcome: Err(failure),
        });
    }

    pub(super) async fn recovered(
        &mut self,
        unit: String,
        cause: RecoverCause,
        ticket: Option<Ticket>,
        mut arrival: Arrival,
    ) {
        self.totals.recovered += 1;
        self.count_recovery(&cause);
        let record = self.routes.remove(&unit);
        if let Some(record) = &record {
            self.throttling.ended(&record.route);
        }
        self.decide(Event::Recovered {
            unit: unit.clone(),
            outcome: Ok(std::mem::take(&mut arrival.processes)),
        });
        // The object is gone before anybody is told that it is.
        self.publish().await;
        if let Some(Record { route, .. }) = record {
            journal::recovered(&route, &cause, &arrival);
            if let Some(emitter) = self.emitter() {
                let sent = Guard1::<GuardObject>::recovered(
                    &emitter,
                    names::workload_path(&unit),
                    route.root.pid,
                    &route.class,
                    &arrival.cgroup,
                    arrival.exact,
                    &arrival.note,
                )
                .await;
                report(sent);
            }
        }
        if let Some(Waiting::Released(answer)) =
            ticket.and_then(|ticket| self.waiting.remove(&ticket))
        {
            let _ = answer.send(Ok(arrival.cgroup));
        }
    }

    /// A workload has ended by itself.
    pub(super) async fn signal_end(&self, route: &Route) {
        if let Some(emitter) = self.emitter() {
            let sent = Guard1::<GuardObject>::ended(
                &emitter,
                names::workload_path(&route.unit),
                route.root.pid,
                &route.class,
                &route.command,
            )
            .await;
            report(sent);
        }
    }

    fn refuse(&mut self, ticket: Option<Ticket>, failure: Failure) {
        if let Some(waiting) = ticket.and_then(|ticket| self.waiting.remove(&ticket)) {
            waiting.refuse(failure);
        }
    }

    /// Whether processes are in the scope of a workload.
    pub(super) fn still_there(&self, unit: &str) -> bool {
        self.routes
            .get(unit)
            .is_some_and(|record| self.cgroups.populated(&record.route.cgroup) == Some(true))
    }

    fn emitter(&self) -> Option<SignalEmitter<'static>> {
        SignalEmitter::new(&self.connection, names::GUARD_PATH).ok()
    }
}

/// The error's name as a method would answer it.
fn error_name(failure: &Failure) -> String {
    zbus::DBusError::name(&crate::bus::error(failure.clone())).to_string()
}

/// A signal that cannot be sent is no reason to stop: the connection's end is seen by the loop.
fn report(sent: zbus::Result<()>) {
    if let Err(error) = sent {
        log::debug!("a signal was not sent: {error}");
    }
}
