//! Exec events, heard late or never, while moves are on their way.

use super::world::{Running, World};
use crate::action::Move;
use crate::event::{Event, Exec};
use crate::id::ProcId;

impl World {
    /// The oldest event is heard, or lost. What it says is what is true by then.
    pub fn hear(&mut self) {
        let Some(pid) = self.execs.pop_front() else {
            return;
        };
        let here = |process: &&Running| self.is_watched(process);
        let Some(process) = self.processes.get(&pid).filter(here) else {
            return;
        };
        if !self.engine.is_candidate(&process.argv) {
            return;
        }
        let on_its_way: Vec<ProcId> = self.moves.iter().map(Move::root).collect();
        // A root has arrived, perhaps, before its descendants, and left what is watched.
        let arrived = self.dice.one_in(2);
        let mut exec = Exec {
            line: Vec::new(),
            elsewhere: Vec::new(),
        };
        let mut carried = false;
        let mut next = pid;
        while let Some(process) = self.processes.get(&next) {
            let moving = on_its_way.contains(&process.id);
            carried |= moving;
            let left = next != pid && moving && arrived;
            if left || !self.is_watched(process) {
                exec.elsewhere.push(process.id);
            } else {
                exec.line.push(process.as_process());
            }
            next = process.ppid;
        }
        let line: Vec<ProcId> = exec.line.iter().map(|process| process.id).collect();
        self.count("heard");
        if carried {
            self.count("heard while an ancestor was on its way");
        }
        let before = self.moves.len();
        self.step(Event::Exec(exec));
        for order in self.moves.split_off(before) {
            assert!(!carried, "{} goes with an ancestor", order.root());
            assert!(
                line.contains(&order.root()),
                "{} is a stranger",
                order.root()
            );
            self.count("routed by event");
            self.moves.push(order);
        }
    }
}
