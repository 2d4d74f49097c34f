//! What is missing for the guard to do all of its work.

use std::collections::BTreeSet;
use std::time::Instant;

use guard_policy::health::Problem;
use guard_policy::settings::Settings;
use guard_system::slices::{self, Inspection};

use super::{Guard, HEALTH_INTERVAL};

/// The last look at slices, controllers and budgets.
pub struct Health {
    settings: Vec<Problem>,
    inspection: Inspection,
    checked: Option<Instant>,
    /// What was logged and still holds: each problem is told once.
    told: BTreeSet<Problem>,
}

impl Health {
    /// Nothing looked at yet; `settings` is what was wrong with the files, if anything.
    pub fn new(settings: Option<String>) -> Health {
        Health {
            // One mistake a line, and each is a reason of its own.
            settings: settings
                .iter()
                .flat_map(|errors| errors.lines())
                .map(|error| {
                    Problem::Settings(format!("the built-in settings are in force: {error}"))
                })
                .collect(),
            inspection: Inspection::default(),
            checked: None,
            told: BTreeSet::new(),
        }
    }

    /// A reload found the files good.
    pub fn settings_are_good(&mut self) {
        self.settings.clear();
    }

    /// The last look.
    pub fn inspection(&self) -> &Inspection {
        &self.inspection
    }

    /// The control groups of the watched units that have one.
    pub fn parent_cgroups(&self, settings: &Settings) -> Vec<String> {
        settings
            .watch
            .parent_units
            .iter()
            .filter_map(|unit| self.inspection.cgroups.get(unit).cloned())
            .collect()
    }

    /// Everything that is wrong now, with what only the daemon itself knows.
    pub fn problems<'a>(&'a self, store: Option<&'a Problem>) -> impl Iterator<Item = &'a Problem> {
        self.settings
            .iter()
            .chain(&self.inspection.problems)
            .chain(store)
    }
}

impl Guard {
    /// Starts slices that are not, compares budgets with the kernel's, and logs what changed.
    pub(super) async fn check_health(&mut self) {
        let settings = &self.config.settings;
        self.health.inspection = slices::inspect(
            &self.connection,
            &self.cgroups,
            &settings.classes,
            &settings.watch.parent_units,
        )
        .await;
        self.health.checked = Some(Instant::now());
        let now: BTreeSet<Problem> = self
            .health
            .problems(self.store.problem())
            .cloned()
            .collect();
        for problem in now.difference(&self.health.told) {
            log::warn!("degraded: {problem}");
        }
        for problem in self.health.told.difference(&now) {
            log::info!("no longer so: {problem}");
        }
        self.health.told = now;
    }

    /// Looks again when the last look is old, or when a watched control group has vanished.
    pub(super) async fn refresh_health(&mut self) {
        let age = self
            .health
            .checked
            .map_or(HEALTH_INTERVAL, |checked| checked.elapsed());
        let vanished = || {
            let settings = &self.config.settings;
            settings.watch.parent_units.iter().any(|unit| {
                let cgroup = self.health.inspection.cgroups.get(unit);
                cgroup.is_none_or(|cgroup| self.cgroups.populated(cgroup).is_none())
            })
        };
        // A slice that cannot be started is not asked for at every sample.
        if age >= HEALTH_INTERVAL || (age >= HEALTH_INTERVAL / 10 && vanished()) {
            self.check_health().await;
        }
    }
}
