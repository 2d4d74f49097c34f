//! The machine, and what happens on it by itself.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use super::dice::Dice;
use super::holds::Held;
use super::learning::{self, Shadows};
use super::pruned::Pruned;
use crate::action::{Action, Move, RecoverCause};
use crate::engine::Engine;
use crate::event::{Event, Process, Workload};
use crate::holds::HoldEvent;
use crate::id::{Moment, ProcId};
use crate::rules::RuleSet;

pub const INTERVAL: Duration = Duration::from_secs(2);
const PROTECTED: &str = "/protected.slice/protected-workload.slice";
pub const MAX_PROCESSES: usize = 24;
/// Groups outside of our scopes.
pub const HOMES: usize = 4;
pub const PROGRAMS: &[&str] = &[
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
pub fn rules() -> Arc<RuleSet> {
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

pub fn cgroup(scope: Option<&str>, home: usize) -> Arc<str> {
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
    /// When somebody's release of a process was carried out.
    pub released: BTreeMap<ProcId, Duration>,
    pub held: Held,
    pub counts: BTreeMap<&'static str, u32>,
    /// Whom the last sample showed.
    pub shown: BTreeSet<ProcId>,
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
            released: BTreeMap::new(),
            held: Held::default(),
            counts: BTreeMap::new(),
            shown: BTreeSet::new(),
        }
    }

    pub fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    pub fn any_process(&mut self) -> Option<u32> {
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

    /// Whether the sampler sees a process: what is in heavy is outside of what is watched.
    pub fn is_watched(&self, process: &Running) -> bool {
        let scope = process
            .scope
            .as_ref()
            .and_then(|scope| self.scopes.get(scope));
        scope.is_none_or(|scope| scope.workload.class == "protected")
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
