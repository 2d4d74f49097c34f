//! `quota`.

use serde::Serialize;
use workload_guard_dbus::types::SignalRow;

use super::style::{Style, Tone, fit};
use super::table::{Align, Table};
use crate::quota::Quota;

/// `quota --json`; its help documents the keys.
#[derive(Serialize)]
struct View<'a> {
    slice: &'a str,
    quota: Option<f64>,
    enforced: Option<f64>,
    minimum: u32,
    maximum: u32,
    dynamic: bool,
    policy: &'a str,
    control: &'a str,
    signals: Vec<Signal<'a>>,
    last_decision: &'a str,
    last_change: &'a str,
    changes: u64,
}

#[derive(Serialize)]
struct Signal<'a> {
    name: &'a str,
    state: &'a str,
    value: Option<f64>,
    age_sec: Option<f64>,
    note: &'a str,
}

fn limit(quota: f64) -> Option<f64> {
    (quota > 0.0).then_some(quota)
}

/// As JSON.
pub fn json(quota: &Quota) -> String {
    super::to_json(&View {
        slice: &quota.slice,
        quota: limit(quota.quota),
        enforced: limit(quota.enforced),
        minimum: quota.minimum,
        maximum: quota.maximum,
        dynamic: quota.dynamic,
        policy: &quota.policy,
        control: &quota.control,
        signals: quota
            .signals
            .iter()
            .map(|row| Signal {
                name: &row.name,
                state: &row.state,
                value: read(row).then_some(row.value),
                age_sec: read(row).then_some(row.age),
                note: &row.note,
            })
            .collect(),
        last_decision: &quota.last_decision,
        last_change: &quota.last_change,
        changes: quota.changes,
    })
}

fn read(row: &SignalRow) -> bool {
    row.state == "read"
}

/// For a person.
pub fn text(quota: &Quota, style: &Style) -> String {
    let mut lines = vec![
        format!(
            "{}: {} (the kernel has {})",
            quota.slice,
            style.paint(Tone::Head, &percent(quota.quota)),
            percent(quota.enforced)
        ),
        format!(
            "{}; from {}% to {}%",
            whose(quota),
            quota.minimum,
            quota.maximum
        ),
        String::new(),
    ];
    lines.extend(signals(quota).lines(style));
    for (what, words) in [
        ("last decision", &quota.last_decision),
        ("last change", &quota.last_change),
    ] {
        if !words.is_empty() {
            lines.push(format!("{what}: {}", fit(words, None)));
        }
    }
    lines.push(String::new());
    lines.join("\n")
}

fn whose(quota: &Quota) -> String {
    match quota.control.as_str() {
        "static" => "the slice's own value: no controller moves it (quota.dynamic of the settings)".into(),
        "auto" => format!("moved by the {} controller", quota.policy),
        "frozen" => format!(
            "frozen: the {} controller lacks telemetry, see `workload-guard status`",
            quota.policy
        ),
        "set" => "set by hand; `workload-guard quota auto` takes it back".into(),
        "yielded" => "changed by somebody else under the controller, which leaves it alone; `workload-guard quota auto` hands it back".into(),
        other => fit(other, None),
    }
}

/// A quota, as short as it is exact.
pub fn percent(quota: f64) -> String {
    limit(quota).map_or("no limit".to_owned(), |quota| {
        format!("{}%", (quota * 10.0).round() / 10.0)
    })
}

fn signals(quota: &Quota) -> Table {
    let mut table = Table::new(&[
        ("SIGNAL", Align::Left),
        ("NOW", Align::Right),
        ("LOW", Align::Right),
        ("HIGH", Align::Right),
        ("AGE", Align::Right),
        ("NOTE", Align::Left),
    ]);
    let setting = |key: &str| {
        let found = quota.settings.iter().find(|(name, _)| name == key);
        found.map_or("-".to_owned(), |(_, value)| value.clone())
    };
    for row in &quota.signals {
        let (what, low, high) = match row.name.as_str() {
            "pressure" => ("host's CPU pressure", "pressure_low", "pressure_high"),
            "delay_ms" => (
                "guard's run-queue delay, ms",
                "sched_delay_low_ms",
                "sched_delay_high_ms",
            ),
            "throttled" => ("heavy periods throttled", "", "throttle_high"),
            "demand" => ("demand of heavy work", "", ""),
            "protected_pressure" => ("protected CPU pressure", "pressure_low", "pressure_high"),
            "protected_throttled" => ("protected periods throttled", "", ""),
            other => (other, "", ""),
        };
        let (now, age) = match read(row) {
            true => (format!("{:.2}", row.value), format!("{:.0} s", row.age)),
            false => (row.state.clone(), "-".to_owned()),
        };
        table.row(vec![
            what.to_owned(),
            now,
            setting(low),
            setting(high),
            age,
            row.note.clone(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, state: &str, value: f64) -> SignalRow {
        SignalRow {
            name: name.into(),
            state: state.into(),
            value,
            age: 2.0,
            note: match state {
                "broken" => "/proc/pressure/cpu: No such file or directory".into(),
                _ => String::new(),
            },
        }
    }

    fn quota() -> Quota {
        Quota {
            slice: "heavy-workload.slice".into(),
            quota: 250.0,
            enforced: 0.0,
            minimum: 100,
            maximum: 400,
            dynamic: true,
            policy: "step".into(),
            control: "frozen".into(),
            signals: vec![
                row("pressure", "broken", 0.0),
                row("delay_ms", "read", 3.21),
            ],
            last_decision: "frozen: CPU pressure of the host".into(),
            last_change: String::new(),
            changes: 3,
            settings: vec![("sched_delay_high_ms".into(), "20".into())],
        }
    }

    #[test]
    fn every_signal_is_there_with_its_thresholds_or_what_is_wrong() {
        let style = Style {
            width: None,
            colour: false,
            now_usec: 0,
        };
        let text = text(&quota(), &style);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0],
            "heavy-workload.slice: 250% (the kernel has no limit)"
        );
        assert!(lines[1].starts_with("frozen: the step controller lacks telemetry"));
        let pressure = lines
            .iter()
            .find(|line| line.starts_with("host's CPU pressure"));
        assert!(
            pressure.is_some_and(|line| line.contains("broken") && line.contains("No such file"))
        );
        let delay = lines
            .iter()
            .find(|line| line.starts_with("guard's run-queue delay"));
        let cells: Vec<&str> = delay.expect("the row").split_whitespace().collect();
        assert_eq!(cells[3..], ["ms", "3.21", "-", "20", "2", "s"]);
        assert!(!text.contains("last change") && text.ends_with('\n'));
    }

    #[test]
    fn json_tells_no_value_for_what_was_not_read() {
        let json: serde_json::Value = serde_json::from_str(&json(&quota())).expect("JSON");
        assert_eq!(json["quota"], 250.0);
        assert_eq!(json["enforced"], serde_json::Value::Null);
        assert_eq!(json["signals"][0]["value"], serde_json::Value::Null);
        assert_eq!(json["signals"][1]["value"], 3.21);
    }
}
