//! Callers want something.

use super::world::World;
use crate::action::Placement;
use crate::event::{Event, Request, Ticket};

impl World {
    pub fn request(&mut self) {
        let mut processes = Vec::new();
        for _ in 0..1 + self.dice.below(2) {
            if let Some(pid) = self.any_process() {
                processes.push(self.processes[&pid].id);
            }
        }
        let units: Vec<String> = self.scopes.keys().cloned().collect();
        let caller_unit = self
            .dice
            .pick(&units)
            .cloned()
            .filter(|_| self.now.as_secs().is_multiple_of(3));
        let request = Request {
            ticket: self.ticket(),
            processes,
            class: (*self
                .dice
                .pick(&["heavy", "protected", "nonsense"])
                .expect("classes"))
            .to_owned(),
            placement: if self.dice.one_in(2) {
                Placement::Placed
            } else {
                Placement::Routed
            },
            reason: String::new(),
            caller_unit,
            lease: self.dice.one_in(3).then(|| self.terms()),
        };
        if request.lease.is_some() {
            self.count("leased");
        }
        self.step(Event::Request(request));
    }

    pub fn release(&mut self) {
        let units: Vec<String> = self.scopes.keys().cloned().collect();
        let unit = self
            .dice
            .pick(&units)
            .cloned()
            .unwrap_or_else(|| "none.scope".to_owned());
        let ticket = self.ticket();
        self.step(Event::Release { ticket, unit });
    }

    pub fn ticket(&mut self) -> Ticket {
        self.next_ticket += 1;
        Ticket(self.next_ticket)
    }
}
