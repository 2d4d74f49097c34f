//! The figures at the end. Pure.

use std::fmt::Write as _;

use crate::harness::stats::quantile;

/// A control group without the part that all have in common.
pub fn short(cgroup: &str) -> &str {
    cgroup
        .split_once("/user@1000.service/")
        .map_or(cgroup, |(_, rest)| rest)
}

/// The interactive program's latency in a stretch of time, in milliseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    what: &'static str,
    p50: f64,
    /// 95 of 100 pieces of work took at most so long.
    pub p95: f64,
    max: f64,
    count: usize,
}

impl Probe {
    /// The figures of some latencies; of none, infinitely bad ones.
    pub fn of(what: &'static str, latencies: &[f64]) -> Probe {
        let at = |q| quantile(latencies, q).unwrap_or(f64::INFINITY);
        Probe {
            what,
            p50: at(0.5),
            p95: at(0.95),
            max: at(1.0),
            count: latencies.len(),
        }
    }
}

/// The table of an interactive program's latencies.
pub fn probes(rows: &[Probe]) -> String {
    let mut text = String::from(
        "THE INTERACTIVE PROGRAM (time until 0.25 ms of work, due every 20 ms, is done)\n                                 p50         p95         max   pieces of work\n",
    );
    for row in rows {
        let _ = writeln!(
            text,
            "  {:<20}{:10.1} ms{:9.1} ms{:9.1} ms   {}",
            row.what, row.p50, row.p95, row.max, row.count
        );
    }
    text.push('\n');
    text
}

/// What heavy work used, and what it may use, in percent of one CPU.
#[derive(Clone, Debug, PartialEq)]
pub struct Heavy {
    /// `cpu.max` of the slice; `None` where the kernel enforces nothing.
    pub limit: Option<f64>,
    /// Used while everything was routed.
    pub share: f64,
    /// Used by the protected slice before, when everything was in it.
    pub protected_before: f64,
    /// CPUs of this guest.
    pub cpus: usize,
}

impl Heavy {
    /// Whether the kernel kept it within the limit, give or take what a period carries over.
    pub fn within_limit(&self) -> bool {
        self.limit.is_none_or(|limit| self.share <= limit * 1.05)
    }

    /// In words.
    pub fn text(&self) -> String {
        let mut text = String::from("CPU (percent of one CPU)\n");
        let _ = writeln!(
            text,
            "  protected-workload.slice used {:.0} % before the guard started, with all the work in it",
            self.protected_before
        );
        match self.limit {
            Some(limit) => {
                let _ = writeln!(
                    text,
                    "  heavy-workload.slice     used {:.0} % of the {limit:.0} % that cpu.max allows, on {} CPUs",
                    self.share, self.cpus
                );
            }
            None => {
                let _ = writeln!(
                    text,
                    "  heavy-workload.slice     used {:.0} %: no quota is enforced here, since this container has no cpu\n  controller; `cargo xtask demo --tier machine` shows it enforced",
                    self.share
                );
            }
        }
        text.push('\n');
        text
    }
}

/// What the demo promised to show.
#[derive(Clone, Debug, Default)]
pub struct Checklist(Vec<(&'static str, bool)>);

impl Checklist {
    /// Notes whether a step was seen.
    pub fn add(&mut self, step: &'static str, seen: bool) {
        self.0.push((step, seen));
    }

    /// Whether every step was.
    pub fn all_seen(&self) -> bool {
        self.0.iter().all(|(_, seen)| *seen)
    }

    /// A line for each step and one for all.
    pub fn text(&self) -> String {
        let mut text = String::from("STEPS\n");
        for (step, seen) in &self.0 {
            let _ = writeln!(
                text,
                "  {}  {step}",
                if *seen { "seen    " } else { "NOT SEEN" }
            );
        }
        let seen = self.0.iter().filter(|(_, seen)| *seen).count();
        let _ = writeln!(text, "{seen} of {} steps seen", self.0.len());
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_was_not_seen_shows_and_counts() {
        let mut steps = Checklist::default();
        steps.add("one", true);
        assert!(steps.all_seen());
        steps.add("two", false);
        assert!(!steps.all_seen());
        assert!(steps.text().contains("NOT SEEN  two"), "{}", steps.text());
        assert!(steps.text().ends_with("1 of 2 steps seen\n"));
    }

    #[test]
    fn no_figures_are_never_better_than_some() {
        let nothing = Probe::of("", &[]);
        let something = Probe::of("", &[500.0]);
        assert!(something.p95 < nothing.p95);
        assert!(nothing.p95 >= something.p95);
    }

    #[test]
    fn a_limit_that_is_not_enforced_is_not_claimed() {
        let heavy = Heavy {
            limit: None,
            share: 180.0,
            protected_before: 190.0,
            cpus: 2,
        };
        assert!(heavy.text().contains("no quota is enforced here"));
        let heavy = Heavy {
            limit: Some(400.0),
            ..heavy
        };
        assert!(heavy.within_limit() && heavy.text().contains("of the 400 %"));
        assert!(
            !Heavy {
                share: 430.0,
                ..heavy
            }
            .within_limit()
        );
    }

    #[test]
    fn the_common_part_of_a_path_is_left_out() {
        assert_eq!(
            short("/user.slice/user-1000.slice/user@1000.service/heavy.slice/x.scope"),
            "heavy.slice/x.scope"
        );
        assert_eq!(short("/system.slice/x"), "/system.slice/x");
    }
}
