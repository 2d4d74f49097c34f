//! `config`.

use serde::Serialize;
use workload_guard_dbus::types::SettingRow;

use super::style::Style;
use super::table::{Align, Table};

/// A setting in JSON; the help of `config` documents the keys.
#[derive(Serialize)]
struct View<'a> {
    key: &'a str,
    value: &'a str,
    origin: &'a str,
}

/// As JSON.
pub fn json(rows: &[SettingRow]) -> String {
    let views: Vec<View<'_>> = rows
        .iter()
        .map(|row| View {
            key: &row.key,
            value: &row.value,
            origin: &row.origin,
        })
        .collect();
    super::to_json(&views)
}

/// As a table.
pub fn text(rows: &[SettingRow], style: &Style) -> String {
    let mut table = Table::new(&[
        ("KEY", Align::Left),
        ("VALUE", Align::Left),
        ("ORIGIN", Align::Left),
    ]);
    for row in rows {
        table.row(vec![row.key.clone(), row.value.clone(), row.origin.clone()]);
    }
    let mut text = table.lines(style).join("\n");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<SettingRow> {
        [
            ("routing.cpu_threshold", "70.0", "default"),
            ("sampling.interval", "\"2s\"", "/etc/x.toml:3"),
        ]
        .map(|(key, value, origin)| SettingRow {
            key: key.into(),
            value: value.into(),
            origin: origin.into(),
        })
        .to_vec()
    }

    #[test]
    fn the_table_names_value_and_origin() {
        assert_eq!(
            text(
                &rows(),
                &Style {
                    width: None,
                    colour: false,
                    now_usec: 0
                }
            ),
            "KEY                    VALUE  ORIGIN\n\
             routing.cpu_threshold  70.0   default\n\
             sampling.interval      \"2s\"   /etc/x.toml:3\n"
        );
    }

    #[test]
    fn the_json_keys_are_those_of_the_help() {
        let value: serde_json::Value = serde_json::from_str(&json(&rows())).unwrap();
        assert_eq!(
            value[1],
            serde_json::json!({"key": "sampling.interval", "value": "\"2s\"", "origin": "/etc/x.toml:3"})
        );
    }
}
