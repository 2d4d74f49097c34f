//! `stats`.

use serde::Serialize;
use workload_guard_dbus::types::StatisticsRow;

use super::style::Style;
use super::table::{Align, Table};
use crate::call::Stats;

/// What was learned, in JSON; the help of `stats` documents the keys.
#[derive(Serialize)]
struct View<'a> {
    enabled: bool,
    threshold: Option<f64>,
    min_samples: Option<u64>,
    watched: u64,
    commands: Vec<CommandView<'a>>,
}

#[derive(Serialize)]
struct CommandView<'a> {
    command: &'a str,
    samples: u64,
    mean: f64,
    deviation: f64,
    score: Option<f64>,
}

/// The score, which is negative on the bus while there is none.
fn score(row: &StatisticsRow) -> Option<f64> {
    Some(row.score).filter(|score| *score >= 0.0)
}

/// As JSON.
pub fn json(stats: &Stats) -> String {
    super::to_json(&View {
        enabled: stats.enabled,
        threshold: stats.threshold,
        min_samples: stats.min_samples,
        watched: stats.watched,
        commands: stats
            .commands
            .iter()
            .map(|row| CommandView {
                command: &row.command,
                samples: row.samples,
                mean: row.mean,
                deviation: row.deviation,
                score: score(row),
            })
            .collect(),
    })
}

/// As a table, below what it means.
pub fn text(stats: &Stats, style: &Style) -> String {
    let mut lines = vec![head(stats)];
    if !stats.commands.is_empty() {
        let mut table = Table::new(&[
            ("COMMAND", Align::Left),
            ("SAMPLES", Align::Right),
            ("MEAN %", Align::Right),
            ("SD %", Align::Right),
            ("LAST SCORE", Align::Right),
            ("ROUTED AT", Align::Right),
        ]);
        let threshold = || {
            stats
                .threshold
                .map_or("-".to_owned(), |score| format!("{score:.2}"))
        };
        for row in &stats.commands {
            table.row(vec![
                row.command.clone(),
                row.samples.to_string(),
                format!("{:.1}", row.mean),
                format!("{:.1}", row.deviation),
                score(row).map_or("-".to_owned(), |score| format!("{score:.2}")),
                threshold(),
            ]);
        }
        lines.extend(table.lines(style));
    }
    lines.push(String::new());
    lines.join("\n")
}

fn head(stats: &Stats) -> String {
    if !stats.enabled {
        return "adaptive routing is off; `enabled = true` in [adaptive] of guard.toml turns it on"
            .to_owned();
    }
    let enough = stats.min_samples.map_or(String::new(), |samples| {
        format!(" once it has {samples} samples")
    });
    format!(
        "adaptive routing is on: each sample scores all {} watched processes, each by its command{enough}",
        stats.watched
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats() -> Stats {
        let row = |command: &str, samples, mean, deviation, score| StatisticsRow {
            command: command.into(),
            samples,
            mean,
            deviation,
            score,
        };
        Stats {
            enabled: true,
            threshold: Some(0.75),
            min_samples: Some(8),
            watched: 40,
            commands: vec![
                row("git:gc", 1200, 4.25, 1.5, 0.925),
                row("make", 3, 0.0, 0.0, -1.0),
            ],
        }
    }

    #[test]
    fn a_command_that_is_not_known_well_enough_has_no_score() {
        let style = Style {
            width: None,
            colour: false,
            now_usec: 0,
        };
        assert_eq!(
            text(&stats(), &style),
            "adaptive routing is on: each sample scores all 40 watched processes, each by its command once it has 8 samples\n\
             COMMAND  SAMPLES  MEAN %  SD %  LAST SCORE  ROUTED AT\n\
             git:gc      1200     4.2   1.5        0.93       0.75\n\
             make           3     0.0   0.0           -       0.75\n"
        );
        let off = Stats {
            enabled: false,
            commands: Vec::new(),
            ..stats()
        };
        let shown = text(&off, &style);
        assert!(
            shown.contains("is off") && shown.lines().count() == 1,
            "{shown}"
        );
    }

    #[test]
    fn the_json_keys_are_those_of_the_help() {
        let value: serde_json::Value = serde_json::from_str(&json(&stats())).unwrap();
        assert_eq!(value["enabled"], true);
        assert_eq!(value["threshold"], 0.75);
        assert_eq!(
            value["commands"][1],
            serde_json::json!({"command": "make", "samples": 3, "mean": 0.0, "deviation": 0.0, "score": null})
        );
    }
}
