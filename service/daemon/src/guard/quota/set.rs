//! Setting the quota, and putting it back.

use guard_policy::action::Failure;
use guard_policy::health::Problem;
use guard_system::slices::{self, CPU_CONTROLLER};
use workload_guard_dbus::GuardError;

use super::view::percent;
use super::{By, Control, Ours, PROTECTED};
use crate::guard::Guard;
use crate::journal;

impl Guard {
    /// Does what the controller decided.
    pub(super) async fn carry_out(&mut self, from: Option<f64>, to: f64) {
        let policy = self.config.settings.quota.policy;
        let words = self.steering.last_decision.clone();
        match self.set_quota(to, By::Controller).await {
            Ok(()) => {
                self.steering.not_set = None;
                self.steering.changes += 1;
                self.steering.last_change = words.clone();
                journal::quota_changed(from, Some(to), policy.as_str(), &words);
            }
            Err(failure) => {
                let text = failure.to_string();
                self.steering.last_decision = format!("not done: {text} ({words})");
                self.steering.not_set = Some(Problem::QuotaNotSet(text));
            }
        }
    }

    /// Behind SetQuota.
    pub(in crate::guard) async fn quota_asked(
        &mut self,
        caller: Option<u32>,
        percent_asked: u32,
        reason: &str,
    ) -> Result<f64, GuardError> {
        self.may_change_quota(caller)?;
        // Where no quota holds, none is promised.
        if !self
            .health
            .inspection()
            .capabilities
            .iter()
            .any(|name| name == CPU_CONTROLLER)
        {
            return Err(GuardError::NoController(
                "the user manager has no cpu controller, so no quota would hold; `workload-guard status` names the way out".to_owned(),
            ));
        }
        let settings = &self.config.settings.quota;
        if !(settings.min..=settings.max).contains(&percent_asked) {
            return Err(GuardError::LimitExceeded(format!(
                "the quota can be set from {}% to {}% (quota.min and quota.max of the settings), not to {percent_asked}%",
                settings.min, settings.max
            )));
        }
        let before = self.steering.found.percent();
        let to = f64::from(percent_asked);
        self.set_quota(to, By::Caller)
            .await
            .map_err(crate::bus::error)?;
        let steering = &mut self.steering;
        steering.control = Control::Caller;
        steering.frozen = None;
        steering.not_set = None;
        steering.changes += 1;
        let why = match reason {
            "" => String::new(),
            reason => format!(": {reason}"),
        };
        steering.last_change = format!("set from {} to {percent_asked}%{why}", percent(before));
        steering.last_decision = format!("left to the caller of SetQuota{why}");
        journal::quota_changed(before, Some(to), "asked", &steering.last_change);
        self.tell_quota_problems();
        Ok(self.steering.found.percent().unwrap_or(0.0))
    }

    /// Behind ResetQuota.
    pub(in crate::guard) async fn quota_reset(
        &mut self,
        caller: Option<u32>,
    ) -> Result<f64, GuardError> {
        self.may_change_quota(caller)?;
        if self.steering.ours.is_some() && !self.put_quota_back().await {
            return Err(GuardError::SystemdRefused(format!(
                "the quota of {} is not put back; `journalctl --user -u workload-guard` says why",
                self.steering.slice
            )));
        }
        self.steering.control = Control::Settings;
        self.steering.last_decision.clear();
        self.tell_quota_problems();
        Ok(self.steering.found.percent().unwrap_or(0.0))
    }

    /// Work with a budget must not raise its own.
    fn may_change_quota(&self, caller: Option<u32>) -> Result<(), GuardError> {
        let inspection = self.health.inspection();
        if let Some(pid) = caller {
            let cgroup = self.proc.cgroup(pid).unwrap_or_default();
            let inside = self.config.settings.classes.iter().find(|class| {
                class.name != PROTECTED
                    && inspection.cgroups.get(&class.slice).is_some_and(|group| {
                        cgroup
                            .strip_prefix(group.as_str())
                            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                    })
            });
            if let Some(class) = inside {
                return Err(GuardError::OutOfReach(format!(
                    "process {pid} runs in {}, and {} work cannot change the quota; call from outside of it",
                    class.slice, class.name
                )));
            }
        }
        Ok(())
    }

    /// Sets the quota, with the marker written before. The dwell begins when it is done.
    async fn set_quota(&mut self, to: f64, by: By) -> Result<(), Failure> {
        // A whole percent, so nothing is lost.
        let usec = (to * 10_000.0).round() as u64;
        let steering = &self.steering;
        let (base, mut set) = match &steering.ours {
            Some(ours) => (ours.base, ours.set.last().copied().into_iter().collect()),
            None => (steering.found.usec_per_sec, Vec::new()),
        };
        set.push(usec);
        let ours = Ours {
            slice: steering.slice.clone(),
            base,
            set,
            by,
        };
        // What could not be put back after a crash is not set.
        steering.marker.save(&ours).map_err(|error| {
            Failure::SystemdRefused(format!(
                "the quota is not changed, since {} cannot be written: {error}",
                steering.marker.path().display()
            ))
        })?;
        let slice = ours.slice.clone();
        let earlier = self.steering.ours.replace(ours);
        let found = slices::set_quota(&self.connection, &self.cgroups, &slice, Some(usec)).await;
        let now = self.now();
        match found {
            Ok(found) => {
                let taken = found.usec_per_sec == Some(usec);
                let held = found.holds || found.cgroup.is_none();
                let kernel = found.kernel.as_ref().map(|max| max.raw.clone());
                self.steering.found = found;
                self.steering.controller.changed(now);
                self.show_enforced_quota();
                if !taken || !held {
                    return Err(Failure::SystemdRefused(format!(
                        "systemd took {to}% for {slice}, and then said {} with cpu.max {}",
                        percent(self.steering.found.percent()),
                        kernel.as_deref().unwrap_or("missing")
                    )));
                }
                Ok(())
            }
            Err(failure) => {
                if let Failure::SystemdRefused(_) = failure {
                    self.forget_attempt(earlier);
                }
                // It may have been done all the same: what is there counts.
                self.read_quota().await;
                Err(failure)
            }
        }
    }

    /// What was to be set was not: what was set before is the last again.
    fn forget_attempt(&mut self, earlier: Option<Ours>) {
        let steering = &mut self.steering;
        match &earlier {
            None => steering.marker.remove(),
            Some(earlier) => {
                // With the attempt in it, it holds as well: it has both.
                if let Err(error) = steering.marker.save(earlier) {
                    log::warn!("{}: {error}", steering.marker.path().display());
                }
            }
        }
        steering.ours = earlier;
    }

    /// Puts back what was there before the guard set anything, unless somebody else changed it since.
    /// False when systemd does not do it; then it stays remembered.
    pub(in crate::guard) async fn put_quota_back(&mut self) -> bool {
        let Some(ours) = self.steering.ours.clone() else {
            return true;
        };
        let current = match slices::quota(&self.connection, &self.cgroups, &ours.slice).await {
            Ok(current) => current,
            Err(error) => {
                log::warn!("the quota of {} cannot be put back: {error}", ours.slice);
                return false;
            }
        };
        if ours.is(current.usec_per_sec) {
            match slices::set_quota(&self.connection, &self.cgroups, &ours.slice, ours.base).await {
                Ok(found) => {
                    let words = format!(
                        "put back from {} to {}",
                        percent(current.percent()),
                        percent(found.percent())
                    );
                    journal::quota_changed(current.percent(), found.percent(), "reset", &words);
                    let now = self.now();
                    self.steering.controller.changed(now);
                    self.steering.changes += 1;
                    self.steering.last_change = words;
                    if ours.slice == self.steering.slice {
                        self.steering.found = found;
                        self.show_enforced_quota();
                    }
                }
                Err(failure) => {
                    log::warn!("the quota of {} is not put back: {failure}", ours.slice);
                    return false;
                }
            }
        }
        self.steering.ours = None;
        self.steering.control = Control::Settings;
        self.steering.marker.remove();
        true
    }
}
