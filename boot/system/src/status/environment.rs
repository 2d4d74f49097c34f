//! What is worth archiving beside results, so that two of them can be told comparable.

use bench_profile::comparability::{Item, UNKNOWN};
use bench_profile::topology::Topology;
use serde::Serialize;

use super::facts::{Facts, text};
use crate::root::Root;

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
        let mut add = |name: &str, value: Option<String>| {
            let value = match value {
                Some(value) if value.is_empty() => "none".to_owned(),
                Some(value) => value,
                None => UNKNOWN.to_owned(),
            };
            items.push(Item {
                name: name.to_owned(),
                value,
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
        add("topology", topology.map(layout));
        let booted = facts.booted.as_ref().ok();
        add(
            "profile",
            booted.map(|booted| {
                booted
                    .map(|profile| profile.to_string())
                    .unwrap_or_default()
            }),
        );
        add("online", topology.map(|all| all.online.to_string()));
        add("isolated", topology.map(|all| all.isolated.to_string()));
        add("nohz_full", topology.map(|_| facts.nohz_full.to_string()));
        add("smt", topology.and_then(|all| all.smt_control.clone()));
        let boost = facts.frequency.boost;
        add("boost", boost.map(|boost| boost.to_string()));
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
        // Left alone by the profiles, and part of what is measured.
        add(
            "transparent huge pages",
            of("sys/kernel/mm/transparent_hugepage/enabled"),
        );
        add(
            "address randomization",
            of("proc/sys/kernel/randomize_va_space"),
        );
        add(
            "idle governor",
            of("sys/devices/system/cpu/cpuidle/current_governor"),
        );
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

/// Which CPUs share a cache, and of what sort they are.
fn layout(topology: &Topology) -> String {
    let mut groups: Vec<String> = topology
        .cpus
        .values()
        .map(|cpu| {
            let cache = match &cpu.l3 {
                Some(l3) => format!("L3 of {} KiB for {}", l3.kib, l3.cpus),
                None => "no L3".to_owned(),
            };
            format!("package {}, {}, {cache}", cpu.package, cpu.kind)
        })
        .collect();
    groups.sort_unstable();
    groups.dedup();
    groups.join("; ")
}

/// Every known weakness with what is done about it: two results with different ones do not compare.
fn mitigations(root: &Root) -> Option<String> {
    let folder = "sys/devices/system/cpu/vulnerabilities";
    let lines: Vec<String> = root
        .names(folder)
        .ok()?
        .into_iter()
        .filter_map(|name| {
            let state = text(root, &format!("{folder}/{name}"))?;
            Some(format!("{name}: {state}"))
        })
        .collect();
    (!lines.is_empty()).then(|| lines.join("; "))
}

/// 64-bit FNV-1a: the same file has the same number with every compiler.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
