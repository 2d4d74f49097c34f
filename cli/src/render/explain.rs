//! `explain`.

use serde_json::{Map, Value};
use workload_guard_dbus::types::Verdict;
use zvariant::{OwnedValue, Value as Bus};

use super::style::{Style, Tone, fit, short_cgroup};
use crate::call::Explained;

/// As JSON; its help documents the keys.
pub fn json(told: &Explained) -> String {
    let mut object = Map::new();
    object.insert("verdict".into(), told.verdict.clone().into());
    object.insert("sentences".into(), told.sentences.clone().into());
    // A newer guard may tell what is no plain value.
    let plain = told
        .details
        .iter()
        .filter_map(|(key, value)| Some((key.clone(), plain(value)?)));
    object.extend(plain);
    super::to_json(&Value::Object(object))
}

/// For a person.
pub fn text(told: &Explained, style: &Style) -> String {
    let detail = |key: &str| match told.details.get(key).map(|value| &**value) {
        Some(Bus::Str(text)) => text.to_string(),
        Some(Bus::U32(number)) => number.to_string(),
        _ => String::new(),
    };
    let kept = matches!(
        told.verdict.parse(),
        Ok(Verdict::Held
            | Verdict::Excluded
            | Verdict::NeverMoved
            | Verdict::OutOfReach
            | Verdict::Resting)
    );
    let tone = if kept { Tone::Warn } else { Tone::Good };
    let command = match detail("command") {
        command if command.is_empty() => "without a command line".to_owned(),
        command => command,
    };
    let mut lines = vec![
        fit(&format!("process {}: {command}", detail("pid")), None),
        fit(
            &format!("in {}", short_cgroup(&detail("control_group"))),
            None,
        ),
        style.paint(tone, &told.verdict),
        String::new(),
    ];
    // Whole, however narrow the terminal.
    lines.extend(told.sentences.iter().map(|sentence| fit(sentence, None)));
    lines.push(String::new());
    lines.join("\n")
}

fn plain(value: &OwnedValue) -> Option<Value> {
    Some(match &**value {
        Bus::Str(text) => text.as_str().into(),
        Bus::ObjectPath(path) => path.as_str().into(),
        Bus::U32(number) => (*number).into(),
        Bus::U64(number) => (*number).into(),
        Bus::F64(number) => (*number).into(),
        Bus::Bool(flag) => (*flag).into(),
        _ => return None,
    })
}
