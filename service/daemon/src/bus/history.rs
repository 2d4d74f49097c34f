//! The object of `org.workloadguard.History1`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use guard_insight::diagnose;
use guard_policy::settings::Settings;
use workload_guard_dbus::dict::{self, Dict};
use workload_guard_dbus::history1::{FindingRow, ShareRow};
use workload_guard_dbus::types::UNKNOWN;
use workload_guard_dbus::{GuardError, History1Backend};

use crate::history::{History, Machine};
use crate::published::{Board, Published, WorkloadView};

/// Snapshots per answer; a day has 288.
const MAX_SNAPSHOTS: u32 = 2048;

/// Serves [`History1Backend`].
pub struct HistoryObject {
    /// What getters read.
    pub board: Board,
    /// Who knows the rest.
    pub history: History,
}

impl History1Backend for HistoryObject {
    async fn summary(&self, window: u32) -> Result<Dict, GuardError> {
        Ok(dict::of(&self.history.summary(window).await?))
    }

    async fn snapshots(&self, since: u64, max: u32) -> Result<Vec<Dict>, GuardError> {
        let found = self
            .history
            .since(since, max.min(MAX_SNAPSHOTS) as usize)
            .await?;
        Ok(found.iter().map(dict::of).collect())
    }

    async fn diagnose(
        &self,
    ) -> Result<(String, String, Vec<ShareRow>, Vec<FindingRow>), GuardError> {
        let published = self.board.read();
        let found = self
            .history
            .diagnose(guard(&published), machine(&published))
            .await?;
        let shares = found.attribution.iter().map(|share| ShareRow {
            who: share.who.to_owned(),
            cpu: share.cpu_pct,
            cpu_while_high: share.cpu_pct_while_high.unwrap_or(-1.0),
        });
        let findings = found.findings.into_iter().map(|finding| FindingRow {
            id: finding.id.to_owned(),
            severity: finding.severity.as_str().to_owned(),
            title: finding.title,
            evidence: finding.evidence,
            next: finding.next,
        });
        Ok((
            found.pressure.level.as_str().to_owned(),
            found.pressure.words,
            shares.collect(),
            findings.collect(),
        ))
    }

    async fn metrics(&self) -> Result<String, GuardError> {
        self.history.metrics(self.board.read()).await
    }
}

fn guard(published: &Published) -> diagnose::Guard {
    let settings: &Settings = &published.in_force;
    diagnose::Guard {
        state: published.state.to_string(),
        reasons: published.reasons.clone(),
        watched: published
            .watched
            .iter()
            .map(|row| (row.unit.clone(), row.processes))
            .collect(),
        routed_total: published.totals.routed,
        failed_total: published.totals.failed,
        exec_events: published.exec_events.clone(),
        dynamic_quota: settings.quota.dynamic,
        quota_min: settings.quota.min.into(),
        pressure_high: settings.quota.pressure_high,
        throttle_high: settings.quota.throttle_high,
        interval_sec: settings.history.interval.as_secs().max(1),
        workloads: published.workloads.values().map(workload).collect(),
        ..diagnose::Guard::default()
    }
}

fn workload(view: &WorkloadView) -> diagnose::Workload {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let age = now.saturating_sub(Duration::from_micros(view.row.since));
    diagnose::Workload {
        class: view.row.class.clone(),
        command: view.row.command.clone(),
        throttled_sec: Some(view.row.throttled)
            .filter(|usec| *usec != UNKNOWN)
            .map(|usec| usec as f64 / 1e6),
        age_sec: age.as_secs_f64(),
    }
}

fn machine(published: &Published) -> Machine {
    Machine {
        systemd: published.systemd.clone(),
        cpu_controller: published
            .capabilities
            .iter()
            .any(|name| name == guard_system::slices::CPU_CONTROLLER),
        workload: published
            .workloads
            .values()
            .next()
            .map(|view| view.row.control_group.clone()),
    }
}
