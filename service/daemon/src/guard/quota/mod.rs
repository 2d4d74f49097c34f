//! The heavy class's quota: sensed at each interval, decided by `guard_policy::quota`, set through systemd,
//! read back, and put back when nobody wants it any more.

mod look;
mod marker;
mod set;
mod signal;
mod view;

use std::path::Path;
use std::time::Instant;

use guard_policy::class::slice_chain;
use guard_policy::health::Problem;
use guard_policy::quota::{
    Controller, Load, Proposal, QuotaSettings, Telemetry, Verdict, aimd, demand,
};
use guard_policy::settings::Settings;
use guard_system::cgroup::CgroupFs;
use guard_system::slices::{DropIns, SliceQuota};
use guard_system::telemetry::{Groups, Sensor};

use super::{Guard, Wake};
use crate::journal;
use marker::{By, Marker, Ours};

const HEAVY: &str = "heavy";
const PROTECTED: &str = "protected";

/// Who has the quota, beside the settings' word.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Control {
    /// The controller where the settings have one, else nobody.
    Settings,
    /// A caller of SetQuota.
    Caller,
    /// Somebody else, who changed it under the controller.
    Yielded,
}

/// Everything that the loop knows of the quota.
pub struct Steering {
    /// The heavy class's slice.
    slice: String,
    sensor: Sensor,
    controller: Controller,
    /// The quota as systemd and the kernel last had it.
    found: SliceQuota,
    /// What of it the guard set; mirrored by the marker.
    ours: Option<Ours>,
    marker: Marker,
    control: Control,
    telemetry: Telemetry,
    looked: Option<Instant>,
    frozen: Option<String>,
    not_set: Option<Problem>,
    last_decision: String,
    last_change: String,
    changes: u64,
    /// AIMD's proposal that was logged last.
    shadow: Option<Proposal>,
    /// None where inotify is not to be had; then each interval asks systemd.
    drop_ins: Option<DropIns>,
    /// When the next decision is due.
    pub(super) due: Instant,
}

impl Steering {
    /// Knows nothing yet; [`Guard::start_steering`] finds what is there.
    pub fn new(runtime: &Path, cgroups: CgroupFs) -> Steering {
        Steering {
            slice: String::new(),
            sensor: Sensor::new("/proc", cgroups),
            controller: Controller::default(),
            found: SliceQuota::default(),
            ours: None,
            marker: Marker::new(runtime),
            control: Control::Settings,
            telemetry: Telemetry::default(),
            looked: None,
            frozen: None,
            not_set: None,
            last_decision: String::new(),
            last_change: String::new(),
            changes: 0,
            shadow: None,
            drop_ins: None,
            due: Instant::now(),
        }
    }

    /// Waits until a drop-in of the slice may have changed; for ever where that cannot be heard.
    pub async fn drop_ins(&mut self) -> Wake {
        let Some(drop_ins) = &mut self.drop_ins else {
            return std::future::pending().await;
        };
        if let Err(error) = drop_ins.changed().await {
            log::warn!(
                "changes of {} by others are seen only at each quota interval: {error}",
                self.slice
            );
            self.drop_ins = None;
        }
        Wake::DropIns
    }

    /// The slice whose quota is the controller's or a caller's, and not the settings' alone.
    pub fn slice_that_it_moves(&self, settings: &QuotaSettings) -> Option<&str> {
        let moves = settings.dynamic || self.ours.is_some();
        (moves && !self.slice.is_empty()).then_some(self.slice.as_str())
    }

    /// What is wrong, for `StateReasons`.
    fn problems(&self, settings: &QuotaSettings) -> Vec<Problem> {
        let mut problems = Vec::new();
        let slice = || self.slice.clone();
        if self.control == Control::Yielded {
            problems.push(Problem::QuotaYielded {
                slice: slice(),
                quota: view::percent(self.found.percent()),
                drop_in: self.found.outranked_by.clone(),
            });
        } else if settings.dynamic || self.control == Control::Caller {
            problems.extend(
                self.found
                    .outranked_by
                    .clone()
                    .map(|file| Problem::QuotaOutranked {
                        slice: slice(),
                        file,
                    }),
            );
        }
        problems.extend(self.frozen.clone().map(|why| Problem::QuotaFrozen {
            slice: slice(),
            why,
        }));
        problems.extend(self.not_set.clone());
        problems
    }
}

/// The slice of a class; the settings always have these two.
fn slice_of(settings: &Settings, class: &str) -> String {
    settings
        .class(class)
        .map_or_else(String::new, |class| class.slice.clone())
}

impl Guard {
    /// Finds what is there, and what an earlier guard left.
    pub(super) async fn start_steering(&mut self) {
        self.steering.slice = slice_of(&self.config.settings, HEAVY);
        self.watch_drop_ins();
        let left = self.steering.marker.load();
        self.read_quota().await;
        let steering = &mut self.steering;
        if let Some(ours) = left {
            // Another slice's is put back below, like one that nobody wants any more.
            if ours.slice != steering.slice || ours.is(steering.found.usec_per_sec) {
                if ours.by == By::Caller {
                    steering.control = Control::Caller;
                }
                log::info!("the quota of {} was set by an earlier guard", ours.slice);
                steering.ours = Some(ours);
            } else {
                steering.marker.remove();
            }
        }
        self.settle_quota().await;
    }

    /// Makes what is set agree with settings that may be new.
    pub(super) async fn settle_quota(&mut self) {
        let settings = self.config.settings.clone();
        let slice = slice_of(&settings, HEAVY);
        let by_controller = |ours: &Ours| ours.by == By::Controller;
        let unwanted = self.steering.ours.as_ref().is_some_and(|ours| {
            ours.slice != slice || (by_controller(ours) && !settings.quota.dynamic)
        });
        if unwanted {
            self.put_quota_back().await;
        }
        if self.steering.slice != slice {
            let old = std::mem::replace(&mut self.steering.slice, slice);
            log::info!(
                "the quota of {} is looked at instead of that of {old}",
                self.steering.slice
            );
            self.steering.control = Control::Settings;
            self.watch_drop_ins();
            self.read_quota().await;
        }
        if !settings.quota.dynamic {
            self.steering.frozen = None;
            self.steering.last_decision.clear();
            if self.steering.control == Control::Yielded {
                self.steering.control = Control::Settings;
            }
        }
        self.steering.due = self
            .steering
            .due
            .min(Instant::now() + settings.quota.interval);
        self.tell_quota_problems();
    }

    /// Senses, decides, and does what was decided.
    pub(super) async fn steer(&mut self) {
        self.look_at_kernel().await;
        let settings = self.config.settings.clone();
        let groups = self.quota_groups(&settings);
        let now = self.now();
        let look = self.steering.sensor.look(&groups, now.0);
        let loads: Vec<Load> = self
            .engine
            .workloads()
            .filter(|tracked| tracked.workload.class == HEAVY)
            .filter_map(|tracked| {
                let cpu = tracked.cpu?;
                let argv = self.proc.argv(tracked.workload.root.pid).ok().flatten();
                let score = argv.and_then(|argv| self.engine.score(&argv, cpu));
                Some(Load { score, cpu })
            })
            .collect();
        let quota = self.steering.found.percent();
        let mut telemetry = look.telemetry;
        telemetry.demand = guard_policy::quota::Signal::now(demand(
            loads,
            settings.routing.cpu_threshold,
            look.heavy_usage,
            quota,
        ));
        self.steering.telemetry = telemetry;
        self.steering.looked = Some(Instant::now());
        if settings.quota.aimd_shadow {
            self.shadow_aimd(&settings.quota);
        }
        self.steering.frozen = None;
        self.steering.not_set = None;
        if settings.quota.dynamic && self.steering.control == Control::Settings {
            let decision = self.steering.controller.decide(
                &self.steering.telemetry,
                quota,
                &settings.quota,
                now,
            );
            self.steering.last_decision = decision.words;
            match decision.verdict {
                Verdict::Keep | Verdict::Wait => {}
                Verdict::Frozen(faults) => {
                    let words: Vec<String> = faults.iter().map(ToString::to_string).collect();
                    self.steering.frozen = Some(words.join("; "));
                }
                Verdict::Change { from, to } => self.carry_out(from, to).await,
            }
        }
        self.tell_quota_problems();
        // From now on, not from when it was due: so two intervals are never shorter than the dwell that
        // they make up.
        self.steering.due = Instant::now() + settings.quota.interval;
    }

    fn quota_groups(&self, settings: &Settings) -> Groups {
        let cgroups = &self.health.inspection().cgroups;
        let protected = slice_of(settings, PROTECTED);
        let group = cgroups.get(&protected).cloned();
        let depth = slice_chain(&protected).len().saturating_sub(1);
        let outermost = group.clone().map(|group| {
            (0..depth).fold(group, |path, _| {
                path.rsplit_once('/')
                    .map_or(path.clone(), |(outer, _)| outer.to_owned())
            })
        });
        Groups {
            heavy: cgroups.get(&self.steering.slice).cloned(),
            protected: group,
            protected_outermost: outermost,
        }
    }

    /// Logs what AIMD would do when that is something new. It is never done.
    fn shadow_aimd(&mut self, settings: &QuotaSettings) {
        let steering = &mut self.steering;
        let quota = steering.found.percent().unwrap_or(settings.most());
        let proposal = aimd(&steering.telemetry, quota, settings);
        if proposal != steering.shadow
            && let Some(proposal) = &proposal
            && proposal.to != proposal.from
        {
            journal::quota_proposed("aimd", proposal);
        }
        steering.shadow = proposal;
    }

    fn tell_quota_problems(&mut self) {
        let problems = self.steering.problems(&self.config.settings.quota);
        self.health.quota_has(problems);
        self.tell_health();
    }
}
