//! Processes start, execute, end and burn.

use std::time::Duration;

use super::super::argv;
use super::world::{HOMES, MAX_PROCESSES, PROGRAMS, Running, World, cgroup};
use crate::event::Event;
use crate::id::ProcId;

impl World {
    pub fn spawn(&mut self) {
        if self.processes.len() >= MAX_PROCESSES {
            return;
        }
        let parent = if self.dice.one_in(4) {
            None
        } else {
            self.any_process()
        };
        let program = *self.dice.pick(PROGRAMS).expect("programs");
        // PIDs are used again soon; the start time tells them apart.
        self.next_pid = 2 + (self.next_pid - 1) % 40;
        if self.processes.contains_key(&self.next_pid) {
            return;
        }
        let scope = parent.and_then(|parent| self.processes[&parent].scope.clone());
        let home = match parent {
            Some(parent) => self.processes[&parent].home,
            None => self.dice.below(HOMES),
        };
        let process = Running {
            id: ProcId {
                pid: self.next_pid,
                start: self.now.as_millis() as u64 / 10,
            },
            ppid: parent.unwrap_or(1),
            argv: argv(program),
            sampled_argv: argv(""),
            excluded: program.contains("--keep-out"),
            cpu_usec: 0,
            reaped_usec: 0,
            busy: self.dice.one_in(3),
            forks: self.dice.one_in(8),
            cgroup: cgroup(scope.as_deref(), home),
            home,
            scope,
        };
        self.pruned.used(&process.cgroup);
        self.processes.insert(self.next_pid, process);
        self.execs.push_back(self.next_pid);
    }

    pub fn exec(&mut self) {
        let program = *self.dice.pick(PROGRAMS).expect("programs");
        let pid = self.any_process();
        if let Some(process) = pid.and_then(|pid| self.processes.get_mut(&pid)) {
            self.execs.push_back(process.id.pid);
            process.argv = argv(program);
            process.excluded = program.contains("--keep-out");
            self.pruned.used(&process.cgroup);
        }
    }

    /// A process that is in none of our scopes has itself moved by somebody else, as systemd-run does: it
    /// ran in both groups.
    pub fn migrate(&mut self) {
        let home = self.dice.below(HOMES);
        if let Some(process) = self
            .any_process()
            .and_then(|pid| self.processes.get_mut(&pid))
            .filter(|process| process.scope.is_none())
        {
            self.pruned.used(&process.cgroup);
            process.home = home;
            process.enter(None);
            self.pruned.used(&process.cgroup);
        }
    }

    pub fn exit(&mut self) {
        let Some(pid) = self.any_process() else {
            return;
        };
        let process = self.processes.remove(&pid).expect("it was picked");
        self.pruned.used(&process.cgroup);
        let used = process.cpu_usec + process.reaped_usec;
        if let Some(parent) = self
            .processes
            .get_mut(&process.ppid)
            .filter(|_| !self.dice.one_in(5))
        {
            parent.reaped_usec += used;
            self.pruned.used(&parent.cgroup);
        }
        let scope = process.scope;
        self.processes
            .values_mut()
            .filter(|process| process.ppid == pid)
            .for_each(|process| process.ppid = 1);
        let Some(scope) = scope else { return };
        if !self
            .processes
            .values()
            .any(|process| process.scope.as_deref() == Some(&scope))
        {
            self.scopes.remove(&scope);
            // The signal can be lost; then samples tell.
            if !self.dice.one_in(5) {
                self.step(Event::Gone { unit: scope });
            }
        }
    }

    pub fn toggle(&mut self) {
        if let Some(process) = self
            .any_process()
            .and_then(|pid| self.processes.get_mut(&pid))
        {
            match self.now.as_secs().is_multiple_of(3) {
                true => process.forks = !process.forks,
                false => process.busy = !process.busy,
            }
        }
    }

    pub fn burn(&mut self, time: Duration) {
        let usec = time.as_micros() as u64;
        for process in self.processes.values_mut() {
            let itself = if process.busy { usec } else { 0 };
            let children = if process.forks { usec } else { 0 };
            if itself + children == 0 {
                continue;
            }
            process.cpu_usec += itself;
            process.reaped_usec += children;
            self.pruned.used(&process.cgroup);
            if let Some(scope) = process
                .scope
                .as_ref()
                .and_then(|scope| self.scopes.get_mut(scope))
            {
                scope.usage += itself + children;
            }
        }
    }
}
