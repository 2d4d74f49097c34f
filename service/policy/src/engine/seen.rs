//! What is known of one watched process.

use std::sync::Arc;

use super::meter::{Meter, Reading};
use crate::event::Process;
use crate::id::Moment;
use crate::rules::{Match, RuleSet};
use crate::settings::Settings;

/// A process that the last sample showed.
#[derive(Clone, Debug)]
pub struct Seen {
    /// CPU at the last sample, in percent of one logical CPU, where there were two.
    pub cpu: Option<f64>,
    /// Samples in a row at or above the routing threshold.
    pub hot_samples: u32,
    /// The rule that names its program.
    pub known: Option<Match>,
    /// An exclude pattern is in its command line.
    pub excluded: bool,
    /// It was found to be one that stays where it is.
    pub refused: bool,
    /// Its tree came back because it was calm, so its name alone does not route it again.
    pub(super) spent: bool,
    /// The last sample that showed it.
    pub(super) round: u64,
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
            cpu: None,
            hot_samples: 0,
            known: None,
            excluded: false,
            refused: false,
            spent: false,
            round: 0,
            meter: Meter::default(),
            argv: Arc::clone(&process.argv),
            generation: 0,
        }
    }

    /// Takes a sample in.
    pub(super) fn update(&mut self, process: &Process, now: Moment, settings: &Settings) {
        match self
            .meter
            .read(now, process.cpu_usec, settings.sampling.interval)
        {
            Reading::TooSoon => {}
            Reading::Fresh => {
                self.cpu = None;
                self.hot_samples = 0;
            }
            Reading::Percent(cpu) => {
                self.cpu = Some(cpu);
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
            self.spent = false;
            self.argv = Arc::clone(&process.argv);
        }
        if first || other || self.generation != generation {
            self.generation = generation;
            self.known = rules.matches(&self.argv);
            self.excluded = is_excluded(&self.argv, &settings.routing.exclude_patterns);
        }
        if first || other {
            Program::New
        } else {
            Program::Same
        }
    }
}

fn same(a: &Arc<[Box<str>]>, b: &Arc<[Box<str>]>) -> bool {
    Arc::ptr_eq(a, b) || a == b
}

fn is_excluded(argv: &[Box<str>], patterns: &[String]) -> bool {
    if patterns.is_empty() {
        return false;
    }
    let line = argv.join(" ");
    patterns
        .iter()
        .any(|pattern| line.contains(pattern.as_str()))
}
