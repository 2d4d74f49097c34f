//! A guard that remembers a day: a build in the middle of it, and an hour in which it did not run.

use guard_insight::diagnose::{Environment, Guard, Situation, diagnose};
use guard_insight::snapshot::{Consumer, Snapshot};
use guard_insight::summary::summarize;
use guard_insight::throttling::Throttled;
use workload_guard_dbus::dict::{self, Dict};
use workload_guard_dbus::history1::{FindingRow, ShareRow};
use workload_guard_dbus::{GuardError, History1Backend};

pub struct FakeHistory {
    now: u64,
    snapshots: Vec<Snapshot>,
}

impl FakeHistory {
    /// Up to now.
    pub fn new() -> FakeHistory {
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap()
            .as_secs();
        let snapshots = (0..288u64)
            .filter(|n| !(200..212).contains(n))
            .map(|n| snapshot(n, now - 86_400 + (n + 1) * 300 - 5))
            .collect();
        FakeHistory { now, snapshots }
    }
}

fn snapshot(n: u64, ts: u64) -> Snapshot {
    let busy = (100..140).contains(&n) || n > 280;
    let wave = (n * 37 % 17) as f64;
    let heavy = if busy { 330.0 + wave * 4.0 } else { 0.0 };
    let psi = if busy {
        0.35 + wave / 60.0
    } else {
        wave / 400.0
    };
    Snapshot {
        schema_version: 3,
        ts,
        routed: u64::from(busy) * 2,
        route_events: n / 12,
        recovery_events: n / 14,
        quota_changes: n / 90,
        quota: Some(if (110..150).contains(&n) {
            250.0
        } else {
            400.0
        }),
        cpu_psi_some_avg10: Some(psi),
        router_runqueue_delay_ms: Some(wave),
        heavy_cpu_pct: Some(heavy),
        heavy_throttle_ratio: Some(if busy { 0.4 } else { 0.0 }),
        guarded_cpu_pct: Some(heavy + 12.0 + wave),
        unmanaged_cpu_pct: Some(60.0 + wave * 5.0),
        top_cpu: vec![
            Consumer {
                pid: 4242,
                command: "cargo build --release <&>".into(),
                cpu_pct: heavy / 4.0,
                class: "heavy".into(),
                cgroup: "/user.slice/heavy.slice/heavy-workload.slice/a.scope".into(),
            },
            Consumer {
                pid: 900,
                command: "dockerd".into(),
                cpu_pct: 45.0,
                class: "unmanaged".into(),
                cgroup: "/system.slice/docker.service".into(),
            },
        ],
    }
}

impl History1Backend for FakeHistory {
    async fn summary(&self, window: u32) -> Result<Dict, GuardError> {
        let summary = summarize(&self.snapshots, self.now, window.into());
        let throttled = Throttled {
            ts: self.now - 60,
            unit: "lwg-heavy-routed-4242-1.scope".into(),
            class: "heavy".into(),
            command: "cargo build --release <&>".into(),
            since: self.now - 600,
            throttled_usec: Some(83_300_000),
        };
        Ok(dict::of(&summary.with_throttling(&[throttled], self.now)))
    }

    async fn snapshots(&self, since: u64, max: u32) -> Result<Vec<Dict>, GuardError> {
        let found = self
            .snapshots
            .iter()
            .filter(|snapshot| snapshot.ts >= since);
        Ok(found.take(max as usize).map(dict::of).collect())
    }

    async fn diagnose(
        &self,
    ) -> Result<(String, String, Vec<ShareRow>, Vec<FindingRow>), GuardError> {
        let found = diagnose(&Situation {
            now: self.now,
            history: self.snapshots.clone(),
            environment: Environment::default(),
            guard: Guard::default(),
        });
        let findings = found.findings.into_iter().map(|finding| FindingRow {
            id: finding.id.into(),
            severity: finding.severity.as_str().into(),
            title: finding.title,
            evidence: finding.evidence,
            next: finding.next,
        });
        Ok((
            found.pressure.level.as_str().into(),
            found.pressure.words,
            vec![],
            findings.collect(),
        ))
    }

    async fn metrics(&self) -> Result<String, GuardError> {
        Ok("# EOF\n".into())
    }
}
