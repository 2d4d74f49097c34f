//! What the quota is, and whether somebody else made it so.

use guard_system::slices::{self, DropIns};

use super::{By, Control};
use crate::guard::Guard;
use crate::guard::quota::view::percent;
use crate::journal;

impl Guard {
    /// Hears of drop-ins of the slice from now on.
    pub(super) fn watch_drop_ins(&mut self) {
        let steering = &mut self.steering;
        let folders = &self.paths;
        steering.drop_ins = match DropIns::of_unit(
            &folders.user_runtime,
            &folders.user_config,
            &steering.slice,
        ) {
            Ok(drop_ins) => Some(drop_ins),
            Err(error) => {
                log::warn!(
                    "changes of {} by others are seen only at each quota interval: inotify: {error}",
                    steering.slice
                );
                None
            }
        };
    }

    /// Looks again where the kernel's value is not the one that was read last, or where nothing is heard
    /// of changes.
    pub(super) async fn look_at_kernel(&mut self) {
        let found = &self.steering.found;
        let kernel = found
            .cgroup
            .as_ref()
            .and_then(|cgroup| self.cgroups.cpu_max(cgroup));
        if self.steering.drop_ins.is_none() || found.cgroup.is_none() || kernel != found.kernel {
            self.look_at_quota().await;
        }
    }

    /// Reads the quota; answers whether systemd did.
    pub(super) async fn read_quota(&mut self) -> bool {
        match slices::quota(&self.connection, &self.cgroups, &self.steering.slice).await {
            Ok(found) => {
                self.steering.found = found;
                true
            }
            Err(error) => {
                log::debug!(
                    "the quota of {} cannot be read: {error}",
                    self.steering.slice
                );
                false
            }
        }
    }

    /// Reads the quota again, and takes note when it is not what it was.
    pub(in crate::guard) async fn look_at_quota(&mut self) {
        let before = self.steering.found.clone();
        if !self.read_quota().await {
            return;
        }
        let found = self.steering.found.clone();
        if found.kernel != before.kernel {
            self.show_enforced_quota();
        }
        if found.usec_per_sec == before.usec_per_sec {
            return;
        }
        // It could not be read for a while, such as that of a masked slice, and is still ours.
        let ours = self.steering.ours.as_ref();
        if ours.is_some_and(|ours| ours.set.last().copied() == found.usec_per_sec) {
            return;
        }
        // The guard's own changes are noted where they are made.
        let now = self.now();
        let dynamic = self.config.settings.quota.dynamic;
        let steering = &mut self.steering;
        steering.controller.changed(now);
        steering.changes += 1;
        steering.last_change = format!(
            "changed from {} to {} by somebody else",
            percent(before.percent()),
            percent(found.percent())
        );
        journal::quota_changed(
            before.percent(),
            found.percent(),
            "other",
            &steering.last_change,
        );
        if let Some(ours) = steering.ours.take() {
            // Theirs now: nothing of ours is left to put back.
            log::info!(
                "the quota of {} is no longer the one that the {} set",
                ours.slice,
                match ours.by {
                    By::Controller => "controller",
                    By::Caller => "caller of SetQuota",
                }
            );
            steering.marker.remove();
        }
        steering.control = match dynamic {
            true => Control::Yielded,
            false => Control::Settings,
        };
        if dynamic {
            steering.frozen = None;
            steering.last_decision = format!("left to somebody else: {}", steering.last_change);
        }
        self.tell_quota_problems();
    }

    /// The table of classes shows what the kernel enforces.
    pub(super) fn show_enforced_quota(&mut self) {
        let enforced = self
            .steering
            .found
            .kernel
            .as_ref()
            .and_then(|max| max.quota_percent());
        self.health.heavy_quota_is(&self.steering.slice, enforced);
    }
}
