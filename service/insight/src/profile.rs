//! What a look of some seconds found: who used CPU, who was held up, and how late a timer was.

use serde::{Deserialize, Serialize};

/// Control groups in each list.
pub const TOP: usize = 10;

/// The result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Profile {
    /// How long it took, in seconds.
    pub duration_sec: f64,
    /// How many CPUs there are.
    pub cpus: u64,
    /// CPU pressure at the end (`some avg10`), 0 to 1.
    pub psi_some_avg10: Option<f64>,
    /// Part of the time in which some task waited for a CPU.
    pub psi_some: Option<f64>,
    /// How much later than asked for a thread of the guard woke up.
    pub wakeup_excess_ms: Option<Excess>,
    /// How long that thread waited on a run queue.
    pub runqueue_delay_ms: Option<f64>,
    /// By what they used themselves, without the groups below.
    pub top_cpu: Vec<GroupCpu>,
    /// Those with a quota that held them up, by how long.
    pub top_throttled: Vec<GroupThrottled>,
}

/// How late wakeups were, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Excess {
    /// Wakeups.
    pub samples: u64,
    /// Half of them were at most so late,
    pub p50: f64,
    /// 95 of 100,
    pub p95: f64,
    /// 99 of 100,
    pub p99: f64,
    /// and all.
    pub max: f64,
}

/// A control group and its CPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupCpu {
    /// From the mount.
    pub cgroup: String,
    /// In percent of one logical CPU.
    pub cpu_pct: f64,
}

/// A control group whose quota held it up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupThrottled {
    /// From the mount.
    pub cgroup: String,
    /// In percent of one logical CPU, with the groups below.
    pub cpu_pct: f64,
    /// Periods in which it was held up,
    pub throttled_periods: u64,
    /// of so many,
    pub periods: u64,
    /// for so long in all, over all CPUs.
    pub throttled_ms: f64,
}

/// The counters of a control group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// CPU time, with the groups below, in microseconds.
    pub usage_usec: u64,
    /// The same of the groups directly below.
    pub below_usec: u64,
    /// Periods with a quota.
    pub periods: u64,
    /// Those in which it held the group up.
    pub throttled: u64,
    /// For how long, in microseconds.
    pub throttled_usec: u64,
}

impl Excess {
    /// Of how late each wakeup was; none of none.
    pub fn of(mut late_ms: Vec<f64>) -> Option<Excess> {
        late_ms.sort_by(f64::total_cmp);
        let count = late_ms.len();
        let max = *late_ms.last()?;
        let rank = |percent: usize| late_ms[(count * percent).div_ceil(100).max(1) - 1];
        Some(Excess {
            samples: count as u64,
            p50: rank(50),
            p95: rank(95),
            p99: rank(99),
            max,
        })
    }
}

/// The lists, from each group's counters before and after. A group that is new counts from nothing.
pub fn top(
    groups: impl IntoIterator<Item = (String, Counters, Counters)>,
    seconds: f64,
) -> (Vec<GroupCpu>, Vec<GroupThrottled>) {
    let (mut cpu, mut throttled) = (Vec::new(), Vec::new());
    let percent = |usec: u64| usec as f64 / (seconds.max(1e-6) * 10_000.0);
    for (cgroup, before, after) in groups {
        let grown = |of: fn(&Counters) -> u64| of(&after).saturating_sub(of(&before));
        let usage = grown(|counters| counters.usage_usec);
        // The two are not read at one moment, and what ends takes its group along but leaves its time above.
        let own = usage.saturating_sub(grown(|counters| counters.below_usec));
        if own > 0 {
            cpu.push(GroupCpu {
                cgroup: cgroup.clone(),
                cpu_pct: percent(own),
            });
        }
        let held_up = grown(|counters| counters.throttled);
        if held_up > 0 {
            throttled.push(GroupThrottled {
                cgroup,
                cpu_pct: percent(usage),
                throttled_periods: held_up,
                periods: grown(|counters| counters.periods),
                throttled_ms: grown(|counters| counters.throttled_usec) as f64 / 1000.0,
            });
        }
    }
    cpu.sort_by(|a, b| b.cpu_pct.total_cmp(&a.cpu_pct));
    cpu.truncate(TOP);
    throttled.sort_by(|a, b| b.throttled_ms.total_cmp(&a.throttled_ms));
    throttled.truncate(TOP);
    (cpu, throttled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let excess = Excess::of((1..=200).rev().map(f64::from).collect()).expect("some");
        assert_eq!(
            (excess.p50, excess.p95, excess.p99, excess.max),
            (100.0, 190.0, 198.0, 200.0)
        );
        assert_eq!(
            Excess::of(vec![0.5]).map(|one| (one.samples, one.p99)),
            Some((1, 0.5))
        );
        assert_eq!(Excess::of(Vec::new()), None);
    }

    #[test]
    fn a_group_counts_for_what_is_its_own() {
        let at = |usage_usec, below_usec| Counters {
            usage_usec,
            below_usec,
            ..Counters::default()
        };
        let held = Counters {
            usage_usec: 9_000_000,
            periods: 50,
            throttled: 20,
            throttled_usec: 1_500_000,
            ..at(0, 8_000_000)
        };
        let (cpu, throttled) = top(
            [
                (
                    "/a".to_owned(),
                    at(1_000_000, 1_000_000),
                    at(9_000_000, 9_000_000),
                ),
                ("/a/b".to_owned(), at(0, 0), held),
                ("/a/b/c".to_owned(), at(0, 0), at(8_000_000, 0)),
                ("/idle".to_owned(), at(5, 0), at(5, 0)),
                ("/anew".to_owned(), at(500, 0), at(100, 0)),
            ],
            10.0,
        );
        let rows: Vec<(&str, f64)> = cpu
            .iter()
            .map(|row| (row.cgroup.as_str(), row.cpu_pct))
            .collect();
        assert_eq!(rows, [("/a/b/c", 80.0), ("/a/b", 10.0)]);
        assert_eq!(throttled.len(), 1);
        assert_eq!(
            (throttled[0].throttled_periods, throttled[0].throttled_ms),
            (20, 1500.0)
        );
        assert_eq!(throttled[0].cpu_pct, 90.0);
    }
}
