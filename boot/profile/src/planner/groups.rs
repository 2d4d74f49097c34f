//! Cores that can be measured on together.

use std::collections::BTreeMap;

use crate::cpus::CpuSet;
use crate::topology::{CoreKind, Topology};

/// Cores of one sort that share an L3, a NUMA node and a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The first thread of each core.
    pub cpus: CpuSet,
    /// What sort they are.
    pub kind: CoreKind,
    /// The size of their L3 in KiB, where the machine tells it.
    pub l3_kib: Option<u64>,
    /// Whether they share their L3 with another sort of core.
    pub shares_l3: bool,
    /// Numbered interrupts that they took since the boot, second threads included.
    pub interrupts: u64,
}

/// All groups, the one with the lowest CPU first.
pub fn of(topology: &Topology, primaries: &CpuSet) -> Vec<Group> {
    let mut groups: BTreeMap<_, Group> = BTreeMap::new();
    for cpu in primaries.iter() {
        let Some(facts) = topology.cpus.get(&cpu) else {
            continue;
        };
        let key = (
            facts.package,
            facts.node,
            facts.kind,
            facts.l3.as_ref().map(|l3| l3.cpus.clone()),
        );
        let interrupts: u64 = facts
            .siblings
            .iter()
            .filter_map(|sibling| topology.cpus.get(&sibling))
            .map(|sibling| sibling.interrupts)
            .sum();
        let group = groups.entry(key).or_insert_with(|| Group {
            cpus: CpuSet::default(),
            kind: facts.kind,
            l3_kib: facts.l3.as_ref().map(|l3| l3.kib),
            shares_l3: facts.l3.as_ref().is_some_and(|l3| {
                let other =
                    |cpu| topology.cpus.get(&cpu).map(|other| other.kind) != Some(facts.kind);
                l3.cpus.iter().any(other)
            }),
            interrupts: 0,
        });
        group.cpus = group.cpus.or(&CpuSet::from(cpu));
        group.interrupts += interrupts;
    }
    let mut groups: Vec<Group> = groups.into_values().collect();
    groups.sort_by_key(|group| group.cpus.first());
    groups
}

impl Group {
    /// `8 P-cores, L3 of 32 MiB`.
    pub fn described(&self) -> String {
        let count = self.cpus.len();
        let kind = self.kind.to_string();
        let kind = match count {
            1 => kind.replacen("cores", "core", 1),
            _ => kind,
        };
        match self.l3_kib {
            Some(kib) if kib % 1024 == 0 => format!("{count} {kind}, L3 of {} MiB", kib / 1024),
            Some(kib) => format!("{count} {kind}, L3 of {kib} KiB"),
            None => format!("{count} {kind}, L3 unknown"),
        }
    }
}
