//! What learns and what only looks on: the same for an engine that sees everything as for one that sees what
//! used CPU, bounded, and without any effect of the shadow.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::world::{Running, World};
use crate::engine::Engine;
use crate::engine::adaptive::{Baseline, MAX_COMMANDS};
use crate::event::{Process, Sample};
use crate::id::{Moment, ProcId};
use crate::settings::Settings;
use crate::shadow::{Decision, Shadow};

/// The shadow policy, told everything and told what used CPU.
#[derive(Default)]
pub struct Shadows {
    whole: Shadow,
    pruned: Shadow,
    /// Who would be routed now.
    routed: BTreeMap<ProcId, bool>,
}

/// Settings of a history: in half of them adaptive routing is on, in half of all the shadow.
pub fn settings(seed: u64) -> Settings {
    let mut settings = Settings::default();
    settings.routing.exclude_patterns = vec!["--keep-out".to_owned()];
    settings.adaptive.enabled = seed.is_multiple_of(2);
    settings.shadow.enabled = seed % 4 < 2;
    settings
}

/// Tells an engine what another one learned, as a restart does.
pub fn hand_down(from: &Engine, to: &mut Engine) {
    let rows = from.learned().rows().into_iter();
    let known: Vec<(Arc<str>, Baseline)> = rows.map(|row| (row.command, row.baseline)).collect();
    assert_eq!(to.learned_mut().restore(known), 0);
}

impl World {
    /// The shadow sees a sample: `whole`, and what `pruned` has of it.
    pub fn consult_shadow(&mut self, whole: &Sample, pruned: &Sample) {
        let inside: Vec<Process> = self
            .processes
            .values()
            .filter(|process| !self.is_watched(process))
            .map(Running::as_process)
            .collect();
        let settings = Arc::clone(self.engine.settings());
        let now = Moment(self.now);
        let told = self.shadows.whole.sample(whole, &inside, now, &settings);
        let same = self.shadows.pruned.sample(pruned, &inside, now, &settings);
        assert_eq!(same, told, "shown only what may have used CPU");
        for candidate in told {
            assert!(settings.shadow.enabled, "it is off");
            let process = &self.processes[&candidate.id.pid];
            assert_eq!(process.id, candidate.id, "it is gone");
            let back = candidate.decision == Decision::Recover;
            assert!(back || !process.excluded, "excluded");
            let routed = self.shadows.routed.entry(candidate.id).or_default();
            assert_eq!(*routed, back, "{} twice in a row", candidate.decision);
            *routed = !*routed;
            self.count(match candidate.decision {
                Decision::Route => "shadow route",
                Decision::Recover => "shadow recover",
            });
        }
    }

    /// The guard was started again.
    pub fn forget_shadows(&mut self) {
        self.shadows = Shadows::default();
    }

    /// What must hold after every operation.
    pub fn verify_learning(&self) {
        let learned = self.engine.learned();
        assert!(learned.len() <= MAX_COMMANDS);
        assert!(self.engine.settings().adaptive.enabled || learned.is_empty());
        assert_eq!(self.pruned.engine().learned().rows(), learned.rows());
        for row in learned.rows() {
            assert!(row.baseline.is_sound(), "{row:?}");
            assert!(
                row.score.is_none_or(|score| (0.0..=1.0).contains(&score)),
                "{row:?}"
            );
            assert!(
                !row.command.contains("keep-out"),
                "an excluded process taught"
            );
        }
        // Those there are, and those who ended a few samples ago.
        assert!(self.shadows.whole.len() <= 4 * super::world::MAX_PROCESSES);
        assert_eq!(self.shadows.whole.len(), self.shadows.pruned.len());
    }
}
