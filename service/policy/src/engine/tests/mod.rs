//! Tests of the engine: a small machine on which processes run and moves succeed or fail as told.

mod adaptive;
mod apps;
mod executed;
mod explain;
mod golden;
mod holds;
mod known;
mod ops;
mod placed;
mod recovery;
mod released;
mod requests;
mod sustained;
mod trees;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::Engine;
use crate::action::{Action, Failure, Move, Placement, Why};
use crate::event::{Event, Exec, Process, Request, Sample, Ticket, Usage, Workload};
use crate::id::{Moment, ProcId};
use crate::rules::RuleSet;
use crate::settings::Settings;

const SOURCE: &str = "/user.slice/protected.slice/protected-workload.slice/work.scope";

fn id(pid: u32) -> ProcId {
    ProcId {
        pid,
        start: 1000 + u64::from(pid),
    }
}

fn argv(line: &str) -> Arc<[Box<str>]> {
    line.split_whitespace().map(Box::from).collect()
}

/// The scope that a move of `root` makes here.
fn unit(root: u32) -> String {
    format!("lwg-{root}.scope")
}

fn workload(root: u32, class: &str, placement: Placement) -> Workload {
    Workload {
        unit: unit(root),
        class: class.to_owned(),
        root: id(root),
        placement,
    }
}

/// A process that the test drives.
struct Running {
    ppid: u32,
    cgroup: Arc<str>,
    argv: Arc<[Box<str>]>,
    cpu_usec: u64,
    /// Of children that ended.
    reaped_usec: u64,
    leads_session: bool,
    has_terminal: bool,
}

fn as_process(pid: u32, process: &Running) -> Process {
    Process {
        id: id(pid),
        ppid: process.ppid,
        cgroup: Arc::clone(&process.cgroup),
        cpu_usec: process.cpu_usec,
        reaped_usec: process.reaped_usec,
        leads_session: process.leads_session,
        has_terminal: process.has_terminal,
        argv: Arc::clone(&process.argv),
    }
}

/// An engine, and the machine that it sees.
struct Machine {
    engine: Engine,
    now: Duration,
    processes: BTreeMap<u32, Running>,
    /// CPU time of each scope of ours.
    scopes: BTreeMap<String, u64>,
    /// What the last sample showed.
    shown: Vec<u32>,
}

impl Machine {
    fn new() -> Machine {
        Machine::with(Settings::default())
    }

    fn with(settings: Settings) -> Machine {
        Machine {
            engine: Engine::new(Arc::new(settings), Arc::new(RuleSet::shipped())),
            now: Duration::from_secs(100),
            processes: BTreeMap::new(),
            scopes: BTreeMap::new(),
            shown: Vec::new(),
        }
    }

    fn spawn(&mut self, pid: u32, ppid: u32, line: &str) {
        self.spawn_in(SOURCE, pid, ppid, line);
    }

    fn spawn_in(&mut self, cgroup: &str, pid: u32, ppid: u32, line: &str) {
        let process = Running {
            ppid,
            cgroup: cgroup.into(),
            argv: argv(line),
            cpu_usec: 0,
            reaped_usec: 0,
            leads_session: false,
            has_terminal: false,
        };
        self.processes.insert(pid, process);
    }

    fn exec(&mut self, pid: u32, line: &str) {
        self.running(pid).argv = argv(line);
    }

    fn running(&mut self, pid: u32) -> &mut Running {
        self.processes.get_mut(&pid).expect("a running process")
    }

    /// CPU time for a process: `percent` of one CPU for `time`.
    fn burn(&mut self, pid: u32, percent: f64, time: Duration) {
        self.running(pid).cpu_usec += (percent / 100.0 * time.as_micros() as f64).round() as u64;
    }

    fn step(&mut self, event: Event) -> Vec<Action> {
        self.engine.step(event, Moment(self.now))
    }

    /// The kernel tells of the program that a process executes.
    fn hear(&mut self, pid: u32) -> Vec<Action> {
        self.hear_without(pid, &[])
    }

    /// The same, when these ancestors have left what is watched.
    fn hear_without(&mut self, pid: u32, elsewhere: &[u32]) -> Vec<Action> {
        let mut exec = Exec {
            line: Vec::new(),
            elsewhere: Vec::new(),
        };
        let mut next = pid;
        while let Some(process) = self.processes.get(&next) {
            if elsewhere.contains(&next) {
                exec.elsewhere.push(id(next));
            } else {
                exec.line.push(as_process(next, process));
            }
            next = process.ppid;
        }
        self.step(Event::Exec(exec))
    }

    fn sample(&mut self) -> Vec<Action> {
        let process = |(pid, process): (&u32, &Running)| as_process(*pid, process);
        let usage = |(unit, usec): (&String, &u64)| Usage {
            unit: unit.clone(),
            usage_usec: *usec,
        };
        let ended = std::mem::take(&mut self.shown)
            .into_iter()
            .filter(|pid| !self.processes.contains_key(pid))
            .map(id)
            .collect();
        self.shown = self.processes.keys().copied().collect();
        let sample = Sample {
            processes: self.processes.iter().map(process).collect(),
            ended,
            workloads: self.scopes.iter().map(usage).collect(),
        };
        self.step(Event::Sample(sample))
    }

    /// One interval in which each of `loads` burns that much, then a sample.
    fn tick(&mut self, loads: &[(u32, f64)]) -> Vec<Action> {
        let interval = self.engine.settings().sampling.interval;
        self.now += interval;
        for (pid, percent) in loads {
            self.burn(*pid, *percent, interval);
        }
        self.sample()
    }

    /// The same several times, in none of which anything may be asked for.
    fn quiet_ticks(&mut self, times: usize, loads: &[(u32, f64)]) {
        for n in 0..times {
            assert_eq!(self.tick(loads), [], "tick {n}");
        }
    }

    /// The end of a move that the engine asked for: the tree goes where no sample sees it.
    fn moved(&mut self, order: &Move) {
        let root = order.root();
        self.scopes.insert(unit(root.pid), 0);
        let mut tree = vec![root.pid];
        let mut at = 0;
        while let Some(parent) = tree.get(at).copied() {
            tree.extend(
                self.processes
                    .iter()
                    .filter(|(_, process)| process.ppid == parent)
                    .map(|(pid, _)| *pid),
            );
            at += 1;
        }
        self.processes.retain(|pid, _| !tree.contains(pid));
        let outcome = Ok(workload(root.pid, &order.class, order.placement));
        assert_eq!(self.step(Event::Moved { root, outcome }), []);
    }

    fn not_moved(&mut self, root: u32, failure: Failure) {
        let outcome = Err(failure);
        assert_eq!(
            self.step(Event::Moved {
                root: id(root),
                outcome
            }),
            []
        );
    }

    fn request(
        &mut self,
        ticket: u64,
        processes: &[u32],
        class: &str,
        placement: Placement,
    ) -> Action {
        let request = Request {
            ticket: Ticket(ticket),
            processes: processes.iter().map(|pid| id(*pid)).collect(),
            class: class.to_owned(),
            placement,
            reason: String::new(),
            caller_unit: None,
            lease: None,
        };
        self.step(Event::Request(request)).remove(0)
    }
}

/// The only action, which is a move.
fn one_move(actions: Vec<Action>) -> Move {
    match <[Action; 1]>::try_from(actions) {
        Ok([Action::Move(order)]) => order,
        other => panic!("not one move: {other:?}"),
    }
}

fn moves(actions: &[Action]) -> Vec<u32> {
    let root = |action: &Action| match action {
        Action::Move(order) => order.root().pid,
        other => panic!("not a move: {other:?}"),
    };
    actions.iter().map(root).collect()
}

fn rule_of(order: &Move) -> &str {
    match &order.why {
        Why::KnownHeavy { rule, .. } => &rule.name,
        other => panic!("not by a rule: {other:?}"),
    }
}
