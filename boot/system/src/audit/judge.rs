//! Two looks compared. Pure.

use std::collections::BTreeMap;

use bench_profile::cpus::CpuSet;
use serde::Serialize;

use super::interrupts::Kind;
use super::look::Look;

/// What reached the CPUs between two looks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Audit {
    /// The CPUs that were looked at.
    pub cpus: CpuSet,
    /// Interrupts of devices: any of them spoils a measurement.
    pub interference: Vec<Hit>,
    /// What is worth knowing and no fault.
    pub notes: Vec<Note>,
}

/// An interrupt of a device on one CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hit {
    /// Its number.
    pub irq: u32,
    /// What the kernel says of it.
    pub source: String,
    /// Where it arrived.
    pub cpu: u32,
    /// How often.
    pub count: u32,
    /// Whether the kernel alone places it, so that no mask can move it.
    pub managed: bool,
}

/// A remark.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    /// A stable, short name: `timer-ticks`, `steal`.
    pub id: &'static str,
    /// In words.
    pub text: String,
}

impl Note {
    /// A remark.
    pub fn new(id: &'static str, text: impl Into<String>) -> Note {
        Note {
            id,
            text: text.into(),
        }
    }
}

/// What `cpus` saw between `before` and `after`.
pub fn compare(before: &Look, after: &Look, cpus: &CpuSet) -> Audit {
    let mut audit = Audit {
        cpus: cpus.clone(),
        ..Audit::default()
    };
    let gone: CpuSet = cpus
        .iter()
        .filter(|cpu| !before.interrupts.cpus.contains(cpu) || !after.interrupts.cpus.contains(cpu))
        .collect();
    if !gone.is_empty() {
        audit.notes.push(Note::new(
            "offline",
            format!("CPUs {gone} were offline at one end of the run: nothing is known of them"),
        ));
    }
    let mut named: BTreeMap<&str, (u64, &str)> = BTreeMap::new();
    for (label, row) in &after.interrupts.rows {
        for cpu in cpus.without(&gone).iter() {
            let count = arrived(before, after, label, cpu);
            if count == 0 {
                continue;
            }
            match (row.kind, label.parse()) {
                (Kind::Device, Ok(irq)) => audit.interference.push(Hit {
                    irq,
                    source: row.source.clone(),
                    cpu,
                    count,
                    managed: after.managed.contains(&irq),
                }),
                _ => {
                    let entry = named.entry(label).or_insert((0, &row.source));
                    entry.0 += u64::from(count);
                }
            }
        }
    }
    audit
        .interference
        .sort_by_key(|hit| (std::cmp::Reverse(hit.count), hit.irq, hit.cpu));
    audit
        .notes
        .extend(named.into_iter().map(|(label, (count, source))| {
            Note::new("interrupts", format!("{label} {count} ({source})"))
        }));
    audit.notes.extend(ticks(before, after, cpus));
    audit.notes.extend(steal(before, after, cpus));
    audit.notes.extend(throttled(before, after));
    audit
}

/// How often a line counted up on a CPU. A number that went to another device in between counts from zero.
fn arrived(before: &Look, after: &Look, label: &str, cpu: u32) -> u32 {
    let Some(now) = after.interrupts.count(label, cpu) else {
        return 0;
    };
    let same = before.interrupts.rows.get(label).map(|row| &row.source)
        == after.interrupts.rows.get(label).map(|row| &row.source);
    match before.interrupts.count(label, cpu) {
        Some(then) if same => now.wrapping_sub(then),
        _ => now,
    }
}

/// Local timer interrupts on CPUs that the kernel is to keep free of them.
fn ticks(before: &Look, after: &Look, cpus: &CpuSet) -> Option<Note> {
    let tickless = cpus.and(&after.nohz_full);
    if tickless.is_empty() {
        return None;
    }
    let each: Vec<String> = tickless
        .iter()
        .map(|cpu| format!("cpu{cpu} {}", arrived(before, after, "LOC", cpu)))
        .collect();
    Some(Note::new(
        "timer-ticks",
        format!("timer ticks on nohz_full CPUs: {}", each.join(", ")),
    ))
}

fn steal(before: &Look, after: &Look, cpus: &CpuSet) -> Option<Note> {
    let ticks: u64 = cpus
        .iter()
        .filter_map(|cpu| {
            let now = after.steal.get(&cpu)?;
            Some(now.saturating_sub(*before.steal.get(&cpu)?))
        })
        .sum();
    (ticks > 0).then(|| {
        Note::new(
            "steal",
            format!(
                "the hypervisor took {} ms away from these CPUs",
                ticks * super::look::TICK_MS
            ),
        )
    })
}

fn throttled(before: &Look, after: &Look) -> Vec<Note> {
    let mut sums: BTreeMap<&'static str, u64> = BTreeMap::new();
    for ((cpu, name), now) in &after.throttles {
        let then = before.throttles.get(&(*cpu, name)).copied().unwrap_or(0);
        let sum = sums.entry(name).or_default();
        // Every CPU of a package shows the package's count.
        if name.starts_with("package") {
            *sum = (*sum).max(now.saturating_sub(then));
        } else {
            *sum += now.saturating_sub(then);
        }
    }
    sums.into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| {
            Note::new(
                "throttled",
                format!("{} limit reached {count} times ({name})", meaning(name)),
            )
        })
        .collect()
}

fn meaning(name: &str) -> &'static str {
    if name.contains("power_limit") {
        "power"
    } else {
        "temperature"
    }
}
