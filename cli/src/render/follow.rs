//! `status --follow`: a line for each thing that happens.

use serde_json::{Value, json};
use workload_guard_dbus::types::HoldRow;

use super::style::{Style, Tone, fit, short_cgroup};
use super::{holds, status};
use crate::follow::News;

/// What has happened, as it goes to stdout.
pub fn news(news: &News, as_json: bool, style: &Style) -> String {
    if as_json {
        return line_of(&object(news, style.now_usec));
    }
    match news {
        News::Back(now) => format!(
            "{}\n\n{}",
            line(style, "guard", "started"),
            status::text(now, style)
        ),
        other => format!("{}\n", words(other, style)),
    }
}

/// The state at the start, as one line of JSON.
pub fn first_json(now: &crate::call::Status, style: &Style) -> String {
    line_of(&with_status("status", now, style.now_usec))
}

fn words(news: &News, style: &Style) -> String {
    match news {
        News::Routed {
            pid,
            class,
            reason,
            command,
            ..
        } => line(
            style,
            "routed",
            &format!("{pid} into {class} ({reason}): {command}"),
        ),
        News::Recovered {
            pid,
            class,
            destination,
            note,
        } => {
            let note = match note.as_str() {
                "" => String::new(),
                note => format!(" ({note})"),
            };
            let to = short_cgroup(destination);
            line(
                style,
                "recovered",
                &format!("{pid} from {class} to {to}{note}"),
            )
        }
        News::Failed { pid, class, text } => {
            line(style, "failed", &format!("{pid} into {class}: {text}"))
        }
        News::Ended {
            pid,
            class,
            command,
        } => line(style, "ended", &format!("{pid} in {class}: {command}")),
        News::State(state) => line(style, "state", state),
        News::Reasons(reasons) if reasons.is_empty() => line(style, "because", "nothing is wrong"),
        News::Reasons(reasons) => reasons
            .iter()
            .map(|reason| line(style, "because", reason))
            .collect::<Vec<_>>()
            .join("\n"),
        News::Held(row) => line(style, "held", &hold(row)),
        News::Unheld(row) => line(style, "unheld", &hold(row)),
        News::Left => line(style, "guard", "stopped; what is routed stays where it is"),
        News::Back(_) => line(style, "guard", "started"),
    }
}

fn hold(row: &HoldRow) -> String {
    let pid = match row.pid {
        0 => String::new(),
        pid => format!(" of {pid}"),
    };
    let reason = match row.reason.as_str() {
        "" => String::new(),
        reason => format!(": {reason}"),
    };
    format!(
        "{}, {}{pid} by {}{reason}",
        row.id,
        row.kind,
        holds::owner(row)
    )
}

/// What it is in one column, whose it is in the other. Nothing is cut: lines go by and are not read again.
fn line(style: &Style, what: &str, text: &str) -> String {
    let what = style.paint(Tone::Head, &format!("{what:<9}"));
    format!("{what}  {}", fit(text, None))
}

fn object(news: &News, now_usec: u64) -> Value {
    let mut value = match news {
        News::Routed {
            pid,
            class,
            reason,
            source,
            command,
        } => json!({
            "event": "routed", "pid": pid, "class": class, "reason": reason, "source": source,
            "command": command,
        }),
        News::Recovered {
            pid,
            class,
            destination,
            note,
        } => json!({
            "event": "recovered", "pid": pid, "class": class, "destination": destination, "note": note,
        }),
        News::Failed { pid, class, text } => json!({
            "event": "move-failed", "pid": pid, "class": class, "text": text,
        }),
        News::Ended {
            pid,
            class,
            command,
        } => json!({
            "event": "ended", "pid": pid, "class": class, "command": command,
        }),
        News::State(state) => json!({ "event": "state", "state": state }),
        News::Reasons(reasons) => json!({ "event": "state-reasons", "state_reasons": reasons }),
        News::Held(row) => json!({ "event": "held", "hold": holds::view(row) }),
        News::Unheld(row) => json!({ "event": "unheld", "hold": holds::view(row) }),
        News::Left => json!({ "event": "stopped" }),
        News::Back(now) => return with_status("started", now, now_usec),
    };
    value["ts_usec"] = now_usec.into();
    value
}

fn with_status(event: &str, now: &crate::call::Status, now_usec: u64) -> Value {
    json!({ "event": event, "status": status::value(now), "ts_usec": now_usec })
}

fn line_of(value: &Value) -> String {
    format!("{value}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const STYLE: Style = Style {
        width: None,
        colour: false,
        now_usec: 7,
    };

    fn told() -> Vec<News> {
        let hold = HoldRow {
            id: 3,
            kind: "exempt".into(),
            pid: 42,
            subject: "make".into(),
            unit: String::new(),
            owner: String::new(),
            owner_pid: 77,
            owner_command: "workload-guard exempt 42".into(),
            reason: "a demo".into(),
            since: 1,
            until: 0,
        };
        vec![
            News::Routed {
                pid: 42,
                class: "heavy".into(),
                reason: "known-heavy".into(),
                source: "/user.slice/user-1000.slice/user@1000.service/app.slice/a.scope".into(),
                command: "make \u{1b}[2J".into(),
            },
            News::Recovered {
                pid: 42,
                class: "heavy".into(),
                destination: "/user.slice/user-1000.slice/user@1000.service/app.slice/a.scope"
                    .into(),
                note: String::new(),
            },
            News::Failed {
                pid: 43,
                class: "heavy".into(),
                text: "it is the bus".into(),
            },
            News::Ended {
                pid: 44,
                class: "heavy".into(),
                command: "cc".into(),
            },
            News::State("paused".into()),
            News::Reasons(vec!["routing is paused".into()]),
            News::Reasons(Vec::new()),
            News::Held(hold.clone()),
            News::Unheld(hold),
            News::Left,
        ]
    }

    #[test]
    fn a_line_for_each() {
        let lines: String = told().iter().map(|one| news(one, false, &STYLE)).collect();
        assert_eq!(
            lines,
            "\
routed     42 into heavy (known-heavy): make \u{fffd}[2J
recovered  42 from heavy to app.slice/a.scope
failed     43 into heavy: it is the bus
ended      44 in heavy: cc
state      paused
because    routing is paused
because    nothing is wrong
held       3, exempt of 42 by user: a demo
unheld     3, exempt of 42 by user: a demo
guard      stopped; what is routed stays where it is
"
        );
    }

    #[test]
    fn an_object_for_each_on_a_line_of_its_own() {
        for one in told() {
            let line = news(&one, true, &STYLE);
            assert_eq!(line.matches('\n').count(), 1, "{line}");
            let value: Value = serde_json::from_str(&line).unwrap();
            assert!(
                value["event"].is_string() && value["ts_usec"] == 7,
                "{line}"
            );
        }
    }
}
