//! What is learned from a sample, and what the shadow policy would do: nothing here moves anything.

use std::sync::Arc;
use std::time::Duration;

use guard_policy::shadow::Shadow;
use guard_system::sampler::Look;
use workload_guard_dbus::types::StatisticsRow;

use super::Guard;
use crate::journal;
use crate::learned::LearnedFile;

/// What looks on.
pub struct Learning {
    pub(super) file: LearnedFile,
    shadow: Shadow,
    /// As the bus shows it.
    pub(super) statistics: Arc<Vec<StatisticsRow>>,
}

impl Learning {
    /// Nothing seen yet.
    pub fn new(file: LearnedFile) -> Learning {
        Learning {
            file,
            shadow: Shadow::default(),
            statistics: Arc::default(),
        }
    }
}

impl Guard {
    /// Takes over what an earlier guard learned.
    pub(super) fn remember(&mut self) {
        self.learning.file.load(self.engine.learned_mut());
        self.show_statistics();
    }

    /// Puts in force what the settings say of the shadow, and tells what is wrong with it.
    pub(super) fn configure_shadow(&mut self) {
        for mistake in &self.config.shadow_mistakes {
            log::error!("the shadow policy is off: {mistake}");
        }
        self.health.shadow_is_wrong(&self.config.shadow_mistakes);
        self.sampler
            .read_workloads(self.config.settings.shadow.enabled);
    }

    /// Lets the shadow policy see a sample, before the one in force decides.
    pub(super) fn consult_shadow(&mut self, look: &Look) {
        let now = self.now();
        let candidates =
            self.learning
                .shadow
                .sample(&look.sample, &look.inside, now, &self.config.settings);
        candidates.iter().for_each(journal::shadow);
    }

    /// After a sample was taken in: shows what was learned, and saves it now and then.
    pub(super) fn keep_learned(&mut self) {
        if self.config.settings.adaptive.enabled {
            self.show_statistics();
            self.save_learned(self.config.settings.adaptive.save_interval);
        }
    }

    /// Saves what was learned unless that was done less than `interval` ago.
    pub(super) fn save_learned(&mut self, interval: Duration) {
        self.learning.file.save(self.engine.learned_mut(), interval);
    }

    fn show_statistics(&mut self) {
        let mut rows: Vec<StatisticsRow> = self
            .engine
            .learned()
            .rows()
            .into_iter()
            .map(|row| StatisticsRow {
                command: row.command.to_string(),
                samples: row.baseline.samples,
                mean: row.baseline.mean,
                deviation: row.baseline.deviation(),
                // The bus has no word for nothing.
                score: row.score.unwrap_or(-1.0),
            })
            .collect();
        rows.sort_by(|a, b| a.command.cmp(&b.command));
        self.learning.statistics = Arc::new(rows);
    }
}
