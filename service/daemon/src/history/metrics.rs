//! What a monitoring system reads. CPU is in seconds and in whole CPUs here, as such systems expect it.

use std::collections::BTreeMap;

use guard_insight::openmetrics::{Exposition, Histogram, Kind, Labels};
use workload_guard_dbus::types::{Reason, State};

use super::look::Measures;
use crate::published::Published;

/// Upper bounds of how long a move took, in seconds.
const MOVE_BOUNDS: &[f64] = &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];

/// Counters since the daemon started, in more detail than [`crate::published::Totals`].
#[derive(Clone, Debug)]
pub struct Tally {
    /// Routes by reason.
    pub routes: BTreeMap<String, u64>,
    /// Recoveries by reason.
    pub recoveries: BTreeMap<String, u64>,
    /// How long moves into a class took.
    pub moves: Histogram,
}

impl Default for Tally {
    fn default() -> Tally {
        // From nothing on: who computes a rate needs the first value as well.
        let zero = |reason: &str| (reason.to_owned(), 0);
        Tally {
            routes: Reason::ALL
                .iter()
                .map(|reason| zero(reason.as_str()))
                .collect(),
            recoveries: ["calm", "released"].into_iter().map(zero).collect(),
            moves: Histogram::new(MOVE_BOUNDS),
        }
    }
}

/// The text.
pub fn text(published: &Published, measures: &Measures) -> String {
    let mut text = Exposition::default();
    guard(&mut text, published);
    moves(&mut text, published);
    budgets(&mut text, published, measures);
    own(&mut text, measures);
    text.finish()
}

fn guard(text: &mut Exposition, published: &Published) {
    let version = [("version", env!("CARGO_PKG_VERSION"))];
    text.family(
        "workload_guard_build_info",
        Kind::Gauge,
        "",
        "The guard's version.",
        &[(&version, 1.0)],
    );
    let states: Vec<[(&str, &str); 1]> = State::ALL
        .iter()
        .map(|state| [("state", state.as_str())])
        .collect();
    let rows: Vec<(Labels<'_>, f64)> = State::ALL
        .iter()
        .zip(&states)
        .map(|(state, labels)| (&labels[..], f64::from(u8::from(*state == published.state))))
        .collect();
    text.family(
        "workload_guard_state",
        Kind::Gauge,
        "",
        "1 for the state that the guard is in.",
        &rows,
    );
    let mut workloads: BTreeMap<[(&str, &str); 2], f64> = BTreeMap::new();
    for view in published.workloads.values() {
        *workloads
            .entry([("class", &view.row.class), ("reason", &view.row.reason)])
            .or_default() += 1.0;
    }
    let rows: Vec<(Labels<'_>, f64)> = workloads
        .iter()
        .map(|(labels, count)| (&labels[..], *count))
        .collect();
    text.family(
        "workload_guard_workloads",
        Kind::Gauge,
        "",
        "Workloads now.",
        &rows,
    );
    let watched: Vec<[(&str, &str); 1]> = published
        .watched
        .iter()
        .map(|row| [("unit", row.unit.as_str())])
        .collect();
    let rows: Vec<(Labels<'_>, f64)> = published
        .watched
        .iter()
        .zip(&watched)
        .map(|(row, labels)| (&labels[..], f64::from(row.processes)))
        .collect();
    text.family(
        "workload_guard_watched_processes",
        Kind::Gauge,
        "",
        "Processes in a watched unit.",
        &rows,
    );
}

fn moves(text: &mut Exposition, published: &Published) {
    let tally = &published.tally;
    let mut counter = |name, help, counts: &BTreeMap<String, u64>| {
        let labels: Vec<[(&str, &str); 1]> = counts
            .keys()
            .map(|reason| [("reason", reason.as_str())])
            .collect();
        let rows: Vec<(Labels<'_>, f64)> = counts
            .values()
            .zip(&labels)
            .map(|(count, labels)| (&labels[..], *count as f64))
            .collect();
        text.family(name, Kind::Counter, "", help, &rows);
    };
    counter(
        "workload_guard_routes",
        "Trees moved into a class since the guard started.",
        &tally.routes,
    );
    counter(
        "workload_guard_recoveries",
        "Trees brought back since the guard started.",
        &tally.recoveries,
    );
    let failed = [(&[][..], published.totals.failed as f64)];
    text.family(
        "workload_guard_failed_moves",
        Kind::Counter,
        "",
        "Moves that did not happen since the guard started.",
        &failed,
    );
    text.histogram(
        "workload_guard_move_seconds",
        "seconds",
        "How long a move took.",
        &tally.moves,
    );
}

fn budgets(text: &mut Exposition, published: &Published, measures: &Measures) {
    let quotas: Vec<(&str, f64)> = published
        .classes
        .iter()
        .filter(|class| class.quota > 0)
        .map(|class| (class.name.as_str(), f64::from(class.quota) / 100.0))
        .collect();
    by_class(
        text,
        "workload_guard_class_quota_cpus",
        Kind::Gauge,
        "cpus",
        "CPUs that a class may use together.",
        &quotas,
    );
    let of = |value: fn(&super::look::ClassCpu) -> Option<f64>| -> Vec<(&str, f64)> {
        let rows = measures.classes.iter();
        rows.filter_map(|row| Some((row.class.as_str(), value(row)?)))
            .collect()
    };
    for (name, unit, help, rows) in [
        (
            "workload_guard_class_cpu_seconds",
            "seconds",
            "CPU time of a class's slice since it was made.",
            of(|row| row.usage_sec),
        ),
        (
            "workload_guard_class_throttled_seconds",
            "seconds",
            "Time that the class's quota held its slice up.",
            of(|row| row.throttled_sec),
        ),
        (
            "workload_guard_class_periods",
            "",
            "Periods in which the slice had work.",
            of(|row| row.periods),
        ),
        (
            "workload_guard_class_throttled_periods",
            "",
            "Those of them in which its quota held it up.",
            of(|row| row.throttled_periods),
        ),
    ] {
        by_class(text, name, Kind::Counter, unit, help, &rows);
    }
    if let Some(psi) = measures.psi {
        let rows = [(&[][..], psi)];
        text.family(
            "workload_guard_cpu_pressure_ratio",
            Kind::Gauge,
            "ratio",
            "CPU pressure of the machine (some avg10).",
            &rows,
        );
    }
}

fn by_class(
    text: &mut Exposition,
    name: &str,
    kind: Kind,
    unit: &str,
    help: &str,
    rows: &[(&str, f64)],
) {
    let labels: Vec<[(&str, &str); 1]> =
        rows.iter().map(|(class, _)| [("class", *class)]).collect();
    let rows: Vec<(Labels<'_>, f64)> = rows
        .iter()
        .zip(&labels)
        .map(|((_, value), labels)| (&labels[..], *value))
        .collect();
    text.family(name, kind, unit, help, &rows);
}

fn own(text: &mut Exposition, measures: &Measures) {
    if let Some(seconds) = measures.cpu_sec {
        let rows = [(&[][..], seconds)];
        text.family(
            "workload_guard_process_cpu_seconds",
            Kind::Counter,
            "seconds",
            "CPU time of the guard itself.",
            &rows,
        );
    }
    if let Some(bytes) = measures.resident {
        let rows = [(&[][..], bytes as f64)];
        text.family(
            "workload_guard_process_resident_memory_bytes",
            Kind::Gauge,
            "bytes",
            "Memory of the guard itself.",
            &rows,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::look::ClassCpu;

    #[test]
    fn each_family_is_there_and_what_is_unknown_is_not() {
        let mut published = Published::default();
        let tally = std::sync::Arc::make_mut(&mut published.tally);
        tally.routes.insert("known-heavy".into(), 3);
        tally.moves.observe(0.02);
        let measures = Measures {
            classes: vec![ClassCpu {
                class: "heavy".into(),
                usage_sec: Some(2.5),
                ..ClassCpu::default()
            }],
            cpu_sec: Some(0.5),
            ..Measures::default()
        };
        let text = text(&published, &measures);
        for line in [
            "workload_guard_state{state=\"normal\"} 1.0",
            "workload_guard_state{state=\"paused\"} 0.0",
            "workload_guard_routes_total{reason=\"known-heavy\"} 3.0",
            "workload_guard_routes_total{reason=\"adaptive\"} 0.0",
            "workload_guard_recoveries_total{reason=\"calm\"} 0.0",
            "workload_guard_failed_moves_total 0.0",
            "workload_guard_move_seconds_bucket{le=\"0.025\"} 1.0",
            "workload_guard_class_cpu_seconds_total{class=\"heavy\"} 2.5",
            "workload_guard_process_cpu_seconds_total 0.5",
        ] {
            assert!(
                text.lines().any(|found| found == line),
                "{line} is not in\n{text}"
            );
        }
        for unknown in ["pressure", "throttled_seconds", "resident"] {
            assert!(!text.contains(unknown), "{text}");
        }
        assert!(text.ends_with("# EOF\n"));
    }
}
