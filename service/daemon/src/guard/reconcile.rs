//! Making what the guard remembers agree with what systemd has: after a start, a reload, a new manager.

use guard_policy::action::{Placement, RecoverCause};
use guard_policy::event::{Event, Workload};
use guard_policy::id::ProcId;
use guard_policy::reconcile::{Decision, Live, Saved, reconcile};
use guard_system::mover::{Emptied, LiveScope};
use workload_guard_dbus::scope::{Origin, ScopeName};
use workload_guard_dbus::types::Reason;

use super::Guard;
use crate::record::Record;

impl Guard {
    /// Takes over what is there, lets go of what is not, and stops scopes that nobody is in.
    pub(super) async fn reconcile(&mut self) {
        let scopes = match self.mover.live_scopes().await {
            Ok(scopes) => scopes,
            Err(failure) => {
                log::warn!(
                    "the scopes of earlier work cannot be listed: {failure}; what is known is kept"
                );
                return;
            }
        };
        let saved: Vec<Saved> = self
            .routes
            .values()
            .map(|Record { route, .. }| Saved {
                unit: route.unit.clone(),
                class: route.class.clone(),
                root: route.root,
                placement: route.placement,
            })
            .collect();
        let live: Vec<Live> = scopes
            .iter()
            .filter(|scope| !self.jobs.concerns(&scope.unit))
            .map(live)
            .collect();
        for decision in reconcile(&saved, &live) {
            match decision {
                Decision::Keep { unit, root } => {
                    let Some(Record { route, .. }) = self.routes.get_mut(&unit) else {
                        continue;
                    };
                    route.root = root;
                    if let Some(scope) = scopes
                        .iter()
                        .find(|scope| scope.unit == unit && !scope.cgroup.is_empty())
                    {
                        route.cgroup.clone_from(&scope.cgroup);
                    }
                    let workload = Workload {
                        unit,
                        class: route.class.clone(),
                        root,
                        placement: route.placement,
                    };
                    self.decide(Event::Adopted(workload));
                }
                Decision::AdoptUnknown {
                    unit,
                    class,
                    placement,
                    root,
                } => {
                    let Some(scope) = scopes.iter().find(|scope| scope.unit == unit) else {
                        continue;
                    };
                    match self.mover.rebuild(scope, root).await {
                        Ok(route) => {
                            log::info!(
                                "found {unit} with process {root}, which no saved route names: taken over"
                            );
                            let reason = match placement {
                                Placement::Placed => Reason::Placed,
                                Placement::Routed => Reason::Unknown,
                            };
                            self.routes.insert(unit.clone(), Record { reason, route });
                            self.decide(Event::Adopted(Workload {
                                unit,
                                class,
                                root,
                                placement,
                            }));
                        }
                        Err(failure) => log::warn!("{unit} cannot be taken over: {failure}"),
                    }
                }
                Decision::BringHome { unit, root } => self.bring_home(&unit, root).await,
                Decision::StopEmpty { unit } => {
                    match self.mover.stop_empty(&unit).await {
                        Ok(Emptied::Stopped) => log::info!("{unit} held no process: stopped"),
                        Ok(Emptied::Ended | Emptied::Kept) => {}
                        Err(failure) => log::warn!("{unit} cannot be stopped: {failure}"),
                    }
                    if !self.still_there(&unit) {
                        self.forget(&unit);
                    }
                }
                Decision::DropSaved { unit } => self.forget(&unit),
            }
        }
    }

    /// Takes up a recovery that was cut off.
    async fn bring_home(&mut self, unit: &str, root: ProcId) {
        if self.jobs.concerns(unit) {
            return;
        }
        let Some(Record { route, .. }) = self.routes.get_mut(unit) else {
            return;
        };
        route.root = root;
        let route = route.clone();
        self.decide(Event::Adopted(Workload {
            unit: unit.to_owned(),
            class: route.class.clone(),
            root,
            placement: route.placement,
        }));
        match self.mover.recover(&route).await {
            Ok(arrival) => {
                self.recovered(unit.to_owned(), RecoverCause::Resumed, None, arrival)
                    .await;
            }
            Err(failure) => crate::journal::recovery_failed(&route, &failure),
        }
    }

    fn forget(&mut self, unit: &str) {
        if !self.jobs.concerns(unit)
            && let Some(record) = self.routes.remove(unit)
        {
            self.tell_the_end(&record.route);
            self.decide(Event::Gone {
                unit: unit.to_owned(),
            });
        }
    }
}

/// The scopes that a half-way stop can belong to.
fn passing_of(name: &ScopeName) -> Vec<String> {
    let of = |origin| {
        ScopeName {
            origin,
            ..name.clone()
        }
        .to_string()
    };
    match name.origin {
        Origin::Passing => vec![of(Origin::Routed), of(Origin::Placed)],
        _ => Vec::new(),
    }
}

fn live(scope: &LiveScope) -> Live {
    let placement = match scope.name.origin {
        Origin::Routed => Some(Placement::Routed),
        Origin::Placed => Some(Placement::Placed),
        // Home already: watched like any other, and no workload.
        Origin::Returned | Origin::Passing => None,
    };
    Live {
        unit: scope.unit.clone(),
        class: placement.map(|_| scope.name.class.clone()),
        placement,
        passing_of: passing_of(&scope.name),
        named_root: Some(ProcId {
            pid: scope.name.pid,
            start: scope.name.start,
        }),
        processes: scope.processes.clone(),
    }
}
