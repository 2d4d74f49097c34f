//! `history`.

use guard_insight::snapshot::Snapshot;
use guard_insight::summary::{Measures, Spread, Summary};
use guard_insight::throttling::Cost;
use serde::Serialize;

use super::chart::spark;
use super::style::{Style, Tone, fit};
use super::table::{Align, Table};
use crate::insight::History;

/// Columns of a chart where the terminal does not say how many there are.
const WIDTH: usize = 72;
const DAY: u64 = 86_400;

/// As JSON; the help of `history` documents the keys.
pub fn json(history: &History) -> String {
    #[derive(Serialize)]
    struct View<'a> {
        now: u64,
        windows: &'a [Summary],
        snapshots: &'a [Snapshot],
    }
    super::to_json(&View {
        now: history.now,
        windows: &history.windows,
        snapshots: &history.snapshots,
    })
}

/// How a measure is shown.
struct Row {
    name: &'static str,
    /// To what the value is multiplied for showing.
    scale: f64,
    /// The top of its chart; none for its own greatest value.
    most: Option<f64>,
    spread: fn(&Measures) -> Option<Spread>,
    value: fn(&Snapshot) -> Option<f64>,
}

const ROWS: &[Row] = &[
    Row {
        name: "CPU pressure %",
        scale: 100.0,
        most: Some(100.0),
        spread: |measures| measures.cpu_psi_some_avg10,
        value: |snapshot| snapshot.cpu_psi_some_avg10,
    },
    Row {
        name: "heavy CPU %",
        scale: 1.0,
        most: None,
        spread: |measures| measures.heavy_cpu_pct,
        value: |snapshot| snapshot.heavy_cpu_pct,
    },
    Row {
        name: "heavy throttled %",
        scale: 100.0,
        most: Some(100.0),
        spread: |measures| measures.heavy_throttle_ratio,
        value: |snapshot| snapshot.heavy_throttle_ratio,
    },
    Row {
        name: "quota %",
        scale: 1.0,
        most: None,
        spread: |measures| measures.quota,
        value: |snapshot| snapshot.quota,
    },
    Row {
        name: "guarded CPU %",
        scale: 1.0,
        most: None,
        spread: |measures| measures.guarded_cpu_pct,
        value: |snapshot| snapshot.guarded_cpu_pct,
    },
    Row {
        name: "unmanaged CPU %",
        scale: 1.0,
        most: None,
        spread: |measures| measures.unmanaged_cpu_pct,
        value: |snapshot| snapshot.unmanaged_cpu_pct,
    },
    Row {
        name: "guard's own wait ms",
        scale: 1.0,
        most: None,
        spread: |measures| measures.router_runqueue_delay_ms,
        value: |snapshot| snapshot.router_runqueue_delay_ms,
    },
];

/// Numbers of each stretch, and a chart of the day for each measure.
pub fn text(history: &History, style: &Style) -> String {
    let mut lines = Vec::new();
    if history.windows.iter().all(|window| window.snapshots == 0) {
        lines.push("no snapshot in the last 24 hours; one is taken every few minutes".to_owned());
        lines.push(String::new());
        return lines.join("\n");
    }
    lines.extend(events(history).lines(style));
    lines.push(String::new());
    lines.extend(measures(history).lines(style));
    lines.push(String::new());
    lines.extend(charts(history, style));
    let top = history
        .windows
        .last()
        .map(|day| day.top_cpu.as_slice())
        .unwrap_or_default();
    if !top.is_empty() {
        lines.push(String::new());
        let mut table = Table::new(&[
            ("MOST CPU IN 24 H", Align::Right),
            ("CLASS", Align::Left),
            ("SEEN", Align::Right),
            ("COMMAND", Align::Left),
        ]);
        for row in top {
            table.row(vec![
                format!("{:.1} %", row.cpu_pct),
                row.class.clone(),
                row.snapshots.to_string(),
                row.command.clone(),
            ]);
        }
        lines.extend(table.lines(style));
    }
    let held_up = held_up(history);
    if !held_up.is_empty() {
        lines.push(String::new());
        let mut table = Table::new(&[
            ("HELD UP IN 24 H", Align::Right),
            ("CLASS", Align::Left),
            ("WORKLOADS", Align::Right),
            ("COMMAND", Align::Left),
        ]);
        for cost in held_up {
            table.row(vec![
                seconds(cost.throttled_sec),
                cost.class.clone(),
                cost.workloads.to_string(),
                cost.command.clone(),
            ]);
        }
        lines.extend(table.lines(style));
    }
    lines.push(String::new());
    lines.join("\n")
}

/// Whom budgets held up in the last stretch, and of whom that is not known.
pub fn held_up(history: &History) -> Vec<&Cost> {
    let day = history.windows.last().into_iter();
    day.flat_map(|day| &day.throttling)
        .filter(|cost| cost.throttled_sec.is_none_or(|sec| sec > 0.0))
        .collect()
}

/// Over all CPUs, where it is known.
pub fn seconds(sec: Option<f64>) -> String {
    sec.map_or("unknown".to_owned(), |sec| format!("{sec:.1} s"))
}

fn hours(window: &Summary) -> String {
    format!("{} h", window.window_sec / 3600)
}

fn events(history: &History) -> Table {
    let mut table = Table::new(&[
        ("LAST", Align::Right),
        ("SNAPSHOTS", Align::Right),
        ("ROUTES", Align::Right),
        ("RECOVERIES", Align::Right),
        ("QUOTA CHANGES", Align::Right),
        ("MOST AT ONCE", Align::Right),
        ("STARTS", Align::Right),
    ]);
    for window in &history.windows {
        table.row(vec![
            hours(window),
            window.snapshots.to_string(),
            window.route_events.to_string(),
            window.recovery_events.to_string(),
            window.quota_changes.to_string(),
            window.routed_max.to_string(),
            window.restarts.to_string(),
        ]);
    }
    table
}

fn measures(history: &History) -> Table {
    let mut table = Table::new(&[
        ("MEAN / MOST", Align::Left),
        ("1 H", Align::Right),
        ("6 H", Align::Right),
        ("24 H", Align::Right),
    ]);
    for row in ROWS {
        let cell = |window: Option<&Summary>| {
            let spread = window.and_then(|window| (row.spread)(&window.measures));
            spread.map_or("unknown".to_owned(), |spread| {
                format!(
                    "{:.1} / {:.1}",
                    spread.mean * row.scale,
                    spread.max * row.scale
                )
            })
        };
        table.row(vec![
            row.name.to_owned(),
            cell(history.windows.first()),
            cell(history.windows.get(1)),
            cell(history.windows.get(2)),
        ]);
    }
    table
}

fn charts(history: &History, style: &Style) -> Vec<String> {
    let label = ROWS.iter().map(|row| row.name.len()).max().unwrap_or(0);
    let width = style.width.map_or(WIDTH, |width| {
        width.saturating_sub(label + 12).clamp(8, 2 * WIDTH)
    });
    let head = format!(
        "{:label$}  {:<half$}{:>rest$}",
        "",
        "24 h ago",
        "now",
        half = width / 2,
        rest = width - width / 2
    );
    let mut lines = vec![style.paint(Tone::Dim, &fit(&head, style.width))];
    for row in ROWS {
        let points: Vec<(u64, f64)> = history
            .snapshots
            .iter()
            .filter_map(|snapshot| Some((snapshot.ts, (row.value)(snapshot)? * row.scale)))
            .collect();
        if points.is_empty() {
            continue;
        }
        let greatest = points.iter().map(|(_, value)| *value).fold(0.0, f64::max);
        let most = row.most.unwrap_or(greatest);
        let chart = spark(
            &points,
            history.now.saturating_sub(DAY),
            history.now,
            width,
            most,
        );
        lines.push(fit(
            &format!("{:label$}  {chart}  {most:.0}", row.name),
            style.width,
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use guard_insight::summary::summarize;
    use guard_insight::throttling::Throttled;

    use super::*;

    fn history() -> History {
        let now = 1_800_000_000;
        let snapshots: Vec<Snapshot> = (0..288)
            .filter_map(|n| {
                let ts = now - DAY + (n + 1) * 300;
                let busy = (100..140).contains(&n);
                Snapshot::from_json(&serde_json::json!({
                    "schema_version": 3, "ts": ts, "routed": u8::from(busy), "route_events": n / 50,
                    "recovery_events": n / 60, "quota_changes": 0, "quota": 400.0,
                    "cpu_psi_some_avg10": if busy { 0.6 } else { 0.01 }, "heavy_cpu_pct": if busy { 390.0 } else { 0.0 },
                    "heavy_throttle_ratio": null, "guarded_cpu_pct": 5.0, "unmanaged_cpu_pct": 40.0,
                    "top_cpu": [{"pid": 7, "command": "make\u{1b}[2J", "cpu_pct": 90.0, "class": "heavy", "cgroup": "/h"}],
                }))
            })
            .collect();
        let line = |command: &str, throttled_usec| Throttled {
            ts: now - 10_000,
            unit: command.into(),
            class: "heavy".into(),
            command: command.into(),
            since: now - 20_000,
            throttled_usec,
        };
        let throttled = [
            line("cc", Some(61_500_000)),
            line("quick", Some(0)),
            line("elsewhere", None),
        ];
        let windows = [3600, 21_600, 86_400]
            .map(|window| summarize(&snapshots, now, window).with_throttling(&throttled, now))
            .to_vec();
        History {
            now,
            windows,
            snapshots,
        }
    }

    fn style(width: Option<usize>) -> Style {
        Style {
            width,
            colour: false,
            now_usec: 0,
        }
    }

    #[test]
    fn a_day_is_shown_in_numbers_and_in_charts() {
        let shown = text(&history(), &style(None));
        for part in [
            "24 h        288",
            "CPU pressure %",
            "unknown",
            "24 h ago",
            "█",
            "make\u{fffd}[2J",
            "61.5 s  heavy          1  cc",
            "unknown  heavy          1  elsewhere",
        ] {
            assert!(shown.contains(part), "{part} is not in\n{shown}");
        }
        assert!(!shown.contains('\x1b') && !shown.contains("quick"));
        for width in [20, 40, 80, 200] {
            let shown = text(&history(), &style(Some(width)));
            assert!(
                shown.lines().all(|line| line.chars().count() <= width),
                "{shown}"
            );
        }
    }

    #[test]
    fn no_history_is_said() {
        let nothing = History {
            now: 1000,
            windows: vec![summarize(&[], 1000, 3600)],
            snapshots: Vec::new(),
        };
        assert!(text(&nothing, &style(None)).starts_with("no snapshot"));
        assert!(json(&nothing).contains("\"snapshots\": []"));
    }
}
