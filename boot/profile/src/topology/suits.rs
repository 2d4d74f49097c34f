//! Whether a machine file suits the machine that it is on.

use std::collections::BTreeMap;

use super::{Cpu, Topology};
use crate::cpus::CpuSet;
use crate::machine::keys;
use crate::machine::{MachineFile, Mistakes};
use crate::profile::Profile;

impl MachineFile {
    /// Compares the file with the machine: its CPUs exist, and those measured on share one L3, one sort
    /// of core and one NUMA node, without the second threads of their cores when SMT is off.
    ///
    /// What is offline cannot be judged, and is not.
    ///
    /// # Errors
    ///
    /// Every mistake, with file, line, key, reason and way out.
    pub fn suits(&self, topology: &Topology) -> Result<(), Mistakes> {
        let cpus = &self.machine.cpus;
        let mut wrong = Vec::new();
        for (key, set) in [
            (keys::BENCH, &cpus.bench),
            (keys::HOUSEKEEPING, &cpus.housekeeping),
            (keys::EXPECTED_ONLINE, &cpus.expected_online),
        ] {
            let absent = set.without(&topology.present);
            if !absent.is_empty() {
                wrong.push((
                    key,
                    format!(
                        "this machine has no CPU {absent}, only {}; `workload-guard bench plan` proposes a file for it",
                        topology.present
                    ),
                ));
            }
        }
        wrong.extend(one_of_each(&cpus.bench, topology));
        wrong.extend(self.second_threads(topology));
        self.mistakes(wrong)
    }

    fn second_threads(&self, topology: &Topology) -> Option<(&'static str, String)> {
        let cpus = &self.machine.cpus;
        let smt = self.machine.switches(Profile::MultiCore).smt;
        let siblings = |cpu: u32| {
            let facts = topology.cpus.get(&cpu)?;
            Some(facts.siblings.without(&CpuSet::from(cpu)))
        };
        let (set, key) = if smt {
            (&cpus.bench, keys::BENCH)
        } else {
            (&cpus.expected_online, keys::EXPECTED_ONLINE)
        };
        for cpu in set.iter() {
            let siblings = siblings(cpu).unwrap_or_default();
            let inside = siblings.and(set);
            if !smt && !inside.is_empty() {
                let reason = format!(
                    "CPU {inside} is on the core of CPU {cpu}, and SMT is off in the profiles; name the first thread of each core only"
                );
                return Some((key, reason));
            }
            let outside = siblings.without(set);
            if smt && !outside.is_empty() {
                let reason = format!(
                    "CPU {outside} is on the core of CPU {cpu} and would run other work there while SMT is on in the profiles; add it"
                );
                return Some((key, reason));
            }
        }
        None
    }
}

/// What the bench CPUs must share.
fn one_of_each(bench: &CpuSet, topology: &Topology) -> Vec<(&'static str, String)> {
    let mut wrong = Vec::new();
    let mut judge = |groups: BTreeMap<String, CpuSet>, why: &str| {
        if groups.len() > 1 {
            let parts: Vec<String> = groups
                .iter()
                .map(|(name, cpus)| format!("{cpus} ({name})"))
                .collect();
            wrong.push((
                keys::BENCH,
                format!(
                    "the CPUs span {}; {why}, so keep to one of them",
                    parts.join(" and ")
                ),
            ));
        }
    };
    judge(
        groups(bench, topology, |cpu| {
            Some(format!("L3 of {}", cpu.l3.as_ref()?.cpus))
        }),
        "traffic between caches would be in the results",
    );
    judge(
        groups(bench, topology, |cpu| Some(cpu.kind.to_string())),
        "different cores give different results",
    );
    judge(
        groups(bench, topology, |cpu| Some(format!("node {}", cpu.node?))),
        "the distance to memory would be in the results",
    );
    wrong
}

fn groups(
    bench: &CpuSet,
    topology: &Topology,
    name: impl Fn(&Cpu) -> Option<String>,
) -> BTreeMap<String, CpuSet> {
    let mut groups: BTreeMap<String, CpuSet> = BTreeMap::new();
    for cpu in bench.iter() {
        if let Some(name) = topology.cpus.get(&cpu).and_then(&name) {
            let group = groups.entry(name).or_default();
            *group = group.or(&CpuSet::from(cpu));
        }
    }
    groups
}
