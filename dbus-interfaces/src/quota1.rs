//! `org.workloadguard.Quota1`: how much CPU the heavy class may have.

// The macros write undocumented items; that each member is documented is what tests/golden.rs checks.
#![allow(missing_docs)]

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;

use zbus::message::Header;
use zbus::names::OwnedUniqueName;
use zvariant::OwnedValue;

use crate::error::GuardError;
use crate::types::SignalRow;

/// What serves [`Quota1`]. Methods answer when the change is done and was read back; getters read the
/// last published state and cannot fail.
pub trait Quota1Backend: Send + Sync + 'static {
    /// Behind `SetQuota`: answers the quota in force. `caller` is absent on a connection without a bus.
    fn set_quota(
        &self,
        caller: Option<OwnedUniqueName>,
        percent: u32,
        options: HashMap<String, OwnedValue>,
    ) -> impl Future<Output = Result<f64, GuardError>> + Send;
    /// Behind `ResetQuota`: answers the quota in force.
    fn reset_quota(
        &self,
        caller: Option<OwnedUniqueName>,
    ) -> impl Future<Output = Result<f64, GuardError>> + Send;
    /// Behind `Slice`.
    fn slice(&self) -> String;
    /// Behind `Quota`.
    fn quota(&self) -> f64;
    /// Behind `Enforced`.
    fn enforced(&self) -> f64;
    /// Behind `Minimum`.
    fn minimum(&self) -> u32;
    /// Behind `Maximum`.
    fn maximum(&self) -> u32;
    /// Behind `Dynamic`.
    fn dynamic(&self) -> bool;
    /// Behind `Policy`.
    fn policy(&self) -> String;
    /// Behind `Control`.
    fn control(&self) -> String;
    /// Behind `Signals`.
    fn signals(&self) -> Vec<SignalRow>;
    /// Behind `LastDecision`.
    fn last_decision(&self) -> String;
    /// Behind `LastChange`.
    fn last_change(&self) -> String;
    /// Behind `ChangesTotal`.
    fn changes_total(&self) -> u64;
}

/// Second interface of the object at [`crate::names::GUARD_PATH`].
pub struct Quota1<B>(pub Arc<B>);

fn sender(header: &Header<'_>) -> Option<OwnedUniqueName> {
    header.sender().map(|name| name.to_owned().into())
}

/// The CPU quota of the heavy class's slice, and the controller that may move it. Quotas are percent of one
/// logical CPU.
#[zbus::interface(
    name = "org.workloadguard.Quota1",
    proxy(
        default_service = "org.workloadguard.Guard1",
        default_path = "/org/workloadguard/Guard1",
        gen_blocking = false,
    )
)]
impl<B: Quota1Backend> Quota1<B> {
    /// Sets the quota until ResetQuota, or until the guard stops: the controller leaves it alone. Work in a
    /// class with a budget cannot call this.
    ///
    /// @percent: from Minimum to Maximum.
    /// @options: `reason` (s): why, for LastChange; at most 200 bytes. An unknown option is refused.
    /// @quota: the quota in force, read back.
    ///
    /// Errors: LimitExceeded, OutOfReach, NoController, InvalidSettings, SystemdRefused, Timeout.
    #[zbus(out_args("quota"))]
    async fn set_quota(
        &self,
        #[zbus(header)] header: Header<'_>,
        percent: u32,
        options: HashMap<String, OwnedValue>,
    ) -> Result<f64, GuardError> {
        self.0.set_quota(sender(&header), percent, options).await
    }

    /// Takes back what SetQuota or the controller set: the quota is the slice's own again. With Dynamic the
    /// controller goes on from there, also where it had left the quota to somebody else.
    ///
    /// @quota: the quota in force, read back; 0 for no limit.
    ///
    /// Errors: OutOfReach, SystemdRefused, Timeout.
    #[zbus(out_args("quota"))]
    async fn reset_quota(&self, #[zbus(header)] header: Header<'_>) -> Result<f64, GuardError> {
        self.0.reset_quota(sender(&header)).await
    }

    /// The slice, such as `heavy-workload.slice`.
    #[zbus(property)]
    fn slice(&self) -> String {
        self.0.slice()
    }

    /// The slice's quota as systemd has it, whoever set it; 0 for no limit.
    #[zbus(property)]
    fn quota(&self) -> f64 {
        self.0.quota()
    }

    /// What the kernel enforces on the slice (`cpu.max`); 0 for no limit, and where there is no cpu
    /// controller or no control group.
    #[zbus(property)]
    fn enforced(&self) -> f64 {
        self.0.enforced()
    }

    /// The least that SetQuota and the controller set.
    #[zbus(property)]
    fn minimum(&self) -> u32 {
        self.0.minimum()
    }

    /// The most that SetQuota and the controller set.
    #[zbus(property)]
    fn maximum(&self) -> u32 {
        self.0.maximum()
    }

    /// Whether the settings have a controller move the quota.
    #[zbus(property)]
    fn dynamic(&self) -> bool {
        self.0.dynamic()
    }

    /// The controller's policy: `step` or `protected`.
    #[zbus(property)]
    fn policy(&self) -> String {
        self.0.policy()
    }

    /// Who has the quota: `static` (the slice's own), `auto` (the controller), `frozen` (the controller,
    /// which lacks telemetry), `set` (SetQuota) or `yielded` (somebody else changed it under the controller).
    #[zbus(property)]
    fn control(&self) -> String {
        self.0.control()
    }

    /// What the controller sees: name, state (`read`, `pending`, `absent` or `broken`), value, its age in
    /// seconds, and what is wrong with it, if anything. The value and age are 0 unless the state is `read`.
    #[zbus(property(emits_changed_signal = "false"))]
    fn signals(&self) -> Vec<SignalRow> {
        self.0.signals()
    }

    /// The controller's last decision, in words; empty before the first one.
    #[zbus(property(emits_changed_signal = "false"))]
    fn last_decision(&self) -> String {
        self.0.last_decision()
    }

    /// The last change of the quota since the guard started, by whomever, in words; empty before.
    #[zbus(property)]
    fn last_change(&self) -> String {
        self.0.last_change()
    }

    /// Changes of the quota since the guard started, by whomever.
    #[zbus(property(emits_changed_signal = "false"))]
    fn changes_total(&self) -> u64 {
        self.0.changes_total()
    }
}
