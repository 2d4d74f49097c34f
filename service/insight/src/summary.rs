//! What a stretch of the history adds up to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::snapshot::Snapshot;
use crate::throttling::{Cost, Throttled, costs};

/// A stretch of the history, up to now.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// How long it is, in seconds.
    pub window_sec: u64,
    /// Snapshots in it.
    pub snapshots: u64,
    /// The first one, in seconds since 1970.
    pub first: Option<u64>,
    /// The last one.
    pub last: Option<u64>,
    /// Times that the guard started, as its counters tell: at least so many.
    pub restarts: u64,
    /// Routes in it.
    pub route_events: u64,
    /// Recoveries.
    pub recovery_events: u64,
    /// Changes of the quota.
    pub quota_changes: u64,
    /// The most workloads that were routed at once.
    pub routed_max: u64,
    /// The quota at the last snapshot; none for no limit.
    pub quota: Option<f64>,
    /// The measures.
    pub measures: Measures,
    /// Who used most, by command and class.
    pub top_cpu: Vec<TopCommand>,
    /// Who was held up by a budget, likewise.
    pub throttling: Vec<Cost>,
}

impl Summary {
    /// With what budgets cost the workloads of the same stretch.
    pub fn with_throttling(mut self, lines: &[Throttled], now: u64) -> Summary {
        self.throttling = costs(lines, now, self.window_sec);
        self
    }
}

/// Each measure of the snapshots; none where no snapshot has it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Measures {
    /// The quota, in percent of one logical CPU.
    pub quota: Option<Spread>,
    /// CPU pressure, 0 to 1.
    pub cpu_psi_some_avg10: Option<Spread>,
    /// The guard's own wait for a CPU.
    pub router_runqueue_delay_ms: Option<Spread>,
    /// CPU of the heavy slice.
    pub heavy_cpu_pct: Option<Spread>,
    /// Part of its periods in which its quota held it up.
    pub heavy_throttle_ratio: Option<Spread>,
    /// CPU of all classes.
    pub guarded_cpu_pct: Option<Spread>,
    /// CPU of everything else.
    pub unmanaged_cpu_pct: Option<Spread>,
}

/// How a measure was spread.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Snapshots that have it.
    pub samples: u64,
    /// The least.
    pub min: f64,
    /// The mean.
    pub mean: f64,
    /// 95 of 100 are at or below it.
    pub p95: f64,
    /// The most.
    pub max: f64,
    /// The newest.
    pub last: f64,
}

/// A command among the greatest consumers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TopCommand {
    /// Its command line.
    pub command: String,
    /// Its class.
    pub class: String,
    /// The control group that it was in last.
    pub cgroup: String,
    /// Snapshots that name it.
    pub snapshots: u64,
    /// Its mean CPU over all snapshots of the stretch that name consumers.
    pub cpu_pct: f64,
}

/// Adds up the snapshots (in the file's order) of the `window_sec` seconds before `now`.
pub fn summarize(snapshots: &[Snapshot], now: u64, window_sec: u64) -> Summary {
    let begin = now.saturating_sub(window_sec);
    let placed = placed(snapshots, now);
    let within: Vec<&Snapshot> = placed
        .iter()
        .filter(|(ts, _)| *ts > begin)
        .map(|(_, snapshot)| *snapshot)
        .collect();
    let mut summary = Summary {
        window_sec,
        snapshots: within.len() as u64,
        first: placed
            .iter()
            .map(|(ts, _)| *ts)
            .filter(|ts| *ts > begin)
            .min(),
        last: placed
            .iter()
            .map(|(ts, _)| *ts)
            .filter(|ts| *ts > begin)
            .max(),
        routed_max: within
            .iter()
            .map(|snapshot| snapshot.routed)
            .max()
            .unwrap_or(0),
        quota: within.last().and_then(|snapshot| snapshot.quota),
        measures: measures(&within),
        top_cpu: top(&within),
        ..Summary::default()
    };
    let mut before: Option<&Snapshot> = None;
    for (ts, snapshot) in placed {
        if ts > begin {
            let (grown, restarted) = growth(before, snapshot);
            summary.restarts += u64::from(restarted);
            summary.route_events += grown[0];
            summary.recovery_events += grown[1];
            summary.quota_changes += grown[2];
        }
        before = Some(snapshot);
    }
    summary
}

/// Each snapshot with the time that it counts for. A time that has not come is a clock's that ran ahead: then
/// it is that of the line before, for lines are in the order in which things happened.
pub fn placed(snapshots: &[Snapshot], now: u64) -> Vec<(u64, &Snapshot)> {
    let mut before = None;
    let mut placed = Vec::with_capacity(snapshots.len());
    for snapshot in snapshots {
        let ts = if snapshot.ts <= now {
            snapshot.ts
        } else {
            before.unwrap_or(now)
        };
        before = Some(ts);
        placed.push((ts, snapshot));
    }
    placed
}

/// What the counters grew by, and whether the guard started in between: then any of them can have fallen,
/// and all count from nothing.
pub fn growth(before: Option<&Snapshot>, after: &Snapshot) -> ([u64; 3], bool) {
    let counters = |snapshot: &Snapshot| {
        [
            snapshot.route_events,
            snapshot.recovery_events,
            snapshot.quota_changes,
        ]
    };
    let after = counters(after);
    let Some(before) = before.map(counters) else {
        return (after, false);
    };
    if (0..3).any(|at| after[at] < before[at]) {
        return (after, true);
    }
    ([0, 1, 2].map(|at| after[at] - before[at]), false)
}

fn measures(within: &[&Snapshot]) -> Measures {
    let spread = |value: fn(&Snapshot) -> Option<f64>| {
        Spread::of(
            within
                .iter()
                .filter_map(|snapshot| value(snapshot))
                .collect(),
        )
    };
    Measures {
        quota: spread(|snapshot| snapshot.quota),
        cpu_psi_some_avg10: spread(|snapshot| snapshot.cpu_psi_some_avg10),
        router_runqueue_delay_ms: spread(|snapshot| snapshot.router_runqueue_delay_ms),
        heavy_cpu_pct: spread(|snapshot| snapshot.heavy_cpu_pct),
        heavy_throttle_ratio: spread(|snapshot| snapshot.heavy_throttle_ratio),
        guarded_cpu_pct: spread(|snapshot| snapshot.guarded_cpu_pct),
        unmanaged_cpu_pct: spread(|snapshot| snapshot.unmanaged_cpu_pct),
    }
}

impl Spread {
    /// Of values in the order in which they were measured; none of none.
    pub fn of(values: Vec<f64>) -> Option<Spread> {
        let last = *values.last()?;
        let mut sorted = values;
        sorted.sort_by(f64::total_cmp);
        let count = sorted.len();
        let rank = (count * 95).div_ceil(100).max(1);
        Some(Spread {
            samples: count as u64,
            min: sorted[0],
            mean: sorted.iter().sum::<f64>() / count as f64,
            p95: sorted[rank - 1],
            max: sorted[count - 1],
            last,
        })
    }
}

/// Commands in a summary.
const TOP_COMMANDS: usize = 10;

fn top(within: &[&Snapshot]) -> Vec<TopCommand> {
    let naming = within
        .iter()
        .filter(|snapshot| !snapshot.top_cpu.is_empty())
        .count();
    let mut found: BTreeMap<(&str, &str), TopCommand> = BTreeMap::new();
    for snapshot in within {
        let mut counted = std::collections::BTreeSet::new();
        for consumer in &snapshot.top_cpu {
            let key = (consumer.command.as_str(), consumer.class.as_str());
            let row = found.entry(key).or_insert_with(|| TopCommand {
                command: consumer.command.clone(),
                class: consumer.class.clone(),
                cgroup: String::new(),
                snapshots: 0,
                cpu_pct: 0.0,
            });
            row.snapshots += u64::from(counted.insert(key));
            row.cpu_pct += consumer.cpu_pct / naming as f64;
            row.cgroup.clone_from(&consumer.cgroup);
        }
    }
    let mut rows: Vec<TopCommand> = found.into_values().collect();
    rows.sort_by(|a, b| b.cpu_pct.total_cmp(&a.cpu_pct));
    rows.truncate(TOP_COMMANDS);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::History;
    use crate::snapshot::Consumer;
    use crate::snapshot::tests::at;

    fn counted(ts: u64, routes: u64, recoveries: u64) -> Snapshot {
        Snapshot {
            route_events: routes,
            recovery_events: recoveries,
            ..at(ts)
        }
    }

    #[test]
    fn lines_of_every_version_add_up() {
        let text = br#"
{"ts": 1000, "routed": 1, "route_events": 4, "recovery_events": 1, "quota_changes": 0, "quota": 400, "cpu_psi_some_avg10": 0.5, "scheduler_delay_ms": 900, "heavy_cpu_pct": 100, "heavy_throttle_ratio": 0.2, "guarded_cpu_pct": 120, "unmanaged_cpu_pct": 10}
{"schema_version": 2, "ts": 1300, "routed": 3, "route_events": 6, "recovery_events": 1, "quota_changes": 1, "quota": 350, "cpu_psi_some_avg10": null, "scheduler_delay_ms": 800, "heavy_cpu_pct": 300, "heavy_throttle_ratio": 0.4, "guarded_cpu_pct": 320, "unmanaged_cpu_pct": 30, "top_cpu": [{"pid": 5, "command": "make", "cpu_pct": 90.0, "class": "heavy", "cgroup": "/h"}]}
{"schema_version": 3, "ts": 1600, "routed": 2, "route_events": 7, "recovery_events": 3, "quota_changes": 1, "quota": null, "cpu_psi_some_avg10": 0.1, "router_runqueue_delay_ms": 12.0, "heavy_cpu_pct": 200, "heavy_throttle_ratio": 0.0, "guarded_cpu_pct": 220, "unmanaged_cpu_pct": 20, "top_cpu": [{"pid": 5, "command": "make", "cpu_pct": 70.0, "class": "heavy", "cgroup": "/h2"}, {"pid": 6, "command": "make", "cpu_pct": 10.0, "class": "heavy", "cgroup": "/h3"}]}
"#;
        let history = History::parse(text);
        let summary = summarize(&history.snapshots, 1700, 600);
        assert_eq!(
            (summary.snapshots, summary.first, summary.last),
            (2, Some(1300), Some(1600))
        );
        // From the snapshot before the window on: 4 to 7.
        assert_eq!(
            (
                summary.route_events,
                summary.recovery_events,
                summary.quota_changes
            ),
            (3, 2, 1)
        );
        assert_eq!(
            (summary.routed_max, summary.quota, summary.restarts),
            (3, None, 0)
        );
        let delay = summary.measures.router_runqueue_delay_ms.expect("one");
        assert_eq!((delay.samples, delay.max), (1, 12.0));
        let psi = summary.measures.cpu_psi_some_avg10.expect("one");
        assert_eq!((psi.samples, psi.mean), (1, 0.1));
        let heavy = summary.measures.heavy_cpu_pct.expect("two");
        assert_eq!(
            (heavy.min, heavy.mean, heavy.max, heavy.last),
            (200.0, 250.0, 300.0, 200.0)
        );
        assert_eq!(summary.top_cpu.len(), 1);
        assert_eq!(
            (summary.top_cpu[0].snapshots, summary.top_cpu[0].cpu_pct),
            (2, 85.0)
        );
        assert_eq!(summary.top_cpu[0].cgroup, "/h3");
        // The whole file: the first line's counters count since its guard's start.
        assert_eq!(summarize(&history.snapshots, 1700, 3600).route_events, 7);
    }

    #[test]
    fn counters_that_restart_do_not_go_negative() {
        let snapshots = [
            counted(300, 10, 8),
            counted(600, 12, 8),
            counted(900, 1, 0),
            counted(1200, 4, 2),
        ];
        let summary = summarize(&snapshots, 1200, 700);
        assert_eq!(summary.restarts, 1);
        assert_eq!(
            (summary.route_events, summary.recovery_events),
            (2 + 1 + 3, 2)
        );
        // A restart that one counter alone tells of makes all count from nothing.
        assert_eq!(
            growth(Some(&counted(0, 2, 8)), &counted(1, 5, 1)),
            ([5, 1, 0], true)
        );
    }

    #[test]
    fn a_clock_that_jumps_loses_no_event_and_invents_none() {
        let snapshots = [
            counted(10_000, 1, 0),
            counted(99_000_000, 3, 0),
            counted(10_600, 4, 0),
            counted(10_900, 6, 0),
        ];
        let summary = summarize(&snapshots, 11_000, 3600);
        assert_eq!((summary.snapshots, summary.route_events), (4, 6));
        assert_eq!((summary.first, summary.last), (Some(10_000), Some(10_900)));
        assert_eq!(summary.restarts, 0);
    }

    #[test]
    fn nothing_adds_up_to_nothing_known() {
        let summary = summarize(&[], 1000, 3600);
        assert_eq!(
            summary,
            Summary {
                window_sec: 3600,
                ..Summary::default()
            }
        );
        assert_eq!(Spread::of(vec![]), None);
    }

    #[test]
    fn the_95th_of_a_hundred_is_the_95th() {
        let spread = Spread::of((1..=100).rev().map(f64::from).collect()).expect("values");
        assert_eq!((spread.p95, spread.last, spread.mean), (95.0, 1.0, 50.5));
        assert_eq!(Spread::of(vec![3.0]).map(|one| one.p95), Some(3.0));
    }

    #[test]
    fn a_class_of_its_own_is_a_row_of_its_own() {
        let mut snapshot = at(10);
        for (pid, class) in [(1, "heavy"), (2, "unmanaged")] {
            snapshot.top_cpu.push(Consumer {
                pid,
                command: "cc".into(),
                cpu_pct: 10.0 * f64::from(pid),
                class: class.into(),
                cgroup: "/".into(),
            });
        }
        let summary = summarize(&[snapshot], 10, 10);
        let classes: Vec<&str> = summary
            .top_cpu
            .iter()
            .map(|row| row.class.as_str())
            .collect();
        assert_eq!(classes, ["unmanaged", "heavy"]);
    }
}
