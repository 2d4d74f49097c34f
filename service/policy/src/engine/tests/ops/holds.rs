//! Holds of clients that come and go, on processes and workloads that do, too.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::world::World;
use crate::action::{Action, Move, Placement, RecoverCause};
use crate::event::Event;
use crate::holds::{
    Deadline, Hold, HoldEvent, Kind, MAX_HOLDS, MAX_PER_CLIENT, Owner, Terms, Wish,
};
use crate::id::ProcId;

/// What the world knows of holds by itself.
#[derive(Default)]
pub struct Held {
    /// Why each recovery in flight was asked for.
    pub causes: BTreeMap<String, RecoverCause>,
    /// Cookies that were given out.
    given: BTreeSet<u64>,
}

impl World {
    /// One operation.
    pub fn hold(&mut self) {
        match self.dice.below(8) {
            0 => self.want(Wish::Pause),
            1 | 2 => {
                if let Some(process) = self.some_process() {
                    self.want(Wish::Exempt(process));
                }
            }
            3 | 4 => {
                if let Some(process) = self.some_process() {
                    let unit = self.processes[&process.pid].scope.clone();
                    self.want(Wish::Pin { process, unit });
                }
            }
            5 => {
                let ids: Vec<u64> = self.engine.holds().iter().map(|hold| hold.id).collect();
                let id = self.dice.pick(&ids).copied().unwrap_or(0);
                let ticket = self.ticket();
                self.step(Event::Hold(HoldEvent::LetGo { ticket, id }));
                let left = self.engine.holds().get(id);
                assert!(left.is_none_or(|hold| matches!(hold.kind, Kind::Lease { .. })));
            }
            6 => {
                let ticket = self.ticket();
                self.step(Event::Hold(HoldEvent::Resume { ticket }));
                assert!(!self.engine.holds().is_paused());
            }
            _ => {
                let name = format!(":1.{}", self.dice.below(3));
                self.step(Event::Hold(HoldEvent::OwnerLeft(name.clone())));
                let bound = |hold: &&Hold| hold.terms.owner.bus_name.as_ref() == Some(&name);
                let left = self.engine.holds().iter().filter(bound);
                assert!(left.into_iter().all(is_over_lease), "the owner has left");
                self.count("owner left");
            }
        }
        self.verify_holds();
    }

    fn some_process(&mut self) -> Option<ProcId> {
        let all: Vec<ProcId> = self.processes.values().map(|process| process.id).collect();
        self.dice.pick(&all).copied()
    }

    /// The terms of some client, which ends soon or not by itself.
    pub fn terms(&mut self) -> Terms {
        let bus_name = match self.dice.below(4) {
            3 => None,
            n => Some(format!(":1.{n}")),
        };
        let span = Duration::from_secs(self.dice.below(40) as u64);
        let until = (!self.dice.one_in(4)).then_some(Deadline {
            boot: self.now + span,
            wall: 0,
        });
        Terms {
            owner: Owner {
                bus_name,
                pid: 1,
                command: "agent".to_owned(),
            },
            reason: String::new(),
            subject: String::new(),
            since: 0,
            until,
        }
    }

    fn want(&mut self, wish: Wish) {
        let units: Vec<String> = self.scopes.keys().cloned().collect();
        let caller_unit = self
            .dice
            .pick(&units)
            .cloned()
            .filter(|_| self.dice.one_in(4));
        let bounded = caller_unit
            .as_ref()
            .is_some_and(|unit| self.scopes[unit].workload.class != "protected");
        let before = self.engine.holds().len();
        let (ticket, terms) = (self.ticket(), self.terms());
        self.step(Event::Hold(HoldEvent::Wanted {
            ticket,
            wish: wish.clone(),
            terms,
            caller_unit,
        }));
        if bounded {
            assert_eq!(
                self.engine.holds().len(),
                before,
                "heavy work holds nothing"
            );
            self.count("refused to heavy work");
        }
        if let Wish::Exempt(root) = wish {
            let scope = self.processes[&root.pid].scope.clone();
            self.carried(scope);
        }
    }

    /// The daemon tells of exempt processes in workloads, as it reads them.
    pub fn carried(&mut self, scope: Option<String>) {
        let Some(unit) = scope.filter(|unit| self.scopes.contains_key(unit)) else {
            return;
        };
        let inside = |root: ProcId| {
            self.alive(root) && self.processes[&root.pid].scope.as_ref() == Some(&unit)
        };
        if !self.engine.holds().exempt_roots().any(inside) {
            return;
        }
        let root = self.scopes[&unit].workload.root;
        let busy = self.moves.iter().any(|order| order.root() == root);
        let routed = self.scopes[&unit].workload.placement == Placement::Routed;
        self.step(Event::Hold(HoldEvent::Carried { unit: unit.clone() }));
        assert!(
            !routed || busy || self.recoveries.contains(&unit) || self.is_resting(&unit),
            "{unit} holds an exempt tree"
        );
        self.count("exempt tree brought back");
    }

    fn is_resting(&self, unit: &str) -> bool {
        self.engine
            .workload(unit)
            .is_some_and(|tracked| tracked.is_resting())
    }

    pub fn alive(&self, id: ProcId) -> bool {
        self.processes
            .get(&id.pid)
            .is_some_and(|process| process.id == id)
    }

    /// What the daemon tells before each sample.
    pub fn look_at_holds(&mut self) {
        self.step(Event::Hold(HoldEvent::Elapsed(self.now)));
        let ended: Vec<ProcId> = self
            .engine
            .holds()
            .processes()
            .filter(|id| !self.alive(*id))
            .collect();
        for id in ended {
            self.step(Event::Hold(HoldEvent::TreeEnded(id)));
        }
        for hold in self.engine.holds().iter() {
            let due = hold.terms.until.is_some_and(|until| until.boot <= self.now);
            assert!(
                !due || is_over_lease(hold),
                "an expired hold is gone: {hold:?}"
            );
        }
        assert!(self.engine.holds().processes().all(|id| self.alive(id)));
    }

    /// Whether a detected move is not begun, by what is true when its turn comes.
    pub fn is_withheld(&self, order: &Move) -> bool {
        let mut ancestors = Vec::new();
        let mut next = self
            .processes
            .get(&order.root().pid)
            .map(|process| process.ppid);
        while let Some(process) = next.and_then(|pid| self.processes.get(&pid)) {
            ancestors.push(process.id);
            next = Some(process.ppid);
        }
        let withheld = self.engine.is_withheld(order, &ancestors);
        let exempt = self
            .engine
            .holds()
            .exempt_roots()
            .any(|root| root == order.root() || ancestors.contains(&root));
        let held = order.ticket.is_none() && (exempt || self.engine.holds().is_paused());
        assert_eq!(withheld, held);
        withheld
    }

    /// What detection may not ask for.
    pub fn not_held(&self, order: &Move) {
        let holds = self.engine.holds();
        assert!(!holds.is_paused(), "a move while paused");
        assert!(
            holds.exempt_roots().all(|root| root != order.root()),
            "an exempt tree is moved"
        );
    }

    /// What recovery may not ask for.
    pub fn may_recover(&self, unit: &str, cause: &RecoverCause) {
        let holds = self.engine.holds();
        match cause {
            RecoverCause::Calm { .. } => {
                assert!(!holds.is_paused(), "a recovery while paused");
                assert!(!holds.is_pinned(unit), "{unit} is pinned");
            }
            RecoverCause::Exempted => {
                let routed = self.scopes[unit].workload.placement;
                assert_eq!(routed, Placement::Routed);
            }
            RecoverCause::LeaseEnded | RecoverCause::Released | RecoverCause::Resumed => {}
        }
    }

    /// An answer about a hold.
    pub fn answered(&mut self, action: &Action) {
        match action {
            Action::Held { id, .. } => {
                assert!(self.held.given.insert(*id), "cookie {id} was given before");
                self.count("held");
            }
            Action::Unheld { .. } => self.count("unheld"),
            _ => unreachable!("the world handles it"),
        }
    }

    /// What the next daemon reads from its file.
    pub fn restore_holds(&mut self, saved: Vec<Hold>, last_id: u64) {
        self.held.causes.clear();
        self.engine.skip_hold_ids(last_id);
        self.pruned.skip_hold_ids(last_id);
        let before: Vec<u64> = saved.iter().map(|hold| hold.id).collect();
        for hold in saved {
            self.step(Event::Hold(HoldEvent::Restored(hold)));
        }
        let after: Vec<u64> = self.engine.holds().iter().map(|hold| hold.id).collect();
        assert_eq!(before, after, "holds survive a restart");
    }

    fn verify_holds(&self) {
        let holds = self.engine.holds();
        assert!(holds.len() <= MAX_HOLDS);
        let mut clients: BTreeMap<Option<&str>, usize> = BTreeMap::new();
        for hold in holds.iter() {
            *clients
                .entry(hold.terms.owner.bus_name.as_deref())
                .or_default() += 1;
        }
        assert!(clients.values().all(|count| *count <= MAX_PER_CLIENT));
        assert!(
            self.engine
                .leasing
                .keys()
                .all(|root| self.engine.moving.contains_key(root))
        );
    }
}

fn is_over_lease(hold: &Hold) -> bool {
    matches!(hold.kind, Kind::Lease { .. })
        && hold.terms.until.is_some_and(|until| until.boot.is_zero())
}
