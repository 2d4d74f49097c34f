//! What is missing for the guard to do all of its work.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

use guard_policy::health::Problem;
use guard_policy::settings::Settings;
use guard_system::sched_ext;
use guard_system::slices::{self, Inspection};

use super::{Guard, HEALTH_INTERVAL};

/// The last look at slices, controllers and budgets.
pub struct Health {
    settings: Vec<Problem>,
    shadow: Vec<Problem>,
    inspection: Inspection,
    /// A scheduler that replaces the kernel's own.
    scheduler: Option<Problem>,
    /// What is wrong with the quota's control.
    quota: Vec<Problem>,
    checked: Option<Instant>,
    /// Looks in a row after which a slice was still missing.
    in_vain: u32,
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
            shadow: Vec::new(),
            inspection: Inspection::default(),
            scheduler: None,
            quota: Vec::new(),
            checked: None,
            in_vain: 0,
            told: BTreeSet::new(),
        }
    }

    /// A reload found the files good.
    pub fn settings_are_good(&mut self) {
        self.settings.clear();
    }

    /// What is wrong with the shadow's settings, if anything.
    pub fn shadow_is_wrong(&mut self, mistakes: &[String]) {
        self.shadow = mistakes.iter().cloned().map(Problem::Shadow).collect();
    }

    /// The last look.
    pub fn inspection(&self) -> &Inspection {
        &self.inspection
    }

    /// What is wrong with the quota's control.
    pub fn quota_has(&mut self, problems: Vec<Problem>) {
        self.quota = problems;
    }

    /// What the kernel now enforces on the slice of a class, in percent of one logical CPU.
    pub fn heavy_quota_is(&mut self, slice: &str, percent: Option<f64>) {
        let classes = &mut self.inspection.classes;
        if let Some(row) = classes.iter_mut().find(|row| row.slice == slice) {
            // Rounded up, since 0 means none.
            row.quota = percent.map_or(0, |percent| percent.ceil() as u32);
        }
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
    pub fn problems<'a>(
        &'a self,
        unsaved: impl IntoIterator<Item = &'a Problem> + 'a,
    ) -> impl Iterator<Item = &'a Problem> {
        self.settings
            .iter()
            .chain(&self.shadow)
            .chain(&self.inspection.problems)
            .chain(&self.scheduler)
            .chain(&self.quota)
            .chain(unsaved)
    }
}

impl Guard {
    /// Starts slices that are not, compares budgets with the kernel's, and logs what changed.
    pub(super) async fn check_health(&mut self) {
        self.apply_budgets().await;
        let settings = &self.config.settings;
        self.health.inspection = slices::inspect(
            &self.connection,
            &self.cgroups,
            &settings.classes,
            &settings.watch.parent_units,
        )
        .await;
        self.health
            .inspection
            .problems
            .extend_from_slice(self.budgets.problems());
        self.health.checked = Some(Instant::now());
        self.health.in_vain = match self.a_slice_is_missing() {
            true => self.health.in_vain.saturating_add(1),
            false => 0,
        };
        self.health.scheduler = sched_ext::loaded(Path::new("/sys")).map(Problem::SchedExt);
        self.tell_health();
    }

    /// Logs what is new of what is wrong, and what no longer is.
    pub(super) fn tell_health(&mut self) {
        let now: BTreeSet<Problem> = self.health.problems(self.unsaved()).cloned().collect();
        for problem in now.difference(&self.health.told) {
            log::warn!("degraded: {problem}");
        }
        for problem in self.health.told.difference(&now) {
            log::info!("no longer so: {problem}");
        }
        self.health.told = now;
    }

    /// What cannot be written now.
    pub(super) fn unsaved(&self) -> impl Iterator<Item = &Problem> {
        let learned = self.learning.file.problem();
        self.store.problem().into_iter().chain(learned)
    }

    /// Looks again when the last look is old, or when a control group has vanished that is watched or
    /// that work is routed into: somebody stopped the slice.
    pub(super) async fn refresh_health(&mut self) {
        let age = self
            .health
            .checked
            .map_or(HEALTH_INTERVAL, |checked| checked.elapsed());
        // A slice that cannot be started is asked for less and less often.
        let soon = HEALTH_INTERVAL / 10 * (1 << self.health.in_vain.min(2));
        if age >= HEALTH_INTERVAL || (age >= soon && self.a_slice_is_missing()) {
            self.check_health().await;
        }
    }

    fn a_slice_is_missing(&self) -> bool {
        let settings = &self.config.settings;
        let classes = settings.classes.iter().map(|class| &class.slice);
        settings
            .watch
            .parent_units
            .iter()
            .chain(classes)
            .any(|unit| {
                let cgroup = self.health.inspection.cgroups.get(unit);
                cgroup.is_none_or(|cgroup| self.cgroups.populated(cgroup).is_none())
            })
    }
}
