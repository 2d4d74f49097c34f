//! Where the engine learns, and who is far above what is usual.

use super::super::Engine;
use super::super::seen::Seen;
use super::{Learned, Scored, command_of};
use crate::action::Why;
use crate::id::Moment;

impl Engine {
    /// What was learned of commands.
    pub fn learned(&self) -> &Learned {
        &self.learned
    }

    /// The same, to be restored or to be marked as saved.
    pub fn learned_mut(&mut self) -> &mut Learned {
        &mut self.learned
    }

    /// How far a process with these arguments is above what its command usually uses, 0 to 1; none where
    /// adaptive routing is off or too little is known.
    pub fn score(&self, argv: &[Box<str>], cpu: f64) -> Option<f64> {
        let (adaptive, routing) = (&self.settings.adaptive, &self.settings.routing);
        let baseline = self
            .learned
            .baseline(&command_of(argv)?)
            .filter(|known| known.samples >= u64::from(adaptive.min_samples))?;
        adaptive
            .enabled
            .then(|| baseline.score(cpu, routing.cpu_threshold))
    }

    /// Scores each process by its command's baseline, then learns from the sample that was just taken in.
    pub(in super::super) fn learn(&mut self, now: Moment) {
        if !self.settings.adaptive.enabled {
            return;
        }
        let (settings, learned) = (&self.settings, &mut self.learned);
        self.processes.each_current(settings, |seen| {
            seen.scored = None;
            // Who is excluded is nobody's example, and a value that was there before counted already.
            let fresh = seen.measured == Some(now) && !seen.excluded;
            let Some(cpu) = seen.cpu.filter(|_| fresh) else {
                return;
            };
            if let Some(command) = seen.command() {
                seen.scored = learned.note(&command, cpu, settings);
            }
        });
        self.learned.take_in(settings);
    }

    /// Whether its last sample is far above what its command usually uses.
    pub(in super::super) fn is_unusual(&self, seen: &Seen) -> bool {
        let threshold = self.settings.adaptive.route_threshold;
        let unusual = |scored: Scored| scored.score >= threshold;
        self.settings.adaptive.enabled && seen.scored.is_some_and(unusual)
    }

    /// Why an unusual process is routed.
    pub(in super::super) fn adaptive_reason(&self, seen: &Seen) -> Option<Why> {
        let scored = seen.scored.filter(|_| self.is_unusual(seen))?;
        Some(Why::Adaptive {
            command: seen.command.clone()?,
            cpu: seen.cpu?,
            score: scored.score,
            threshold: self.settings.adaptive.route_threshold,
            mean: scored.mean,
            samples: scored.samples,
        })
    }
}
