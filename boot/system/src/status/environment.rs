//! What is worth archiving beside results, so that two of them can be told comparable.

use serde::Serialize;

use super::facts::{Facts, text};
use crate::root::Root;

/// One line of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Item {
    /// What it is.
    pub name: &'static str,
    /// What was seen; `unknown` where nothing could be.
    pub value: String,
}

/// The observed environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Environment(pub Vec<Item>);

impl Environment {
    /// Reads what [`Facts`] has not.
    pub fn read(root: &Root, facts: &Facts) -> Environment {
        let of = |file: &str| text(root, file);
        let topology = facts.topology.as_ref().ok();
        let mut items = Vec::new();
        let mut add = |name, value: Option<String>| {
            items.push(Item {
                name,
                value: value
                    .map(|value| {
                        if value.is_empty() {
                            "none".into()
                        } else {
                            value
                        }
                    })
                    .unwrap_or_else(|| "unknown".into()),
            });
        };
        add("host", of("proc/sys/kernel/hostname"));
        add("kernel", of("proc/sys/kernel/osrelease"));
        add("kernel version", of("proc/sys/kernel/version"));
        add("command line", of("proc/cmdline"));
        add("cpu model", topology.map(|all| all.model.clone()));
        add(
            "microcode",
            of("sys/devices/system/cpu/cpu0/microcode/version"),
        );
        add("online", topology.map(|all| all.online.to_string()));
        add("isolated", topology.map(|all| all.isolated.to_string()));
        add("nohz_full", topology.map(|_| facts.nohz_full.to_string()));
        add("smt", topology.and_then(|all| all.smt_control.clone()));
        let boost = facts.frequency.boost.as_ref();
        add(
            "boost",
            boost.map(|(_, on)| if *on { "on" } else { "off" }.into()),
        );
        add("governors", distinct(facts.frequency.governors.values()));
        add(
            "energy preferences",
            distinct(facts.frequency.preferences.values()),
        );
        for (name, mask) in &facts.masks {
            add(name, Some(mask.to_string()));
        }
        add("swap", facts.swaps.as_ref().map(|areas| areas.join(" ")));
        add("mitigations", mitigations(root));
        let policy = facts.machine.as_ref().ok();
        add(
            "machine file",
            policy.map(|file| format!("{:016x}", fnv1a(format!("{:?}", file.machine).as_bytes()))),
        );
        Environment(items)
    }
}

fn distinct<'a>(values: impl Iterator<Item = &'a String>) -> Option<String> {
    let mut values: Vec<&str> = values.map(String::as_str).collect();
    values.sort_unstable();
    values.dedup();
    (!values.is_empty()).then(|| values.join(" "))
}

/// Every known weakness with what is done about it: two results with different ones do not compare.
fn mitigations(root: &Root) -> Option<String> {
    let folder = std::fs::read_dir(root.path("sys/devices/system/cpu/vulnerabilities")).ok()?;
    let mut lines: Vec<String> = folder
        .flatten()
        .filter_map(|file| {
            let state = std::fs::read_to_string(file.path()).ok()?;
            Some(format!("{}: {}", file.file_name().display(), state.trim()))
        })
        .collect();
    lines.sort();
    Some(lines.join("; "))
}

/// 64-bit FNV-1a: the same file has the same number with every compiler.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
