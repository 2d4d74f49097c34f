//! The object of `org.workloadguard.Quota1`.

use std::collections::HashMap;

use workload_guard_dbus::types::SignalRow;
use workload_guard_dbus::{GuardError, Quota1Backend};
use zbus::names::OwnedUniqueName;
use zvariant::OwnedValue;

use super::caller;
use super::command::{Command, Commands};
use super::options::Options;
use crate::published::{Board, QuotaView};

/// Serves [`Quota1Backend`].
pub struct QuotaObject {
    /// To ask the bus who called.
    pub connection: zbus::Connection,
    /// What getters read.
    pub board: Board,
    /// Where wishes go.
    pub commands: Commands,
}

impl QuotaObject {
    fn view<T>(&self, of: impl FnOnce(&QuotaView) -> T) -> T {
        of(&self.board.read().quota)
    }
}

impl Quota1Backend for QuotaObject {
    async fn set_quota(
        &self,
        caller: Option<OwnedUniqueName>,
        percent: u32,
        options: HashMap<String, OwnedValue>,
    ) -> Result<f64, GuardError> {
        let options = Options::try_from(options)?;
        if options.ends() {
            return Err(GuardError::InvalidSettings(
                "SetQuota knows no option but `reason` (s); ResetQuota ends it".to_owned(),
            ));
        }
        let reason = options.reason;
        let caller = caller::pid(&self.connection, caller).await?;
        self.commands
            .ask(|answer| Command::SetQuota {
                caller,
                percent,
                reason,
                answer,
            })
            .await
    }

    async fn reset_quota(&self, caller: Option<OwnedUniqueName>) -> Result<f64, GuardError> {
        let caller = caller::pid(&self.connection, caller).await?;
        self.commands
            .ask(|answer| Command::ResetQuota { caller, answer })
            .await
    }

    fn slice(&self) -> String {
        self.view(|quota| quota.slice.clone())
    }

    fn quota(&self) -> f64 {
        self.view(|quota| quota.quota)
    }

    fn enforced(&self) -> f64 {
        self.view(|quota| quota.enforced)
    }

    fn minimum(&self) -> u32 {
        self.view(|quota| quota.minimum)
    }

    fn maximum(&self) -> u32 {
        self.view(|quota| quota.maximum)
    }

    fn dynamic(&self) -> bool {
        self.view(|quota| quota.dynamic)
    }

    fn policy(&self) -> String {
        self.view(|quota| quota.policy.clone())
    }

    fn control(&self) -> String {
        self.view(|quota| quota.control.clone())
    }

    fn signals(&self) -> Vec<SignalRow> {
        self.view(|quota| {
            let since = quota
                .looked
                .map_or(0.0, |looked| looked.elapsed().as_secs_f64());
            let mut rows = quota.signals.clone();
            for row in rows.iter_mut().filter(|row| row.state == "read") {
                row.age += since;
            }
            rows
        })
    }

    fn last_decision(&self) -> String {
        self.view(|quota| quota.last_decision.clone())
    }

    fn last_change(&self) -> String {
        self.view(|quota| quota.last_change.clone())
    }

    fn changes_total(&self) -> u64 {
        self.view(|quota| quota.changes)
    }
}
