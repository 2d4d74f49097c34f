//! `watch`.

use serde::Serialize;
use workload_guard_dbus::types::WatchedRow;

use super::style::Style;
use super::table::{Align, Table};

/// A watched unit in JSON; the help of `watch` documents the keys.
#[derive(Serialize)]
struct View<'a> {
    unit: &'a str,
    processes: u32,
}

/// As JSON.
pub fn json(rows: &[WatchedRow]) -> String {
    let views: Vec<View<'_>> = rows
        .iter()
        .map(|row| View {
            unit: &row.unit,
            processes: row.processes,
        })
        .collect();
    super::to_json(&views)
}

/// As a table, or what a change means.
pub fn text(rows: &[WatchedRow], change: Option<&(Vec<String>, bool)>, style: &Style) -> String {
    let mut lines: Vec<String> = match change {
        None => {
            let mut table = Table::new(&[("WATCHED", Align::Left), ("PROCESSES", Align::Right)]);
            for row in rows {
                table.row(vec![row.unit.clone(), row.processes.to_string()]);
            }
            table.lines(style)
        }
        Some((units, add)) => {
            let mut lines = meaning(units, *add);
            let all: Vec<&str> = rows.iter().map(|row| row.unit.as_str()).collect();
            lines.push(format!("watched now: {}", all.join(", ")));
            lines
        }
    };
    lines.push(String::new());
    lines.join("\n")
}

fn meaning(units: &[String], add: bool) -> Vec<String> {
    let names = units.join(" ");
    if !add {
        return vec![
            format!(
                "{names}: no longer watched. What was routed from there comes back when it calms down."
            ),
            format!("To watch again: workload-guard watch {names}"),
        ];
    }
    let mut lines = Vec::new();
    for unit in units {
        lines.push(match unit.as_str() {
            "app.slice" => "app.slice: builds that are started in any terminal of the desktop are routed, by name or \
                            by their CPU use. Terminals, editors, browsers and other apps stay where they are, \
                            and so do their own helpers."
                .to_owned(),
            other => format!(
                "{other}: heavy work in it, and in everything nested in it, is routed, by name or by its CPU use."
            ),
        });
    }
    lines.push(format!("To undo: workload-guard watch --remove {names}"));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<WatchedRow> {
        [("protected-workload.slice", 0), ("app.slice", 312)]
            .map(|(unit, processes)| WatchedRow {
                unit: unit.into(),
                processes,
            })
            .to_vec()
    }

    const PLAIN: Style = Style {
        width: None,
        colour: false,
        now_usec: 0,
    };

    #[test]
    fn a_list_and_its_json_say_the_same() {
        assert_eq!(
            text(&rows(), None, &PLAIN),
            "WATCHED                   PROCESSES\nprotected-workload.slice          0\napp.slice                       312\n"
        );
        let value: serde_json::Value = serde_json::from_str(&json(&rows())).unwrap();
        assert_eq!(
            value[1],
            serde_json::json!({"unit": "app.slice", "processes": 312})
        );
    }

    #[test]
    fn a_change_says_what_it_means_and_how_to_undo_it() {
        let told = text(&rows(), Some(&(vec!["app.slice".into()], true)), &PLAIN);
        for part in [
            "any terminal of the desktop",
            "editors, browsers",
            "To undo: workload-guard watch --remove app.slice\n",
            "watched now: protected-workload.slice, app.slice\n",
        ] {
            assert!(told.contains(part), "{told}");
        }
        let told = text(&rows(), Some(&(vec!["x.slice".into()], false)), &PLAIN);
        assert!(
            told.contains("To watch again: workload-guard watch x.slice\n"),
            "{told}"
        );
    }
}
