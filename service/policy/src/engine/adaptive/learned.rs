//! The baselines of all commands: bounded, and the same whatever the order of the processes in a sample.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::baseline::Baseline;
use super::command::is_command;
use crate::settings::Settings;

/// The most commands that are known at once. The one that was not seen for longest makes room.
pub const MAX_COMMANDS: usize = 512;

/// What was learned.
#[derive(Debug, Default)]
pub struct Learned {
    by_command: HashMap<Arc<str>, Known>,
    /// Commands of this sample that are not known.
    new: BTreeMap<Arc<str>, Observed>,
    /// Counts samples.
    round: u64,
    /// Whether the last sample that is taken in taught anything.
    changed: bool,
}

#[derive(Debug, Default)]
struct Known {
    baseline: Baseline,
    /// The highest score of its processes at the last sample, once there was one.
    score: Option<f64>,
    /// The sample at which it was last seen.
    round: u64,
    observed: Observed,
}

/// What a sample says of one command.
#[derive(Debug, Default)]
struct Observed {
    /// Processes that used nothing.
    idle: u32,
    /// CPU of each of the others.
    busy: Vec<f64>,
}

/// A process's sample beside what was known of its command.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scored {
    /// See [`Baseline::score`].
    pub score: f64,
    /// What the command used on average before this sample.
    pub mean: f64,
    /// Samples of it before this one.
    pub samples: u64,
}

/// One command's baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The command, such as `git:gc`.
    pub command: Arc<str>,
    /// What is known of it.
    pub baseline: Baseline,
    /// The highest score of its processes at the last sample in which it was seen, if it was scored.
    pub score: Option<f64>,
}

impl Observed {
    fn note(&mut self, cpu: f64) {
        if cpu > 0.0 {
            self.busy.push(cpu);
        } else {
            self.idle += 1;
        }
    }

    /// In ascending order, so that the order in the sample does not count.
    fn teach(&mut self, baseline: &mut Baseline, rate: f64) {
        for _ in 0..std::mem::take(&mut self.idle) {
            baseline.learn(0.0, rate);
        }
        self.busy.sort_by(f64::total_cmp);
        for cpu in self.busy.drain(..) {
            baseline.learn(cpu, rate);
        }
    }
}

impl Learned {
    /// Takes note of a process's sample. Scores it, once enough is known of its command.
    pub(super) fn note(
        &mut self,
        command: &Arc<str>,
        cpu: f64,
        settings: &Settings,
    ) -> Option<Scored> {
        let Some(known) = self.by_command.get_mut(command) else {
            self.new.entry(Arc::clone(command)).or_default().note(cpu);
            return None;
        };
        if known.round != self.round {
            known.round = self.round;
            known.score = None;
        }
        known.observed.note(cpu);
        let enough = known.baseline.samples >= u64::from(settings.adaptive.min_samples);
        let score = known.baseline.score(cpu, settings.routing.cpu_threshold);
        if enough {
            known.score = Some(known.score.unwrap_or(0.0).max(score));
        }
        enough.then_some(Scored {
            score,
            mean: known.baseline.mean,
            samples: known.baseline.samples,
        })
    }

    /// Learns from what was noted since the last call: the sample is complete.
    pub(super) fn take_in(&mut self, settings: &Settings) {
        let rate = settings.adaptive.learning_rate;
        self.changed |= !self.new.is_empty();
        for known in self.by_command.values_mut() {
            if known.round == self.round {
                known.observed.teach(&mut known.baseline, rate);
                self.changed = true;
            }
        }
        for (command, mut observed) in std::mem::take(&mut self.new) {
            if self.by_command.len() >= MAX_COMMANDS && !self.make_room() {
                break;
            }
            let mut known = Known {
                round: self.round,
                ..Known::default()
            };
            observed.teach(&mut known.baseline, rate);
            self.by_command.insert(command, known);
        }
        self.round += 1;
    }

    /// Forgets the command that was not seen for longest, unless all were seen just now.
    fn make_room(&mut self) -> bool {
        let oldest = self
            .by_command
            .iter()
            .filter(|(_, known)| known.round < self.round)
            .min_by(|(a, x), (b, y)| (x.round, a).cmp(&(y.round, b)))
            .map(|(command, _)| Arc::clone(command));
        oldest.is_some_and(|command| self.by_command.remove(&command).is_some())
    }

    /// What is known of a command.
    pub fn baseline(&self, command: &str) -> Option<&Baseline> {
        self.by_command.get(command).map(|known| &known.baseline)
    }

    /// Every command, the one that was not seen for longest first.
    pub fn rows(&self) -> Vec<Row> {
        let mut all: Vec<(&Arc<str>, &Known)> = self.by_command.iter().collect();
        all.sort_by(|(a, x), (b, y)| (x.round, a).cmp(&(y.round, b)));
        all.into_iter()
            .map(|(command, known)| Row {
                command: Arc::clone(command),
                baseline: known.baseline,
                score: known.score,
            })
            .collect()
    }

    /// Whether anything was learned since this was last asked.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// Knows these as well, the one that was not seen for longest first, as [`Learned::rows`] gives them; what
    /// is known already stays as it is. Unsound ones and those beyond [`MAX_COMMANDS`] are left out, the
    /// oldest first. Answers how many were left out.
    pub fn restore(&mut self, rows: impl IntoIterator<Item = (Arc<str>, Baseline)>) -> usize {
        let rows: Vec<_> = rows.into_iter().collect();
        let count = rows.len();
        let sound: Vec<_> = rows
            .into_iter()
            .filter(|(command, baseline)| is_command(command) && baseline.is_sound())
            .collect();
        let room = MAX_COMMANDS.saturating_sub(self.by_command.len());
        let mut kept = 0;
        for (command, baseline) in sound.into_iter().rev().take(room).rev() {
            kept += 1;
            self.by_command.entry(command).or_insert(Known {
                baseline,
                round: self.round,
                ..Known::default()
            });
            self.round += 1;
        }
        count - kept
    }

    /// How many commands are known.
    pub fn len(&self) -> usize {
        self.by_command.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.by_command.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn learn(learned: &mut Learned, sample: &[(&str, f64)]) -> Vec<Option<f64>> {
        let settings = Settings::default();
        let scores = sample
            .iter()
            .map(|(command, cpu)| {
                let scored = learned.note(&Arc::from(*command), *cpu, &settings)?;
                Some(scored.score)
            })
            .collect();
        learned.take_in(&settings);
        scores
    }

    #[test]
    fn nothing_is_scored_before_enough_is_known_and_then_by_what_was_known_before() {
        let mut learned = Learned::default();
        for _ in 0..8 {
            assert_eq!(learn(&mut learned, &[("git:gc", 0.0)]), [None]);
        }
        assert_eq!(learn(&mut learned, &[("git:gc", 100.0)]), [Some(1.0)]);
        let row = &learned.rows()[0];
        assert_eq!((row.baseline.samples, row.score), (9, Some(1.0)));
        assert!((row.baseline.mean - 15.0).abs() < 1e-9);
        assert_eq!(learn(&mut learned, &[("git:gc", 0.0)]), [Some(0.0)]);
        assert_eq!(learned.rows()[0].score, Some(0.0), "of the last sample");
    }

    #[test]
    fn the_command_that_was_not_seen_for_longest_makes_room() {
        let mut learned = Learned::default();
        for n in 0..MAX_COMMANDS {
            learn(&mut learned, &[(format!("c{n}").as_str(), 0.0)]);
        }
        learn(&mut learned, &[("c0", 0.0), ("new", 0.0)]);
        assert_eq!(learned.len(), MAX_COMMANDS);
        assert!(learned.baseline("c0").is_some() && learned.baseline("new").is_some());
        assert!(learned.baseline("c1").is_none());
    }

    #[test]
    fn a_sample_of_more_commands_than_can_be_known_pushes_none_out() {
        let names: Vec<String> = (0..2 * MAX_COMMANDS).map(|n| format!("c{n:04}")).collect();
        let sample: Vec<(&str, f64)> = names.iter().map(|name| (name.as_str(), 1.0)).collect();
        let mut learned = Learned::default();
        for round in 1..=10 {
            learn(&mut learned, &sample);
            assert_eq!(learned.len(), MAX_COMMANDS);
            assert_eq!(
                learned.baseline("c0000").map(|known| known.samples),
                Some(round)
            );
        }
    }

    #[test]
    fn what_is_restored_keeps_its_age_and_is_bounded_and_sound() {
        let mut first = Learned::default();
        learn(&mut first, &[("old", 3.0)]);
        learn(&mut first, &[("new", 5.0)]);
        let rows = |learned: &Learned| {
            let of = |row: Row| (row.command, row.baseline);
            learned.rows().into_iter().map(of).collect::<Vec<_>>()
        };
        let saved = rows(&first);
        let mut second = Learned::default();
        assert_eq!(second.restore(saved.clone()), 0);
        assert_eq!(rows(&second), saved);
        assert!(!second.take_changed(), "it is on disk already");

        let unsound = Baseline {
            mean: f64::NAN,
            ..Baseline::default()
        };
        let many = (0..MAX_COMMANDS).map(|n| (Arc::from(format!("c{n}")), Baseline::default()));
        let mut third = Learned::default();
        let all = saved
            .into_iter()
            .chain([(Arc::from("bad"), unsound)])
            .chain(many);
        assert_eq!(third.restore(all), 3);
        assert_eq!(third.len(), MAX_COMMANDS);
        assert!(third.baseline("old").is_none() && third.baseline("bad").is_none());
    }

    proptest! {
        #[test]
        fn the_order_of_processes_in_a_sample_does_not_count(
            samples in proptest::collection::vec(
                proptest::collection::vec((0..6usize, prop_oneof![Just(0.0), 0.0..200.0f64]), 0..12),
                1..20,
            ),
        ) {
            let names = ["a", "b", "c:d", "e", "f:g", "h"];
            let (mut one, mut other) = (Learned::default(), Learned::default());
            for sample in samples {
                let forward: Vec<(&str, f64)> = sample.iter().map(|(at, cpu)| (names[*at], *cpu)).collect();
                let backward: Vec<(&str, f64)> = forward.iter().rev().copied().collect();
                let scores = learn(&mut one, &forward);
                let mut reversed = learn(&mut other, &backward);
                reversed.reverse();
                prop_assert_eq!(scores, reversed);
            }
            prop_assert_eq!(one.rows(), other.rows());
        }
    }
}
