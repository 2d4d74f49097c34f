//! `report --html`: one page, whole in itself: no script, no font, no picture from elsewhere.

mod svg;

use std::fmt::Write;

use guard_insight::snapshot::Snapshot;
use guard_insight::summary::{Summary, growth};

use super::history;
use super::style::fit;
use crate::insight::{Diagnosis, History};
use svg::{Plot, Series, Shape, figure};

const DAY: u64 = 86_400;
/// Bars of routes: half an hour each.
const BARS: u64 = 48;

const STYLE: &str = include_str!("report.css");

/// The page.
pub fn html(history: &History, diagnosis: &Diagnosis, version: &str) -> String {
    let span = (history.now.saturating_sub(DAY), history.now);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <link rel=\"icon\" href=\"data:,\">\
         <title>Workload Guard: the last 24 hours</title><style>{STYLE}</style></head><body>\n\
         <h1>Workload Guard: the last 24 hours</h1>\n<p class=\"dim\">{} UTC, version {}</p>\n",
        utc(history.now),
        escaped(version)
    );
    numbers(&mut page, history);
    findings(&mut page, diagnosis);
    for plot in plots(history, span) {
        page.push_str(&figure(&plot));
    }
    consumers(&mut page, history.windows.last());
    held_up(&mut page, history);
    page.push_str("</body></html>\n");
    page
}

fn plots(history: &History, span: (u64, u64)) -> Vec<Plot<'static>> {
    let snapshots = &history.snapshots;
    let of = |name, colour, value: fn(&Snapshot) -> Option<f64>| {
        let points = snapshots
            .iter()
            .map(|snapshot| (snapshot.ts, value(snapshot)));
        let mut points: Vec<_> = points.collect();
        // A clock that was set back.
        points.sort_by_key(|(ts, _)| *ts);
        Series {
            name,
            colour,
            points,
        }
    };
    let plot = |title, unit, shape, least_top, series| Plot {
        title,
        unit,
        span,
        shape,
        least_top,
        series,
    };
    vec![
        plot(
            "CPU by class",
            "percent of one CPU",
            Shape::Stack,
            100.0,
            vec![
                of("heavy", "heavy", |snapshot| snapshot.heavy_cpu_pct),
                of("other classes", "classes", |snapshot| {
                    Some(
                        (snapshot.guarded_cpu_pct? - snapshot.heavy_cpu_pct.unwrap_or(0.0))
                            .max(0.0),
                    )
                }),
                of("outside the classes", "outside", |snapshot| {
                    snapshot.unmanaged_cpu_pct
                }),
            ],
        ),
        plot(
            "CPU pressure",
            "percent of the time that some task waited (PSI some, avg10)",
            Shape::Lines,
            40.0,
            vec![of("pressure", "pressure", |snapshot| {
                Some(snapshot.cpu_psi_some_avg10? * 100.0)
            })],
        ),
        plot(
            "Throttling of heavy work",
            "percent of its periods in which the quota held it up",
            Shape::Lines,
            10.0,
            vec![of("throttled", "heavy", |snapshot| {
                Some(snapshot.heavy_throttle_ratio? * 100.0)
            })],
        ),
        plot(
            "Quota of heavy work",
            "percent of one CPU; none where there is no limit",
            Shape::Lines,
            100.0,
            vec![of("quota", "classes", |snapshot| snapshot.quota)],
        ),
        plot(
            "Routes and recoveries",
            "each half hour",
            Shape::Bars,
            4.0,
            routes(snapshots, span),
        ),
    ]
}

/// What was counted in each part of the day. What the first snapshot had counted happened before.
fn routes(snapshots: &[Snapshot], (begin, end): (u64, u64)) -> Vec<Series> {
    let part = (end - begin).div_ceil(BARS).max(1);
    let mut counts = vec![[0u64; 2]; BARS as usize];
    for pair in snapshots.windows(2) {
        let ([routes, recoveries, _], _) = growth(Some(&pair[0]), &pair[1]);
        if let Some(since) = pair[1].ts.checked_sub(begin) {
            let at = (since.saturating_sub(1) / part) as usize;
            if let Some(count) = counts.get_mut(at) {
                count[0] += routes;
                count[1] += recoveries;
            }
        }
    }
    let series = |name, colour, of: usize| Series {
        name,
        colour,
        points: counts
            .iter()
            .enumerate()
            .map(|(at, count)| (begin + (at as u64 + 1) * part, Some(count[of] as f64)))
            .collect(),
    };
    vec![
        series("routes", "heavy", 0),
        series("recoveries", "classes", 1),
    ]
}

fn numbers(page: &mut String, history: &History) {
    page.push_str(
        "<table><tr><th>last</th><th>snapshots</th><th>routes</th><th>recoveries</th>\
         <th>quota changes</th><th>most routed at once</th><th>mean pressure</th></tr>\n",
    );
    for window in &history.windows {
        let pressure = window
            .measures
            .cpu_psi_some_avg10
            .map_or("unknown".to_owned(), |spread| {
                format!("{:.1} %", spread.mean * 100.0)
            });
        let _ = writeln!(
            page,
            "<tr><td>{} h</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{pressure}</td></tr>",
            window.window_sec / 3600,
            window.snapshots,
            window.route_events,
            window.recovery_events,
            window.quota_changes,
            window.routed_max
        );
    }
    page.push_str("</table>\n");
}

fn findings(page: &mut String, diagnosis: &Diagnosis) {
    let _ = writeln!(
        page,
        "<h2>The last hour</h2>\n<p>CPU pressure: <b class=\"{0}\">{0}</b> ({1})</p>",
        escaped(&diagnosis.pressure),
        escaped(&diagnosis.pressure_text)
    );
    for finding in &diagnosis.findings {
        let _ = write!(
            page,
            "<section class=\"{}\"><b>{}</b><ul>",
            escaped(&finding.severity),
            escaped(&finding.title)
        );
        for line in &finding.evidence {
            let _ = write!(page, "<li>{}</li>", escaped(line));
        }
        let _ = writeln!(page, "</ul><p>{}</p></section>", escaped(&finding.next));
    }
    page.push_str("<h2>The last 24 hours</h2>\n");
}

fn consumers(page: &mut String, day: Option<&Summary>) {
    let Some(day) = day.filter(|day| !day.top_cpu.is_empty()) else {
        return;
    };
    page.push_str(
        "<h2>Most CPU</h2>\n<table><tr><th>CPU, mean</th><th>class</th><th>snapshots</th><th>command</th></tr>\n",
    );
    for row in &day.top_cpu {
        let _ = writeln!(
            page,
            "<tr><td>{:.1} %</td><td>{}</td><td>{}</td><td class=\"command\">{}</td></tr>",
            row.cpu_pct,
            escaped(&row.class),
            row.snapshots,
            escaped(&row.command)
        );
    }
    page.push_str("</table>\n");
}

fn held_up(page: &mut String, history: &History) {
    let costs = history::held_up(history);
    if costs.is_empty() {
        return;
    }
    page.push_str(
        "<h2>Held up by budgets</h2>\n<table><tr><th>time, over all CPUs</th><th>class</th><th>workloads</th>\
         <th>command</th></tr>\n",
    );
    for cost in costs {
        let _ = writeln!(
            page,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td class=\"command\">{}</td></tr>",
            history::seconds(cost.throttled_sec),
            escaped(&cost.class),
            cost.workloads,
            escaped(&cost.command)
        );
    }
    page.push_str("</table>\n");
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in fit(text, None).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// `2026-11-30 23:54` of seconds since 1970 (days to a date: Howard Hinnant, "chrono-Compatible Low-Level Date
/// Algorithms").
fn utc(seconds: u64) -> String {
    let (days, rest) = (seconds / DAY + 719_468, seconds % DAY);
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}",
        rest / 3600,
        rest % 3600 / 60
    )
}

#[cfg(test)]
mod tests {
    use guard_insight::summary::summarize;
    use workload_guard_dbus::history1::FindingRow;

    use super::*;

    fn history() -> History {
        let now = 1_796_083_200;
        let snapshots: Vec<Snapshot> = (0..288)
            .filter_map(|n: u64| {
                let busy = (100..140).contains(&n);
                Snapshot::from_json(&serde_json::json!({
                    "schema_version": 3, "ts": now - DAY + (n + 1) * 300, "routed": 0, "route_events": n / 40,
                    "recovery_events": n / 50, "quota_changes": 0, "quota": 400.0, "cpu_psi_some_avg10": 0.1,
                    "heavy_cpu_pct": if busy { 390.0 } else { 0.0 }, "guarded_cpu_pct": if busy { 395.0 } else { 5.0 },
                    "unmanaged_cpu_pct": 40.0, "top_cpu": [{"pid": 7, "command": "<script>alert('x')</script>",
                    "cpu_pct": 90.0, "class": "heavy", "cgroup": "/h"}],
                }))
            })
            .collect();
        let windows = [3600, 21_600, 86_400]
            .map(|window| summarize(&snapshots, now, window))
            .to_vec();
        History {
            now,
            windows,
            snapshots,
        }
    }

    fn diagnosis() -> Diagnosis {
        Diagnosis {
            pressure: "normal".into(),
            pressure_text: "12 readings".into(),
            attribution: Vec::new(),
            findings: vec![FindingRow {
                id: "x".into(),
                severity: "note".into(),
                title: "a & b".into(),
                evidence: vec!["<b>\"".into()],
                next: "n".into(),
            }],
        }
    }

    #[test]
    fn the_page_is_whole_in_itself_and_no_command_can_write_into_it() {
        let page = html(&history(), &diagnosis(), "0.1.0");
        for outside in ["<script", "http:", "https:", "src=", "@import", "url("] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert!(page.contains("&lt;script&gt;alert(&#39;x&#39;)") && page.contains("a &amp; b"));
        assert_eq!(page.matches("<figure>").count(), 5);
        // Throttling was measured in no snapshot.
        assert_eq!(page.matches("<svg").count(), 4);
        for tag in ["figure", "svg", "table", "section", "ul", "p", "b"] {
            let opened = page.matches(&format!("<{tag}>")).count()
                + page.matches(&format!("<{tag} ")).count();
            assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
        }
    }

    #[test]
    fn routes_are_counted_in_the_half_hour_that_they_came_in() {
        let history = history();
        let series = routes(&history.snapshots, (history.now - DAY, history.now));
        let sum: f64 = series[0]
            .points
            .iter()
            .filter_map(|(_, value)| *value)
            .sum();
        assert_eq!((series[0].points.len(), sum), (48, 7.0));
    }

    #[test]
    fn a_date_is_that_of_the_calendar() {
        assert_eq!(utc(0), "1970-01-01 00:00");
        assert_eq!(utc(951_825_540), "2000-02-29 11:59");
        assert_eq!(utc(1_796_083_199), "2026-11-30 23:59");
    }
}
