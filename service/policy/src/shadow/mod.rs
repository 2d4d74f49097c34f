//! Another policy beside the one in force: what it would do is told, and nothing follows from it. It knows
//! neither the engine nor its actions.
//!
//! It smooths the CPU of each process (an exponentially weighted moving average) and parts the threshold at
//! which it routes from the one at which it brings back. It looks at watched processes and at those of
//! workloads, since the policy in force may have moved a process long before this one would let it go.

mod track;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use crate::engine::is_excluded;
use crate::event::{Process, Sample};
use crate::id::{Moment, ProcId};
use crate::settings::Settings;

pub use track::Decision;
use track::Track;

/// The most processes that are followed at once; others are followed when some of these have ended.
pub const MAX_TRACKED: usize = 16_384;
/// Samples in a row that may lack a process: while it is moved, none shows it.
const MAX_MISSING: u8 = 3;

/// What the policy would do.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Route, or bring back.
    pub decision: Decision,
    /// The process.
    pub id: ProcId,
    /// CPU at the last sample, in percent of one logical CPU.
    pub cpu: f64,
    /// Its moving average.
    pub average: f64,
    /// The threshold that decided.
    pub threshold: f64,
    /// Samples in a row beyond it.
    pub samples: u32,
    /// Its control group, relative to the cgroup mount.
    pub cgroup: Arc<str>,
    /// Its arguments.
    pub argv: Arc<[Box<str>]>,
}

/// The policy.
#[derive(Debug, Default)]
pub struct Shadow {
    tracks: HashMap<ProcId, Followed>,
}

#[derive(Debug)]
struct Followed {
    track: Track,
    cpu_usec: u64,
    cgroup: Arc<str>,
    argv: Arc<[Box<str>]>,
    excluded: bool,
    /// It was last shown inside a workload.
    inside: bool,
    /// Samples in a row that lack it.
    missing: u8,
}

impl Shadow {
    /// Takes in a sample, and the processes `inside` workloads that are not watched. Answers what the policy
    /// would do, by process. A watched process that is not shown used nothing; one inside has to be
    /// shown each time.
    ///
    /// While `[shadow]` is off nothing is remembered.
    pub fn sample(
        &mut self,
        sample: &Sample,
        inside: &[Process],
        now: Moment,
        settings: &Settings,
    ) -> Vec<Candidate> {
        if !settings.shadow.enabled {
            self.tracks = HashMap::new();
            return Vec::new();
        }
        for followed in self.tracks.values_mut() {
            followed.missing += u8::from(followed.inside || followed.missing > 0);
        }
        for id in &sample.ended {
            if let Some(followed) = self.tracks.get_mut(id) {
                followed.missing = followed.missing.max(1);
            }
        }
        for process in &sample.processes {
            self.shown(process, false, settings);
        }
        for process in inside {
            self.shown(process, true, settings);
        }
        let mut candidates = Vec::new();
        self.tracks.retain(|id, followed| {
            if followed.missing == 0 {
                candidates.extend(followed.step(*id, now, settings));
            }
            followed.missing <= MAX_MISSING
        });
        candidates.sort_by_key(|candidate| candidate.id);
        candidates
    }

    fn shown(&mut self, process: &Process, inside: bool, settings: &Settings) {
        let excluded = |argv: &[Box<str>]| is_excluded(argv, &settings.routing.exclude_patterns);
        if let Some(followed) = self.tracks.get_mut(&process.id) {
            followed.cpu_usec = process.cpu_usec;
            followed.missing = 0;
            followed.inside = inside;
            followed.cgroup = Arc::clone(&process.cgroup);
            // A zombie has no arguments, but is no other program.
            if !process.argv.is_empty() && !Arc::ptr_eq(&followed.argv, &process.argv) {
                followed.argv = Arc::clone(&process.argv);
                followed.excluded = excluded(&process.argv);
            }
        } else if self.tracks.len() < MAX_TRACKED {
            let followed = Followed {
                track: Track::default(),
                cpu_usec: process.cpu_usec,
                cgroup: Arc::clone(&process.cgroup),
                excluded: excluded(&process.argv),
                argv: Arc::clone(&process.argv),
                inside,
                missing: 0,
            };
            self.tracks.insert(process.id, followed);
        }
    }

    /// How many processes are followed.
    pub fn len(&self) -> usize {
        self.tracks.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.tracks.is_empty()
    }
}

impl Followed {
    fn step(&mut self, id: ProcId, now: Moment, settings: &Settings) -> Option<Candidate> {
        // Who is excluded is not routed; who was before can still come back.
        if self.excluded && !self.track.is_routed() {
            self.track = Track::default();
            return None;
        }
        let step = self.track.read(now, self.cpu_usec, settings)?;
        Some(Candidate {
            decision: step.decision,
            id,
            cpu: step.cpu,
            average: step.average,
            threshold: step.threshold,
            samples: step.samples,
            cgroup: Arc::clone(&self.cgroup),
            argv: Arc::clone(&self.argv),
        })
    }
}
