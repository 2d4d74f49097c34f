//! The moving average of one process, and what follows from it.

use std::fmt;

use crate::engine::JITTER_PART;
use crate::engine::meter::{Meter, Reading};
use crate::id::Moment;
use crate::settings::Settings;

/// What the policy would do with a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Move it to the heavy class.
    Route,
    /// Bring it back.
    Recover,
}

/// The word in the journal.
impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Decision::Route => "route",
            Decision::Recover => "recover",
        })
    }
}

/// A change of mind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Step {
    pub decision: Decision,
    pub cpu: f64,
    pub average: f64,
    pub threshold: f64,
    pub samples: u32,
}

/// What is kept of a process.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Track {
    meter: Meter,
    average: Option<f64>,
    /// It would be in the heavy class now.
    routed: bool,
    /// Samples in a row with a hot average before it is routed, with a low one after that.
    samples: u32,
    /// When the first of them was.
    since: Option<Moment>,
}

impl Track {
    /// Whether it would be in the heavy class now.
    pub fn is_routed(&self) -> bool {
        self.routed
    }

    /// Takes in its CPU time so far, in microseconds.
    pub fn read(&mut self, now: Moment, usec: u64, settings: &Settings) -> Option<Step> {
        match self.meter.read(now, usec, settings.sampling.interval) {
            Reading::TooSoon => None,
            Reading::Fresh => {
                // Over a gap the old average says as little as the old value.
                self.average = None;
                self.start_again();
                None
            }
            Reading::Percent(cpu) => self.take(now, cpu, settings),
        }
    }

    fn take(&mut self, now: Moment, cpu: f64, settings: &Settings) -> Option<Step> {
        let shadow = &settings.shadow;
        let alpha = shadow.ewma_alpha;
        let average = self
            .average
            .map_or(cpu, |before| alpha * cpu + (1.0 - alpha) * before);
        self.average = Some(average);
        let (decision, threshold) = match self.routed {
            false => (Decision::Route, shadow.route_threshold),
            true => (Decision::Recover, shadow.clear_threshold),
        };
        let beyond = match decision {
            Decision::Route => average >= threshold,
            Decision::Recover => average <= threshold,
        };
        if !beyond {
            self.start_again();
            return None;
        }
        self.samples = self.samples.saturating_add(1);
        let since = *self.since.get_or_insert(now);
        let due = match decision {
            Decision::Route => self.samples >= shadow.sustained_samples,
            Decision::Recover => {
                let slack = settings.sampling.interval / JITTER_PART;
                self.samples >= shadow.recovery_samples
                    && now.since(since) + slack >= shadow.recovery_dwell
            }
        };
        let samples = self.samples;
        due.then(|| {
            self.routed = !self.routed;
            self.start_again();
            Step {
                decision,
                cpu,
                average,
                threshold,
                samples,
            }
        })
    }

    fn start_again(&mut self) {
        self.samples = 0;
        self.since = None;
    }
}
