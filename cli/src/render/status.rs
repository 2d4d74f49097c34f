//! `status`.

use serde::Serialize;
use workload_guard_dbus::types::{ClassRow, UNKNOWN, WorkloadRow};

use super::holds;
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
    holds: Vec<holds::View<'a>>,
    workloads: Vec<Workload<'a>>,
    totals: Totals,
}

#[derive(Serialize)]
struct Class<'a> {
    name: &'a str,
    slice: &'a str,
    quota: u32,
    weight: u32,
    memory_high: u64,
    io_weight: u32,
    tasks_max: u64,
    from_settings: &'a [String],
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
    throttled_usec: Option<u64>,
}

#[derive(Serialize)]
struct Totals {
    routed: u64,
    recovered: u64,
    failed: u64,
}

/// As JSON.
pub fn json(status: &Status) -> String {
    super::to_json(&view(status))
}

/// The same as a value in another one.
pub fn value(status: &Status) -> serde_json::Value {
    serde_json::to_value(view(status)).expect("plain data can be written as JSON")
}

fn view(status: &Status) -> View<'_> {
    View {
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
                memory_high: row.memory_high,
                io_weight: row.io_weight,
                tasks_max: row.tasks_max,
                from_settings: &row.from_settings,
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
        holds: holds::views(&status.holds),
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
                throttled_usec: throttled(row),
            })
            .collect(),
        totals: Totals {
            routed: status.routed,
            recovered: status.recovered,
            failed: status.failed,
        },
    }
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
    if !status.holds.is_empty() {
        lines.extend(holds::lines(&status.holds, style));
        lines.push(String::new());
    }
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

/// A column that is there when a class has something in it.
type Extra = (&'static str, fn(&ClassRow) -> Option<String>);

const EXTRAS: &[Extra] = &[
    ("MEMORY", |row| some(row.memory_high).map(size)),
    ("IO WEIGHT", |row| {
        some(row.io_weight.into()).map(|weight| weight.to_string())
    }),
    ("TASKS", |row| {
        some(row.tasks_max).map(|tasks| tasks.to_string())
    }),
    ("SET BY", |row| {
        (!row.from_settings.is_empty())
            .then(|| format!("settings ({})", row.from_settings.join(", ")))
    }),
];

fn classes(status: &Status) -> Table {
    let extras: Vec<&Extra> = EXTRAS
        .iter()
        .filter(|(_, cell)| status.classes.iter().any(|row| cell(row).is_some()))
        .collect();
    let mut columns = vec![
        ("CLASS", Align::Left),
        ("QUOTA", Align::Right),
        ("WEIGHT", Align::Right),
        ("WORKLOADS", Align::Right),
        ("SLICE", Align::Left),
    ];
    columns.extend(extras.iter().map(|(name, _)| (*name, Align::Left)));
    let mut table = Table::new(&columns);
    for row in &status.classes {
        let count = status
            .workloads
            .iter()
            .filter(|workload| workload.class == row.name)
            .count();
        let mut cells = vec![
            row.name.clone(),
            some(row.quota.into()).map_or("none".into(), |quota| format!("{quota}%")),
            some(row.weight.into()).map_or("none".into(), |weight| weight.to_string()),
            count.to_string(),
            row.slice.clone(),
        ];
        cells.extend(extras.iter().map(|(name, cell)| {
            let empty = if *name == "SET BY" {
                "unit file"
            } else {
                "none"
            };
            cell(row).unwrap_or_else(|| empty.into())
        }));
        table.row(cells);
    }
    table
}

/// 0 is how the guard spells none.
fn some(number: u64) -> Option<u64> {
    (number != 0).then_some(number)
}

/// Bytes as systemd writes them, with one digit after the point.
fn size(bytes: u64) -> String {
    let unit = [(40, "T"), (30, "G"), (20, "M"), (10, "K")]
        .into_iter()
        .find(|(shift, _)| bytes >> shift > 0);
    match unit {
        Some((shift, suffix)) => format!("{:.1}{suffix}", bytes as f64 / (1u64 << shift) as f64),
        None => bytes.to_string(),
    }
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
        "  workload-guard watch app.slice  watches all apps of the desktop; builds in any terminal are routed".into(),
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

/// For how many microseconds its budget held it up, where the kernel tells.
fn throttled(row: &WorkloadRow) -> Option<u64> {
    Some(row.throttled).filter(|usec| *usec != UNKNOWN)
}

fn table(rows: &[WorkloadRow], style: &Style, with_cgroups: bool) -> Table {
    let mut columns = vec![
        ("PID", Align::Right),
        ("CPU", Align::Right),
        ("CLASS", Align::Left),
        ("REASON", Align::Left),
        ("SINCE", Align::Right),
    ];
    // Shown when a budget held anything up: the usual case is that none did.
    let with_throttled = rows
        .iter()
        .any(|row| throttled(row).is_some_and(|usec| usec > 0));
    if with_throttled {
        columns.push(("THROTTLED", Align::Right));
    }
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
        if with_throttled {
            cells.push(throttled(row).map_or("unknown".to_owned(), |usec| {
                format!("{:.1} s", usec as f64 / 1e6)
            }));
        }
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
pub(super) mod tests;
