//! Making what the guard remembers agree with what systemd has: after a start, a reload, a new manager.

use guard_policy::action::Placement;
use guard_policy::event::{Event, Workload};
use guard_policy::reconcile::{Decision, Live, Saved, reconcile};
use guard_system::mover::LiveScope;
use workload_guard_dbus::scope::Origin;
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
                Decision::StopEmpty { unit } => {
                    log::info!("{unit} holds no process: stopped");
                    if let Err(failure) = self.mover.stop_empty(&unit).await {
                        log::warn!("{unit} cannot be stopped: {failure}");
                    }
                    self.forget(&unit);
                }
                Decision::DropSaved { unit } => self.forget(&unit),
            }
        }
    }

    fn forget(&mut self, unit: &str) {
        if !self.jobs.concerns(unit)
            && let Some(record) = self.routes.remove(unit)
        {
            crate::journal::ended(&record.route);
            self.decide(Event::Gone {
                unit: unit.to_owned(),
            });
        }
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
        named_root: Some(guard_policy::id::ProcId {
            pid: scope.name.pid,
            start: scope.name.start,
        }),
        processes: scope.processes.clone(),
    }
}
