//! PropertiesChanged of `org.workloadguard.Quota1`.

use workload_guard_dbus::{Quota1, names};

use crate::bus::QuotaObject;
use crate::guard::Guard;
use crate::published::QuotaView;

impl Guard {
    /// A signal for each property that is not what it was.
    pub(in crate::guard) async fn signal_quota(
        &self,
        before: &QuotaView,
        next: &QuotaView,
    ) -> zbus::Result<()> {
        let server = self.connection.object_server();
        // Absent only while the guard starts: then nobody has read anything yet.
        let Ok(object) = server
            .interface::<_, Quota1<QuotaObject>>(names::GUARD_PATH)
            .await
        else {
            return Ok(());
        };
        let emitter = object.signal_emitter();
        let quota = object.get().await;
        if before.slice != next.slice {
            quota.slice_changed(emitter).await?;
        }
        if before.quota != next.quota {
            quota.quota_changed(emitter).await?;
        }
        if before.enforced != next.enforced {
            quota.enforced_changed(emitter).await?;
        }
        if before.minimum != next.minimum {
            quota.minimum_changed(emitter).await?;
        }
        if before.maximum != next.maximum {
            quota.maximum_changed(emitter).await?;
        }
        if before.dynamic != next.dynamic {
            quota.dynamic_changed(emitter).await?;
        }
        if before.policy != next.policy {
            quota.policy_changed(emitter).await?;
        }
        if before.control != next.control {
            quota.control_changed(emitter).await?;
        }
        if before.last_change != next.last_change {
            quota.last_change_changed(emitter).await?;
        }
        Ok(())
    }
}
