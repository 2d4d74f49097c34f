//! What callers ask for.

use super::{Engine, MAX_PROCESSES, MAX_WORKLOADS, PROTECTED, Recovering};
use crate::action::{Action, Failure, Move, RecoverCause, Why};
use crate::event::{Request, Ticket};
use crate::id::ProcId;
use crate::source::nearest;

impl Engine {
    pub(super) fn request(&mut self, mut request: Request) -> Action {
        let mut processes: Vec<ProcId> =
            Vec::with_capacity(request.processes.len().min(MAX_PROCESSES));
        for process in request.processes.drain(..).take(MAX_PROCESSES + 1) {
            if !processes.contains(&process) {
                processes.push(process);
            }
        }
        if let Err(failure) = self.may(&request, &processes) {
            return Action::Refuse {
                ticket: request.ticket,
                failure,
            };
        }
        let order = Move {
            processes,
            class: request.class,
            placement: request.placement,
            why: Why::Asked {
                reason: request.reason,
            },
            ticket: Some(request.ticket),
        };
        self.moving.insert(order.root(), order.processes.clone());
        if request.lease.is_some() {
            self.leasing.insert(order.root(), request.lease);
        }
        Action::Move(order)
    }

    fn may(&self, request: &Request, processes: &[ProcId]) -> Result<(), Failure> {
        if processes.is_empty() {
            return Err(Failure::NoSuchProcess("no process was named".to_owned()));
        }
        if processes.len() > MAX_PROCESSES {
            return Err(Failure::LimitExceeded(format!(
                "at most {MAX_PROCESSES} processes can be named at once"
            )));
        }
        if self.settings.class(&request.class).is_none() {
            return Err(Failure::UnknownClass(self.no_class(&request.class)));
        }
        if request.class == PROTECTED && self.is_bounded(request.caller_unit.as_deref()) {
            return Err(Failure::OutOfReach(
                "work of another class cannot place itself in protected; \
                 its user can, from outside of that work"
                    .to_owned(),
            ));
        }
        if let Some(process) = processes.iter().find(|process| self.is_busy(**process)) {
            return Err(Failure::LimitExceeded(format!(
                "process {process} is busy: it is being moved already"
            )));
        }
        if self.load() >= MAX_WORKLOADS {
            return Err(Failure::LimitExceeded(format!(
                "there are {MAX_WORKLOADS} workloads already"
            )));
        }
        self.may_lease(request.lease.as_ref())
    }

    pub(super) fn release(&mut self, ticket: Ticket, unit: String) -> Action {
        let refuse = |failure| Action::Refuse { ticket, failure };
        let Some(tracked) = self.workloads.get(&unit) else {
            return refuse(Failure::NoSuchWorkload(format!("{unit} holds no workload")));
        };
        let root = tracked.workload.root;
        if self.recovering.contains_key(&unit) || self.moving.contains_key(&root) {
            return refuse(Failure::LimitExceeded(format!(
                "{unit} is busy: it is being moved already"
            )));
        }
        self.recovering.insert(
            unit.clone(),
            Recovering {
                root,
                on_word: true,
            },
        );
        Action::Recover {
            unit,
            cause: RecoverCause::Released,
            ticket: Some(ticket),
        }
    }

    /// Whether a process is named by a move in flight, or its workload is on its way back.
    pub(super) fn is_busy(&self, process: ProcId) -> bool {
        self.moving.contains_key(&process)
            || self.moving.values().any(|named| named.contains(&process))
            || self
                .recovering
                .values()
                .any(|recovering| recovering.root == process)
    }

    /// Whether a caller is in work of a class other than protected. Placed work counts too: routed work
    /// could else promote itself in two steps, by a placement in heavy first.
    pub(super) fn is_bounded(&self, caller_unit: Option<&str>) -> bool {
        caller_unit
            .and_then(|unit| self.workloads.get(unit))
            .is_some_and(|tracked| tracked.workload.class != PROTECTED)
    }

    fn no_class(&self, wanted: &str) -> String {
        let names: Vec<&str> = self
            .settings
            .classes
            .iter()
            .map(|class| class.name.as_str())
            .collect();
        let meant = nearest(wanted, names.iter().copied())
            .map_or(String::new(), |name| format!(" (did you mean {name}?)"));
        format!(
            "no class {:?}{meant}; there are {}",
            crate::printable::printable(wanted),
            names.join(", ")
        )
    }
}
