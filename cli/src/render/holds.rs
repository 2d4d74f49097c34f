//! `holds`, and the answers about them.

use std::time::Duration;

use guard_policy::holds::timespan;
use serde::Serialize;
use workload_guard_dbus::types::HoldRow;

use super::style::Style;
use super::table::{Align, Table};
use crate::call::HoldAnswer;

/// A hold in JSON; the help of `holds` documents the keys.
#[derive(Serialize)]
pub struct View<'a> {
    id: u64,
    kind: &'a str,
    pid: u32,
    subject: &'a str,
    unit: &'a str,
    owner: &'a str,
    owner_pid: u32,
    owner_command: &'a str,
    reason: &'a str,
    since_usec: u64,
    until_usec: u64,
}

/// The holds as JSON shows them.
pub fn views(rows: &[HoldRow]) -> Vec<View<'_>> {
    rows.iter().map(view).collect()
}

/// One of them.
pub fn view(row: &HoldRow) -> View<'_> {
    View {
        id: row.id,
        kind: &row.kind,
        pid: row.pid,
        subject: &row.subject,
        unit: &row.unit,
        owner: &row.owner,
        owner_pid: row.owner_pid,
        owner_command: &row.owner_command,
        reason: &row.reason,
        since_usec: row.since,
        until_usec: row.until,
    }
}

/// An answer about holds.
pub fn answer(answer: &HoldAnswer, json: bool, style: &Style) -> String {
    match answer {
        HoldAnswer::Taken(id) => format!("hold {id}; `workload-guard unhold {id}` ends it\n"),
        HoldAnswer::Ended => "ended\n".into(),
        HoldAnswer::Resumed(0) => "routing was not paused\n".into(),
        HoldAnswer::Resumed(_) => "routing goes on\n".into(),
        HoldAnswer::List(rows) if json => super::to_json(&views(rows)),
        HoldAnswer::List(rows) if rows.is_empty() => "nothing is held\n".into(),
        HoldAnswer::List(rows) => {
            let mut text = lines(rows, style).join("\n");
            text.push('\n');
            text
        }
    }
}

/// A table of holds.
pub fn lines(rows: &[HoldRow], style: &Style) -> Vec<String> {
    let mut table = Table::new(&[
        ("HOLD", Align::Right),
        ("KIND", Align::Left),
        ("PID", Align::Right),
        ("ENDS", Align::Left),
        ("BY", Align::Left),
        ("REASON", Align::Left),
        ("COMMAND", Align::Left),
    ]);
    for row in rows {
        table.row(vec![
            row.id.to_string(),
            row.kind.clone(),
            match row.pid {
                0 => "-".into(),
                pid => pid.to_string(),
            },
            ends(row, style.now_usec),
            owner(row),
            or_dash(&row.reason),
            or_dash(&row.subject),
        ]);
    }
    table.lines(style)
}

fn ends(row: &HoldRow, now_usec: u64) -> String {
    let time = (row.until != 0).then(|| {
        let left = Duration::from_micros(row.until.saturating_sub(now_usec));
        format!("in {}", timespan::words(left))
    });
    match (time, row.owner.is_empty()) {
        (Some(time), true) => time,
        (Some(time), false) => format!("{time}, or with its owner"),
        (None, false) => "with its owner".into(),
        (None, true) => "by unhold".into(),
    }
}

/// Who took it. A command of the guard's own is the person's word.
pub fn owner(row: &HoldRow) -> String {
    match row.owner_command.split_whitespace().next() {
        Some(program) if program.rsplit('/').next() == Some("workload-guard") => "user".into(),
        Some(program) => {
            let name = program.rsplit('/').next().unwrap_or(program);
            format!("{name} ({})", row.owner_pid)
        }
        None => row.owner_pid.to_string(),
    }
}

fn or_dash(text: &str) -> String {
    if text.is_empty() {
        "-".into()
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 10_000_000;

    fn rows() -> Vec<HoldRow> {
        let pause = HoldRow {
            id: 3,
            kind: "pause".into(),
            pid: 0,
            subject: String::new(),
            unit: String::new(),
            owner: String::new(),
            owner_pid: 77,
            owner_command: "/usr/bin/workload-guard pause".into(),
            reason: "a meeting".into(),
            since: 1,
            until: NOW + 90_000_000,
        };
        let lease = HoldRow {
            id: 4,
            kind: "lease".into(),
            subject: "make -j8".into(),
            unit: "lwg-heavy-placed-5-6.scope".into(),
            owner: ":1.9".into(),
            owner_pid: 88,
            owner_command: "/usr/bin/python3 agent.py".into(),
            reason: String::new(),
            until: 0,
            ..pause.clone()
        };
        vec![pause, lease]
    }

    #[test]
    fn who_holds_what_and_until_when() {
        let style = Style {
            width: None,
            colour: false,
            now_usec: NOW,
        };
        assert_eq!(
            answer(&HoldAnswer::List(rows()), false, &style),
            "\
HOLD  KIND   PID  ENDS            BY            REASON     COMMAND
   3  pause    -  in 1 min 30 s   user          a meeting  -
   4  lease    -  with its owner  python3 (88)  -          make -j8
"
        );
    }

    #[test]
    fn the_json_keys_are_those_of_the_help() {
        let rows = rows();
        assert_eq!(
            serde_json::to_value(&views(&rows)[1]).unwrap(),
            serde_json::json!({
                "id": 4,
                "kind": "lease",
                "pid": 0,
                "subject": "make -j8",
                "unit": "lwg-heavy-placed-5-6.scope",
                "owner": ":1.9",
                "owner_pid": 88,
                "owner_command": "/usr/bin/python3 agent.py",
                "reason": "",
                "since_usec": 1,
                "until_usec": 0,
            })
        );
    }
}
