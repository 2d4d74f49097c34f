//! When a snapshot is due, and what the loop alone knows for it.

use std::time::{Duration, Instant};

use guard_policy::action::{Placement, RecoverCause};
use guard_system::host::Group;
use guard_system::telemetry::Groups;

use super::Guard;
use crate::history::{Counters, History, Moment, Places};

/// The first snapshot comes early: so a start shows, and the counters that begin anew are seen to do so.
const FIRST: Duration = Duration::from_secs(30);

/// The loop's end of the history.
pub struct Snapshots {
    history: History,
    /// None until counting has begun.
    next: Option<Instant>,
}

impl Snapshots {
    /// Nothing counted yet.
    pub fn new(history: History) -> Snapshots {
        Snapshots {
            history,
            next: None,
        }
    }
}

impl Guard {
    /// After each sample: has a snapshot taken when one is due.
    pub(super) fn keep_history(&mut self) {
        let now = Instant::now();
        let interval = self.config.settings.history.interval;
        match self.snapshots.next {
            None => {
                self.snapshots.history.begin(self.places());
                self.snapshots.next = Some(now + interval.min(FIRST));
            }
            Some(next) if now >= next => {
                let moment = Moment {
                    places: self.places(),
                    counters: self.counters(),
                    throttled: self
                        .throttling
                        .news(self.routes.values().map(|record| &record.route)),
                };
                self.snapshots.history.snapshot(moment);
                self.snapshots.next = Some(now + interval);
            }
            // A shorter interval of new settings counts at once.
            Some(next) => self.snapshots.next = Some(next.min(now + interval)),
        }
    }

    fn places(&self) -> Places {
        let cgroups = &self.health.inspection().cgroups;
        let of = |class: &str| {
            let class = self.config.settings.class(class)?;
            cgroups.get(&class.slice).cloned()
        };
        let group = |class: &guard_policy::class::Class| {
            let cgroup = cgroups.get(&class.slice)?.clone();
            Some(Group {
                class: class.name.clone(),
                cgroup,
            })
        };
        Places {
            classes: self
                .config
                .settings
                .classes
                .iter()
                .filter_map(group)
                .collect(),
            groups: Groups {
                heavy: of("heavy"),
                protected: of("protected"),
                protected_outermost: None,
            },
        }
    }

    fn counters(&self) -> Counters {
        let quota = self.steering.view(&self.config.settings.quota);
        let routed = self
            .routes
            .values()
            .filter(|record| record.route.placement == Placement::Routed)
            .count();
        Counters {
            routed: routed as u64,
            route_events: self.totals.routed,
            recovery_events: self.totals.recovered,
            quota_changes: quota.changes,
            quota: Some(quota.quota).filter(|quota| *quota > 0.0),
        }
    }

    /// Counts a move for those who read metrics.
    pub(super) fn count_route(&mut self, reason: &str, took: Option<Duration>) {
        let tally = std::sync::Arc::make_mut(&mut self.tally);
        *tally.routes.entry(reason.to_owned()).or_default() += 1;
        if let Some(took) = took {
            tally.moves.observe(took.as_secs_f64());
        }
    }

    /// The same for a recovery.
    pub(super) fn count_recovery(&mut self, cause: &RecoverCause) {
        let reason = match cause {
            RecoverCause::Calm { .. } => "calm",
            RecoverCause::Released => "released",
            RecoverCause::Resumed => "resumed",
            RecoverCause::LeaseEnded => "lease-ended",
            RecoverCause::Exempted => "exempted",
        };
        let tally = std::sync::Arc::make_mut(&mut self.tally);
        *tally.recoveries.entry(reason.to_owned()).or_default() += 1;
    }
}
