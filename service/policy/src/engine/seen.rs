//! What is known of one watched process.

use std::sync::Arc;

use super::adaptive::{Scored, command_of};
use super::apps::is_app;
use super::meter::{Meter, Reading};
use super::trees::Tree;
use crate::event::Process;
use crate::id::{Moment, ProcId};
use crate::rules::{Match, RuleSet};
use crate::settings::Settings;

/// A watched process.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Who it is.
    pub id: ProcId,
    /// CPU at the last sample, in percent of one logical CPU, where there were two.
    pub cpu: Option<f64>,
    /// Samples in a row at or above the routing threshold.
    pub hot_samples: u32,
    /// The tree below it.
    pub tree: Tree,
    /// The rule that names its program.
    pub known: Option<Match>,
    /// An exclude pattern is in its command line.
    pub excluded: bool,
    /// It was found to be one that stays where it is.
    pub refused: bool,
    /// Moves of it that failed, one after the other.
    pub(super) failures: u32,
    /// Its tree came back because it was calm, so its name alone does not route it again.
    pub(super) spent: bool,
    /// Its parent's PID, when it was last shown.
    pub(super) ppid: u32,
    /// It leads its session, likewise.
    pub(super) leads_session: bool,
    /// It has a controlling terminal, likewise.
    pub(super) has_terminal: bool,
    /// Its control group is of a desktop app's unit.
    pub(super) of_app: bool,
    /// Its control group, likewise.
    pub(super) cgroup: Arc<str>,
    /// When `cpu` was measured.
    pub(super) measured: Option<Moment>,
    /// Its last sample beside what its command usually uses, with adaptive routing.
    pub(super) scored: Option<Scored>,
    /// Its command, once somebody asked.
    pub(super) command: Option<Arc<str>>,
    /// The last sample that is taken in.
    pub(super) round: u64,
    /// CPU time when it was last shown; the meter's base is older after a sample that came too soon.
    cpu_usec: u64,
    /// CPU time of the children that it waited for, when it was last shown.
    reaped_usec: u64,
    meter: Meter,
    argv: Arc<[Box<str>]>,
    generation: u64,
}

/// What [`Seen::update`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    /// The same as before.
    Same,
    /// First seen, or it executed another one.
    New,
}

impl Seen {
    /// First sight: a base for the next sample, and a verdict on the program.
    pub(super) fn new(process: &Process) -> Seen {
        Seen {
            id: process.id,
            ppid: process.ppid,
            leads_session: process.leads_session,
            has_terminal: process.has_terminal,
            of_app: is_app(&process.cgroup),
            cgroup: Arc::clone(&process.cgroup),
            cpu: None,
            hot_samples: 0,
            tree: Tree::default(),
            known: None,
            excluded: false,
            refused: false,
            failures: 0,
            spent: false,
            measured: None,
            scored: None,
            command: None,
            round: 0,
            cpu_usec: process.cpu_usec,
            reaped_usec: process.reaped_usec,
            meter: Meter::default(),
            argv: Arc::clone(&process.argv),
            generation: 0,
        }
    }

    /// Takes a sample in.
    pub(super) fn update(&mut self, process: &Process, now: Moment, settings: &Settings) {
        self.ppid = process.ppid;
        self.leads_session = process.leads_session;
        self.has_terminal = process.has_terminal;
        self.cpu_usec = process.cpu_usec;
        self.reaped_usec = process.reaped_usec;
        if !Arc::ptr_eq(&self.cgroup, &process.cgroup) {
            self.of_app = is_app(&process.cgroup);
            self.cgroup = Arc::clone(&process.cgroup);
        }
        let reading = self
            .meter
            .read(now, process.cpu_usec, settings.sampling.interval);
        self.count(reading, now, settings);
    }

    /// Takes in a sample that did not show it: it used nothing.
    pub(super) fn idle(&mut self, now: Moment, settings: &Settings) {
        let reading = self
            .meter
            .read(now, self.cpu_usec, settings.sampling.interval);
        self.count(reading, now, settings);
    }

    /// CPU time of the process and of the children that it waited for, when it was last shown.
    pub(super) fn total_usec(&self) -> u64 {
        self.cpu_usec.saturating_add(self.reaped_usec)
    }

    /// Whether more is to be said of it than that it is idle.
    pub(super) fn is_active(&self) -> bool {
        self.known.is_some()
            || self.hot_samples > 0
            || self.tree.hot_samples > 0
            || self.cpu.is_some_and(|cpu| cpu > 0.0)
    }

    fn count(&mut self, reading: Reading, now: Moment, settings: &Settings) {
        match reading {
            Reading::TooSoon => {}
            Reading::Fresh => {
                self.cpu = None;
                self.hot_samples = 0;
            }
            Reading::Percent(cpu) => {
                self.cpu = Some(cpu);
                self.measured = Some(now);
                let hot = cpu >= settings.routing.cpu_threshold;
                self.hot_samples = if hot {
                    self.hot_samples.saturating_add(1)
                } else {
                    0
                };
            }
        }
    }

    /// Judges the program, unless that was done before. Counters of CPU go on: a program that writes
    /// its state into its arguments would else never be seen as hot.
    pub(super) fn judge(
        &mut self,
        process: &Process,
        first: bool,
        settings: &Settings,
        rules: &RuleSet,
        generation: u64,
    ) -> Program {
        // A zombie has no arguments, but is no other program.
        let other = !process.argv.is_empty() && !same(&self.argv, &process.argv);
        if other {
            self.refused = false;
            self.failures = 0;
            self.spent = false;
            self.command = None;
            self.argv = Arc::clone(&process.argv);
        }
        if first || other {
            self.verdict(settings, rules, generation);
        } else {
            self.judge_again(settings, rules, generation);
        }
        if first || other {
            Program::New
        } else {
            Program::Same
        }
    }

    /// Judges the program by other rules than before.
    pub(super) fn judge_again(&mut self, settings: &Settings, rules: &RuleSet, generation: u64) {
        if self.generation != generation {
            self.verdict(settings, rules, generation);
        }
    }

    fn verdict(&mut self, settings: &Settings, rules: &RuleSet, generation: u64) {
        self.generation = generation;
        self.known = rules.matches(&self.argv);
        self.excluded = is_excluded(&self.argv, &settings.routing.exclude_patterns);
    }
}

impl Seen {
    /// Its command, such as `git:gc`, where it has arguments.
    pub(super) fn command(&mut self) -> Option<Arc<str>> {
        if self.command.is_none() {
            self.command = command_of(&self.argv);
        }
        self.command.clone()
    }

    /// The pattern by which it is excluded.
    pub(super) fn excluded_by<'a>(&self, patterns: &'a [String]) -> Option<&'a str> {
        excluding(&self.argv, patterns)
    }

    /// Whether its program has these arguments.
    pub(super) fn runs(&self, argv: &Arc<[Box<str>]>) -> bool {
        same(&self.argv, argv)
    }
}

fn same(a: &Arc<[Box<str>]>, b: &Arc<[Box<str>]>) -> bool {
    Arc::ptr_eq(a, b) || a == b
}

pub(crate) fn is_excluded(argv: &[Box<str>], patterns: &[String]) -> bool {
    excluding(argv, patterns).is_some()
}

fn excluding<'a>(argv: &[Box<str>], patterns: &'a [String]) -> Option<&'a str> {
    if patterns.is_empty() {
        return None;
    }
    let line = argv.join(" ");
    patterns
        .iter()
        .map(String::as_str)
        .find(|pattern| line.contains(pattern))
}
