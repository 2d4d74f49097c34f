//! `status`.

use serde::Serialize;
use workload_guard_dbus::types::WorkloadRow;

use super::style::{Style, Tone, ago, fit, fit_end, short_cgroup};
use super::table::{Align, Table};
use crate::call::Status;

/// `status --json`; its help documents the keys.
#[derive(Serialize)]
struct View<'a> {
    version: &'a str,
    state: &'a str,
    state_reasons: &'a [String],
    capabilities: &'a [String],
    exec_events: &'a str,
    exec_events_lost: u64,
    classes: Vec<Class<'a>>,
    watched: Vec<Watched<'a>>,
    workloads: Vec<Workload<'a>>,
    totals: Totals,
}

#[derive(Serialize)]
struct Class<'a> {
    name: &'a str,
    slice: &'a str,
    quota: u32,
    weight: u32,
}

#[derive(Serialize)]
struct Watched<'a> {
    unit: &'a str,
    processes: u32,
}

#[derive(Serialize)]
struct Workload<'a> {
    path: &'a str,
    pid: u32,
    class: &'a str,
    reason: &'a str,
    cpu: f64,
    source: &'a str,
    control_group: &'a str,
    command: &'a str,
    since_usec: u64,
}

#[derive(Serialize)]
struct Totals {
    routed: u64,
    recovered: u64,
    failed: u64,
}

/// As JSON.
pub fn json(status: &Status) -> String {
    super::to_json(&View {
        version: &status.version,
        state: &status.state,
        state_reasons: &status.state_reasons,
        capabilities: &status.capabilities,
        exec_events: &status.exec_events,
        exec_events_lost: status.exec_events_lost,
        classes: status
            .classes
            .iter()
            .map(|row| Class {
                name: &row.name,
                slice: &row.slice,
                quota: row.quota,
                weight: row.weight,
            })
            .collect(),
        watched: status
            .watched
            .iter()
            .map(|row| Watched {
                unit: &row.unit,
                processes: row.processes,
            })
            .collect(),
        workloads: status
            .workloads
            .iter()
            .map(|row| Workload {
                path: row.path.as_str(),
                pid: row.pid,
                class: &row.class,
                reason: &row.reason,
                cpu: row.cpu,
                source: &row.source,
                control_group: &row.control_group,
                command: &row.command,
                since_usec: row.since,
            })
            .collect(),
        totals: Totals {
            routed: status.routed,
            recovered: status.recovered,
            failed: status.failed,
        },
    })
}

/// For a person.
pub fn text(status: &Status, style: &Style) -> String {
    let mut lines = Vec::new();
    let tone = if status.state == "normal" {
        Tone::Good
    } else {
        Tone::Warn
    };
    lines.push(format!(
        "workload-guard {}: {}",
        status.version,
        style.paint(tone, &status.state)
    ));
    // Whole, however narrow the terminal: a reason that is cut has lost its way out.
    lines.extend(
        status
            .state_reasons
            .iter()
            .map(|reason| format!("  - {}", fit(reason, None))),
    );
    lines.push(String::new());
    lines.extend(classes(status).lines(style));
    lines.push(String::new());
    lines.extend(watched(status).lines(style));
    lines.push(new_programs(status));
    if status.watched.iter().all(|row| row.processes == 0) {
        lines.extend(nothing_watched(status, style));
    }
    lines.push(String::new());
    if status.workloads.is_empty() {
        lines.push("no workloads".to_owned());
    } else {
        lines.extend(workloads(&status.workloads, style));
    }
    lines.push(String::new());
    lines.push(format!(
        "since the guard started: {} routed, {} recovered, {} failed",
        status.routed, status.recovered, status.failed
    ));
    lines.push(String::new());
    lines.join("\n")
}

fn classes(status: &Status) -> Table {
    let mut table = Table::new(&[
        ("CLASS", Align::Left),
        ("QUOTA", Align::Right),
        ("WEIGHT", Align::Right),
        ("WORKLOADS", Align::Right),
        ("SLICE", Align::Left),
    ]);
    for row in &status.classes {
        let count = status
            .workloads
            .iter()
            .filter(|workload| workload.class == row.name)
            .count();
        table.row(vec![
            row.name.clone(),
            if row.quota == 0 {
                "none".into()
            } else {
                format!("{}%", row.quota)
            },
            if row.weight == 0 {
                "none".into()
            } else {
                row.weight.to_string()
            },
            count.to_string(),
            row.slice.clone(),
        ]);
    }
    table
}

fn watched(status: &Status) -> Table {
    let mut table = Table::new(&[("WATCHED", Align::Left), ("PROCESSES", Align::Right)]);
    for row in &status.watched {
        table.row(vec![row.unit.clone(), row.processes.to_string()]);
    }
    table
}

/// By what new programs are seen, which decides how soon.
fn new_programs(status: &Status) -> String {
    match (status.exec_events.as_str(), status.exec_events_lost) {
        ("active", 0) => "new programs are seen by: exec events".to_owned(),
        ("active", lost) => format!(
            "new programs are seen by: exec events ({lost} were too many at once; looks at everything made good for them)"
        ),
        (why, _) => {
            let every = match status.interval.as_str() {
                "" => String::new(),
                seconds => format!(" every {seconds} s"),
            };
            format!(
                "new programs are seen by: samples{every} ({})",
                fit(why, None)
            )
        }
    }
}

/// An install that watches an empty slice does nothing, and the person would wonder why.
fn nothing_watched(status: &Status, style: &Style) -> Vec<String> {
    let units: Vec<&str> = status.watched.iter().map(|row| row.unit.as_str()).collect();
    let head = if units.is_empty() {
        "No unit is watched, so nothing can be routed. Two ways out:".to_owned()
    } else {
        format!(
            "Nothing runs in {}, so nothing can be routed. Two ways out:",
            units.join(", ")
        )
    };
    vec![
        style.paint(Tone::Warn, &head),
        "  workload-guard protect CMD      starts a command there; what it starts is watched".into(),
        "  parent_units = [\"app.slice\"]    below [watch] in ~/.config/linux-workload-guard/guard.toml watches all apps"
            .into(),
    ]
}

fn workloads(rows: &[WorkloadRow], style: &Style) -> Vec<String> {
    let wide = table(rows, style, true);
    if style
        .width
        .is_none_or(|width| wide.natural_width() <= width)
    {
        return wide.lines(style);
    }
    // Too narrow for the control groups: they get lines of their own below each workload.
    const LABEL: usize = "  from ".len();
    let mut lines = table(rows, style, false).lines(style).into_iter();
    let mut out: Vec<String> = lines.next().into_iter().collect();
    for (line, row) in lines.zip(rows) {
        out.push(line);
        for (label, cgroup) in [("from", &row.source), ("in", &row.control_group)] {
            let room = style.width.map(|width| width.saturating_sub(LABEL));
            let line = format!("  {label:<4} {}", fit_end(short_cgroup(cgroup), room));
            out.push(style.paint(Tone::Dim, &line));
        }
    }
    out
}

fn table(rows: &[WorkloadRow], style: &Style, with_cgroups: bool) -> Table {
    let mut columns = vec![
        ("PID", Align::Right),
        ("CPU", Align::Right),
        ("CLASS", Align::Left),
        ("REASON", Align::Left),
        ("SINCE", Align::Right),
    ];
    if with_cgroups {
        columns.extend([("SOURCE", Align::Left), ("CONTROL GROUP", Align::Left)]);
    }
    columns.push(("COMMAND", Align::Left));
    let mut table = Table::new(&columns);
    for row in rows {
        let mut cells = vec![
            row.pid.to_string(),
            format!("{:.1}%", row.cpu),
            row.class.clone(),
            row.reason.clone(),
            ago(row.since, style.now_usec),
        ];
        if with_cgroups {
            cells.extend(
                [&row.source, &row.control_group].map(|path| short_cgroup(path).to_owned()),
            );
        }
        cells.push(row.command.clone());
        table.row(cells);
    }
    table
}

#[cfg(test)]
mod tests;
