//! `profile`.

use guard_insight::profile::Profile;

use super::style::Style;
use super::table::{Align, Table};

/// What was found, in words and two tables.
pub fn text(profile: &Profile, style: &Style) -> String {
    let known = |value: Option<String>| value.unwrap_or_else(|| "unknown".to_owned());
    let percent = |part: f64| format!("{:.1} %", part * 100.0);
    let mut lines = vec![
        format!(
            "looked for {:.1} s at {} CPUs",
            profile.duration_sec, profile.cpus
        ),
        format!(
            "CPU pressure: some task waited {} of this time; avg10 is {}",
            known(profile.psi_some.map(percent)),
            known(profile.psi_some_avg10.map(percent))
        ),
        format!(
            "wakeup excess ms: {}",
            known(profile.wakeup_excess_ms.map(|excess| format!(
                "p50 {:.2}, p95 {:.2}, p99 {:.2}, max {:.2} ({} wakeups)",
                excess.p50, excess.p95, excess.p99, excess.max, excess.samples
            )))
        ),
        format!(
            "the guard's own run-queue delay: {}",
            known(profile.runqueue_delay_ms.map(|ms| format!("{ms:.2} ms")))
        ),
        String::new(),
    ];
    let mut cpu = Table::new(&[
        ("CPU %", Align::Right),
        ("CONTROL GROUP, ITS OWN", Align::Left),
    ]);
    for row in &profile.top_cpu {
        cpu.row(vec![format!("{:.1}", row.cpu_pct), row.cgroup.clone()]);
    }
    lines.extend(cpu.lines(style));
    lines.push(String::new());
    if profile.top_throttled.is_empty() {
        lines.push("no quota held anything up".to_owned());
    } else {
        let mut throttled = Table::new(&[
            ("THROTTLED MS", Align::Right),
            ("PERIODS", Align::Right),
            ("CPU %", Align::Right),
            ("CONTROL GROUP", Align::Left),
        ]);
        for row in &profile.top_throttled {
            throttled.row(vec![
                format!("{:.0}", row.throttled_ms),
                format!("{} of {}", row.throttled_periods, row.periods),
                format!("{:.1}", row.cpu_pct),
                row.cgroup.clone(),
            ]);
        }
        lines.extend(throttled.lines(style));
    }
    lines.push(String::new());
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use guard_insight::profile::{Excess, GroupCpu, GroupThrottled};

    use super::*;

    fn style() -> Style {
        Style {
            width: None,
            colour: false,
            now_usec: 0,
        }
    }

    #[test]
    fn what_is_not_known_is_unknown() {
        let shown = text(
            &Profile {
                duration_sec: 5.0,
                cpus: 2,
                ..Profile::default()
            },
            &style(),
        );
        assert_eq!(shown.matches("unknown").count(), 4, "{shown}");
        assert!(shown.contains("no quota held anything up"));
    }

    #[test]
    fn both_lists_are_shown() {
        let shown = text(
            &Profile {
                duration_sec: 5.01,
                cpus: 8,
                psi_some: Some(0.5),
                psi_some_avg10: Some(0.25),
                wakeup_excess_ms: Some(Excess {
                    samples: 200,
                    p50: 0.06,
                    p95: 0.1,
                    p99: 2.0,
                    max: 9.5,
                }),
                runqueue_delay_ms: Some(3.0),
                top_cpu: vec![GroupCpu {
                    cgroup: "/a.slice".into(),
                    cpu_pct: 199.9,
                }],
                top_throttled: vec![GroupThrottled {
                    cgroup: "/h.slice".into(),
                    cpu_pct: 400.0,
                    throttled_periods: 40,
                    periods: 50,
                    throttled_ms: 1234.5,
                }],
            },
            &style(),
        );
        for part in [
            "50.0 % of this time",
            "p99 2.00",
            "199.9  /a.slice",
            "40 of 50",
            "3.00 ms",
        ] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
    }
}
