//! The guard's journal.

use std::collections::HashMap;

use anyhow::{Context, Result};
use workload_guard_dbus::names::GUARD_UNIT;

use super::root;

/// One entry: its fields by name. Fields that are not text are left out.
pub type Entry = HashMap<String, String>;

/// What the guard has written since boot, oldest first, to entries with these fields (`NAME=VALUE`).
///
/// Read as root: a volatile journal is not split by user (journald.conf(5), SplitMode=).
pub fn of_guard(matches: &[&str]) -> Result<Vec<Entry>> {
    let unit = format!("_SYSTEMD_USER_UNIT={GUARD_UNIT}");
    let mut argv = vec![
        "journalctl",
        "--no-pager",
        "--quiet",
        "--output=json",
        &unit,
    ];
    argv.extend(matches);
    root::ok(&argv)?
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| {
            let fields: HashMap<String, serde_json::Value> =
                serde_json::from_str(line).with_context(|| format!("journalctl wrote {line:?}"))?;
            Ok(fields
                .into_iter()
                .filter_map(|(name, value)| Some((name, value.as_str()?.to_owned())))
                .collect())
        })
        .collect()
}
