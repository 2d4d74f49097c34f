//! `org.workloadguard.Profile1`: a look of some seconds at the whole machine.

// The macros write undocumented items; that each member is documented is what tests/golden_history.rs checks.
#![allow(missing_docs)]

use std::future::Future;
use std::sync::Arc;

use zbus::message::Header;
use zbus::names::OwnedUniqueName;
use zbus::object_server::SignalEmitter;

use crate::dict::Dict;
use crate::error::GuardError;

/// What serves [`Profile1`].
pub trait Profile1Backend: Send + Sync + 'static {
    /// Behind `Sample`.
    fn sample(
        &self,
        caller: Option<OwnedUniqueName>,
        duration: f64,
        samples: u32,
    ) -> impl Future<Output = Result<Dict, GuardError>> + Send;
}

/// At the guard's object.
pub struct Profile1<B>(pub Arc<B>);

/// Looks at the whole machine for some seconds.
#[zbus::interface(
    name = "org.workloadguard.Profile1",
    proxy(
        default_service = "org.workloadguard.Guard1",
        default_path = "/org/workloadguard/Guard1",
        gen_blocking = false,
    )
)]
impl<B: Profile1Backend> Profile1<B> {
    /// Looks, and answers when it is done. One look at a time; the caller hears Progress meanwhile.
    ///
    /// @duration: seconds, from 0.5 to 60.
    /// @samples: wakeups of a thread that are timed, from 10 to 2000 and at most 1000 a second.
    /// @profile: `duration_sec` (d), `cpus` (t), `psi_some_avg10`, `psi_some` (d, 0 to 1), `runqueue_delay_ms` (d),
    /// `wakeup_excess_ms` (a{sv}: `samples` (t), `p50`, `p95`, `p99`, `max` (d)), `top_cpu` (aa{sv}: `cgroup` (s),
    /// `cpu_pct` (d), its own), `top_throttled` (aa{sv}: `cgroup`, `cpu_pct`, `throttled_periods` (t), `periods` (t),
    /// `throttled_ms` (d)). What is not known is not there.
    ///
    /// Errors: LimitExceeded, SystemdRefused.
    #[zbus(out_args("profile"))]
    async fn sample(
        &self,
        #[zbus(header)] header: Header<'_>,
        duration: f64,
        samples: u32,
    ) -> Result<Dict, GuardError> {
        let caller = header.sender().map(|name| name.to_owned().into());
        self.0.sample(caller, duration, samples).await
    }

    /// How far the look is that the receiver asked for. Sent to who called Sample alone.
    ///
    /// @part: from 0 to 1.
    #[zbus(signal)]
    pub async fn progress(emitter: &SignalEmitter<'_>, part: f64) -> zbus::Result<()>;
}
