//! `org.workloadguard.History1`: what happened, and what follows from it.

// The macros write undocumented items; that each member is documented is what tests/golden_history.rs checks.
#![allow(missing_docs)]

use std::future::Future;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use zvariant::Type;

use crate::dict::Dict;
use crate::error::GuardError;

/// One finding of `Diagnose`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Type)]
pub struct FindingRow {
    /// Its name, such as `heavy-throttled`.
    pub id: String,
    /// `problem`, `warning` or `note`.
    pub severity: String,
    /// What is so.
    pub title: String,
    /// What says so.
    pub evidence: Vec<String>,
    /// What to do.
    pub next: String,
}

/// One row of the attribution of `Diagnose`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Type)]
pub struct ShareRow {
    /// `heavy`, `other classes` or `outside`.
    pub who: String,
    /// Mean CPU over the last hour, in percent of one logical CPU.
    pub cpu: f64,
    /// The same while pressure was high; negative when it never was.
    pub cpu_while_high: f64,
}

/// What serves [`History1`].
pub trait History1Backend: Send + Sync + 'static {
    /// Behind `Summary`.
    fn summary(&self, window: u32) -> impl Future<Output = Result<Dict, GuardError>> + Send;
    /// Behind `Snapshots`.
    fn snapshots(
        &self,
        since: u64,
        max: u32,
    ) -> impl Future<Output = Result<Vec<Dict>, GuardError>> + Send;
    /// Behind `Diagnose`.
    #[allow(clippy::type_complexity)]
    fn diagnose(
        &self,
    ) -> impl Future<Output = Result<(String, String, Vec<ShareRow>, Vec<FindingRow>), GuardError>> + Send;
    /// Behind `Metrics`.
    fn metrics(&self) -> impl Future<Output = Result<String, GuardError>> + Send;
}

/// At the guard's object.
pub struct History1<B>(pub Arc<B>);

/// What happened lately: snapshots of every five minutes, what they add up to, and what follows from them.
#[zbus::interface(
    name = "org.workloadguard.History1",
    proxy(
        default_service = "org.workloadguard.Guard1",
        default_path = "/org/workloadguard/Guard1",
        gen_blocking = false,
    )
)]
impl<B: History1Backend> History1<B> {
    /// Adds up the last so many seconds.
    ///
    /// @window: seconds, up to now.
    /// @summary: `snapshots`, `restarts`, `route_events`, `recovery_events`, `quota_changes`,
    /// `routed_max` (t); `first`, `last` (t, seconds since 1970); `measures` (a{sv}): by the names of Snapshots,
    /// each a{sv} of `samples` (t), `min`, `mean`, `p95`, `max` and `last` (d); `top_cpu` (aa{sv}): `command`,
    /// `class`, `cgroup` (s), `snapshots` (t), `cpu_pct` (d); `throttling` (aa{sv}): `command`, `class` (s),
    /// `workloads` (t), `throttled_sec` (d): how long budgets held them up. What is not known is not there.
    ///
    /// Errors: LimitExceeded, SystemdRefused.
    #[zbus(out_args("summary"))]
    async fn summary(&self, window: u32) -> Result<Dict, GuardError> {
        self.0.summary(window).await
    }

    /// The snapshots as they are in history.jsonl, oldest first.
    ///
    /// @since: seconds since 1970.
    /// @max: the newest so many; at most 2048.
    /// @snapshots: the keys of schema 3: `schema_version`, `ts`, `routed`, `route_events`,
    /// `recovery_events`, `quota_changes` (t); `quota`, `cpu_psi_some_avg10`, `router_runqueue_delay_ms`,
    /// `heavy_cpu_pct`, `heavy_throttle_ratio`, `guarded_cpu_pct`, `unmanaged_cpu_pct` (d); `top_cpu` (aa{sv}).
    /// What could not be measured is not there.
    ///
    /// Errors: LimitExceeded, SystemdRefused.
    #[zbus(out_args("snapshots"))]
    async fn snapshots(&self, since: u64, max: u32) -> Result<Vec<Dict>, GuardError> {
        self.0.snapshots(since, max).await
    }

    /// What the last hour and the machine tell: each finding with its evidence and a next step.
    ///
    /// @pressure: `normal`, `high` or `unknown`, as it was measured.
    /// @pressure_text: the same in words.
    /// @attribution: who used CPU meanwhile; it names no cause. CPU in percent of one logical CPU: mean over
    /// the hour, and while pressure was high (negative when it never was).
    /// @findings: name, severity (`problem`, `warning`, `note`), what is so, what says so, what to do.
    ///
    /// Errors: LimitExceeded, SystemdRefused.
    #[zbus(out_args("pressure", "pressure_text", "attribution", "findings"))]
    async fn diagnose(
        &self,
    ) -> Result<(String, String, Vec<ShareRow>, Vec<FindingRow>), GuardError> {
        self.0.diagnose().await
    }

    /// Counters and measures of the guard for a monitoring system.
    ///
    /// @text: OpenMetrics 1.0.
    ///
    /// Errors: LimitExceeded, SystemdRefused.
    #[zbus(out_args("text"))]
    async fn metrics(&self) -> Result<String, GuardError> {
        self.0.metrics().await
    }
}
