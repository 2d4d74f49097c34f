//! The machine, and what happens on it by itself.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use super::super::argv;
use super::dice::Dice;
use super::holds::Held;
use super::learning::{self, Shadows};
use super::pruned::Pruned;
use crate::action::{Action, Move, Placement, RecoverCause};
use crate::engine::Engine;
use crate::event::{Event, Process, Request, Sample, Ticket, Usage, Workload};
use crate::holds::{Hold, HoldEvent};
use crate::id::{Moment, ProcId};
use crate::rules::RuleSet;

const INTERVAL: Duration = Duration::from_secs(2);
const PROTECTED: &str = "/protected.slice/protected-workload.slice";
pub const MAX_PROCESSES: usize = 24;
/// Groups outside of our scopes.
const HOMES: usize = 4;
const PROGRAMS: &[&str] = &[
    "sh",
    "hog",
    "make",
    "cargo build",
    "daemon --keep-out",
    "make --keep-out",
    "editor",
    "pytest",
];

/// Parsed once: in a debug build that takes longer than a thousand operations.
fn rules() -> Arc<RuleSet> {
    static RULES: LazyLock<Arc<RuleSet>> = LazyLock::new(|| Arc::new(RuleSet::shipped()));
    Arc::clone(&RULES)
}

#[derive(Clone)]
pub struct Running {
    pub id: ProcId,
    pub ppid: u32,
    pub argv: Arc<[Box<str>]>,
    /// The arguments at the last sample, which is what a refusal is about.
    pub sampled_argv: Arc<[Box<str>]>,
    pub excluded: bool,
    /// Which of the groups outside of our scopes it belongs to.
    pub home: usize,
    pub cpu_usec: u64,
    /// Of its ended children.
    pub reaped_usec: u64,
    pub busy: bool,
    /// Children of it come and go within an instant, and use a CPU.
    pub forks: bool,
    /// The scope of ours that it is in.
    pub scope: Option<String>,
    pub cgroup: Arc<str>,
}

impl Running {
    pub fn leads_session(&self) -> bool {
        self.id.pid.is_multiple_of(7)
    }

    pub fn as_process(&self) -> Process {
        Process {
            id: self.id,
            ppid: self.ppid,
            cgroup: Arc::clone(&self.cgroup),
            cpu_usec: self.cpu_usec,
            reaped_usec: self.reaped_usec,
            leads_session: self.leads_session(),
            has_terminal: false,
            argv: Arc::clone(&self.argv),
        }
    }

    pub fn enter(&mut self, scope: Option<String>) {
        self.cgroup = cgroup(scope.as_deref(), self.home);
        self.scope = scope;
    }
}

fn cgroup(scope: Option<&str>, home: usize) -> Arc<str> {
    match scope {
        Some(scope) => format!("{PROTECTED}/{scope}").into(),
        None => format!("{PROTECTED}/work-{home}.scope").into(),
    }
}

pub struct Scope {
    pub workload: Workload,
    pub usage: u64,
    /// Samples in a row without load, at the end of the regular ones.
    pub idle_ticks: u32,
    /// Recoveries that failed.
    pub failures: u32,
}

pub struct World {
    pub dice: Dice,
    pub engine: Engine,
    /// What an engine knows that is shown only what may have used CPU.
    pub pruned: Pruned,
    pub shadows: Shadows,
    pub now: Duration,
    pub next_pid: u32,
    pub next_ticket: u64,
    pub processes: BTreeMap<u32, Running>,
    pub scopes: BTreeMap<String, Scope>,
    pub moves: Vec<Move>,
    pub recoveries: Vec<String>,
    /// Processes whose exec events nobody has heard yet.
    pub execs: VecDeque<u32>,
    /// Roots whose last move failed for good, with the arguments they had.
    pub refused: BTreeMap<ProcId, Arc<[Box<str>]>>,
    /// The last attempt by detection.
    pub attempts: BTreeMap<ProcId, Duration>,
    pub held: Held,
    pub counts: BTreeMap<&'static str, u32>,
    /// Whom the last sample showed.
    shown: BTreeSet<ProcId>,
}

fn ids(sample: &Sample) -> BTreeSet<ProcId> {
    sample.processes.iter().map(|process| process.id).collect()
}

impl World {
    pub fn new(seed: u64) -> World {
        let settings = Arc::new(learning::settings(seed));
        World {
            dice: Dice(seed),
            engine: Engine::new(Arc::clone(&settings), rules()),
            pruned: Pruned::new(settings, rules()),
            shadows: Shadows::default(),
            now: Duration::from_secs(1000),
            next_pid: 2,
            next_ticket: 0,
            processes: BTreeMap::new(),
            scopes: BTreeMap::new(),
            moves: Vec::new(),
            recoveries: Vec::new(),
            execs: VecDeque::new(),
            refused: BTreeMap::new(),
            attempts: BTreeMap::new(),
            held: Held::default(),
            counts: BTreeMap::new(),
            shown: BTreeSet::new(),
        }
    }

    pub fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    fn any_process(&mut self) -> Option<u32> {
        let pids: Vec<u32> = self.processes.keys().copied().collect();
        self.dice.pick(&pids).copied()
    }

    pub fn operation(&mut self) {
        match self.dice.below(28) {
            0..=2 => self.spawn(),
            3 => self.exec(),
            4 => self.exit(),
            5 | 6 => self.toggle(),
            7 | 24 => self.finish_move(),
            21..=23 => self.hear(),
            8 => self.finish_recovery(),
            9 => self.request(),
            10 => self.release(),
            20 => self.migrate(),
            25..=27 => self.hold(),
            11 if self.dice.one_in(20) => self.gap(),
            12 if self.dice.one_in(20) => self.quick_sample(),
            13 if self.dice.one_in(30) => self.restart(),
            _ => self.tick(),
        }
        // Most events are heard at once.
        if self.dice.one_in(2) {
            self.hear();
        }
        self.verify();
    }

    fn spawn(&mut self) {
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

    fn exec(&mut self) {
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
    fn migrate(&mut self) {
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

    fn exit(&mut self) {
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

    fn toggle(&mut self) {
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

    fn burn(&mut self, time: Duration) {
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

    fn tick(&mut self) {
        self.now += INTERVAL;
        self.burn(INTERVAL);
        let on_its_way: Vec<ProcId> = self.moves.iter().map(Move::root).collect();
        for (unit, scope) in &mut self.scopes {
            let busy = self.processes.values().any(|process| {
                (process.busy || process.forks) && process.scope.as_ref() == Some(unit)
            });
            let blocked =
                self.recoveries.contains(unit) || on_its_way.contains(&scope.workload.root);
            let held = self.engine.holds().is_paused() || self.engine.holds().is_pinned(unit);
            let idle = !busy && !blocked && !held && scope.workload.placement == Placement::Routed;
            scope.idle_ticks = if idle { scope.idle_ticks + 1 } else { 0 };
        }
        self.look_at_holds();
        self.sample();
        self.explain_everybody();
        // Ten low samples, 20 s since the first, 20 s after a failure, doubled with each, and one sample
        // without a rate.
        for (unit, scope) in &self.scopes {
            let asked = self.recoveries.contains(unit);
            assert!(
                asked || scope.idle_ticks < 15 + (10 << scope.failures.saturating_sub(1).min(5)),
                "{unit} stays idle and is not brought back"
            );
        }
    }

    fn gap(&mut self) {
        let gap = Duration::from_secs(60 + self.dice.below(10_000) as u64);
        self.now += gap;
        self.burn(gap);
        self.scopes
            .values_mut()
            .for_each(|scope| scope.idle_ticks = 0);
        self.sample();
        for process in self.processes.values() {
            if let Some(seen) = self.engine.process(process.id) {
                assert_eq!(
                    (seen.cpu, seen.hot_samples),
                    (None, 0),
                    "no rate over a gap"
                );
            }
        }
        for tracked in self.engine.workloads() {
            assert!(tracked.low_samples == 0 || !self.scopes.contains_key(&tracked.workload.unit));
        }
        self.count("gap");
    }

    fn quick_sample(&mut self) {
        let before: Vec<(ProcId, u32)> = self.hot_counters();
        self.now += Duration::from_millis(5);
        self.burn(Duration::from_millis(5));
        self.sample();
        let after: BTreeMap<ProcId, u32> = self.hot_counters().into_iter().collect();
        for (id, hot) in before {
            assert!(
                after.get(&id).is_none_or(|now| *now == hot),
                "a quick sample counts nothing"
            );
        }
    }

    fn hot_counters(&self) -> Vec<(ProcId, u32)> {
        let counter =
            |process: &Running| Some((process.id, self.engine.process(process.id)?.hot_samples));
        self.processes.values().filter_map(counter).collect()
    }

    /// Another engine, which is told what lives, as the daemon does after kill -9.
    fn restart(&mut self) {
        let settings = Arc::clone(self.engine.settings());
        let holds: Vec<Hold> = self.engine.holds().iter().cloned().collect();
        let last_id = self.engine.holds().last_id();
        self.pruned.restart(Arc::clone(&settings), rules());
        let mut engine = Engine::new(settings, rules());
        learning::hand_down(&self.engine, &mut engine);
        learning::hand_down(&self.engine, self.pruned.engine_mut());
        self.engine = engine;
        self.forget_shadows();
        self.shown.clear();
        self.moves.clear();
        self.recoveries.clear();
        self.execs.clear();
        self.refused.clear();
        self.attempts.clear();
        let known: Vec<Workload> = self
            .scopes
            .values()
            .map(|scope| scope.workload.clone())
            .collect();
        for workload in known {
            self.step(Event::Adopted(workload));
        }
        self.restore_holds(holds, last_id);
        self.scopes
            .values_mut()
            .for_each(|scope| scope.idle_ticks = 0);
        self.count("restart");
    }

    /// Whether the sampler sees a process: what is in heavy is outside of what is watched.
    pub fn is_watched(&self, process: &Running) -> bool {
        let scope = process
            .scope
            .as_ref()
            .and_then(|scope| self.scopes.get(scope));
        scope.is_none_or(|scope| scope.workload.class == "protected")
    }

    fn sample(&mut self) {
        let watched = self
            .processes
            .values()
            .filter(|process| self.is_watched(process));
        let usage = |(unit, scope): (&String, &Scope)| Usage {
            unit: unit.clone(),
            usage_usec: scope.usage,
        };
        let mut sample = Sample {
            processes: watched.map(Running::as_process).collect(),
            ended: Vec::new(),
            workloads: self.scopes.iter().map(usage).collect(),
        };
        sample.ended = self.shown.difference(&ids(&sample)).copied().collect();
        self.shown = ids(&sample);
        let seen = ids(&sample);
        for process in self
            .processes
            .values_mut()
            .filter(|process| seen.contains(&process.id))
        {
            process.sampled_argv = Arc::clone(&process.argv);
        }
        // What is not in a sample is forgotten, and what executed something else is judged again.
        let processes = &self.processes;
        self.refused
            .retain(|id, argv| seen.contains(id) && processes[&id.pid].argv == *argv);
        self.step(Event::Sample(sample.clone()));
        let pruned = self.pruned.last.clone();
        self.consult_shadow(&sample, &pruned);
        for id in &self.shown {
            let known = |engine: &Engine| {
                let seen = engine.process(*id).expect("it was shown");
                (
                    seen.cpu,
                    seen.hot_samples,
                    seen.tree.hot_samples,
                    seen.tree.cpu,
                    seen.known.is_some(),
                    seen.spent,
                    seen.refused,
                )
            };
            assert_eq!(known(self.pruned.engine()), known(&self.engine));
        }
    }

    pub fn step(&mut self, event: Event) {
        let by_caller = matches!(
            event,
            Event::Request(_)
                | Event::Release { .. }
                | Event::Hold(
                    HoldEvent::Wanted { .. } | HoldEvent::LetGo { .. } | HoldEvent::Resume { .. }
                )
        );
        let pruned = self.pruned.step(&event, Moment(self.now));
        let actions = self.engine.step(event, Moment(self.now));
        assert_eq!(pruned, actions, "shown only what may have used CPU");
        for action in actions {
            match action {
                Action::Move(order) => self.ordered(order),
                Action::Recover {
                    unit,
                    cause,
                    ticket,
                } => {
                    assert!(
                        !self.recoveries.contains(&unit),
                        "{unit} is on its way back already"
                    );
                    assert_eq!(ticket.is_some(), cause == RecoverCause::Released);
                    assert!(ticket.is_none() || by_caller);
                    self.may_recover(&unit, &cause);
                    if cause == RecoverCause::LeaseEnded {
                        self.count("lease ended");
                    }
                    self.held.causes.insert(unit.clone(), cause);
                    self.recoveries.push(unit);
                }
                Action::Refuse { .. } => assert!(by_caller, "nobody asked"),
                Action::Held { .. } | Action::Unheld { .. } => self.answered(&action),
            }
        }
    }

    fn request(&mut self) {
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

    fn release(&mut self) {
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

    /// What must hold after every operation.
    fn verify(&self) {
        self.verify_learning();
        for (unit, scope) in &self.scopes {
            let tracked = self
                .engine
                .workload(unit)
                .unwrap_or_else(|| panic!("{unit} was lost"));
            assert_eq!(tracked.workload, scope.workload);
        }
        for tracked in self.engine.workloads() {
            assert!(tracked.low_samples == 0 || tracked.cpu.is_some());
            assert!(
                tracked.hot_samples == 0 || tracked.low_samples == 0,
                "hot and low at once"
            );
        }
        assert!(
            self.engine.processes.len() <= MAX_PROCESSES,
            "what ended is forgotten at the next sample"
        );
        assert_eq!(self.engine.moving.len(), self.moves.len());
        assert_eq!(self.engine.recovering.len(), self.recoveries.len());
        let cooling = self.engine.cooldowns.len();
        assert!(cooling <= 20 * MAX_PROCESSES, "{cooling} cooldowns");
    }
}
