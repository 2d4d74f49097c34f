//! Which cores are measured on.

use std::cmp::Reverse;

use super::groups::{self, Group};
use crate::cpus::CpuSet;
use crate::topology::Topology;

/// The chosen cores and the reasons, one to a line.
pub struct Choice {
    pub bench: CpuSet,
    pub why: Vec<String>,
}

/// Fewer cores than this, beside those that measure, make a poor home for everything else.
const ENOUGH: usize = 2;

/// Chooses among the groups of the fastest sort: a whole one that does not hold CPU 0 where there is
/// one, else a part of the one that does.
pub fn bench(topology: &Topology, primaries: &CpuSet) -> Choice {
    let groups = groups::of(topology, primaries);
    let fastest = groups.iter().map(|group| group.kind).max();
    let (candidates, slower): (Vec<&Group>, Vec<&Group>) =
        groups.iter().partition(|group| Some(group.kind) == fastest);
    let mut why = Vec::new();
    if !slower.is_empty() {
        let kinds: Vec<String> = slower.iter().map(|group| group.described()).collect();
        why.push(format!(
            "The fastest sort of core, and one sort only; left to everything else: {}.",
            kinds.join("; ")
        ));
    }
    let boot_cpu = primaries.first().unwrap_or_default();
    let free = candidates
        .iter()
        .copied()
        .filter(|group| !group.cpus.contains(boot_cpu))
        // One that leaves no core to a pool is no better than a split.
        .filter(|group| group.cpus.len() >= 2)
        .min_by_key(|group| {
            (
                Reverse(group.l3_kib),
                Reverse(group.cpus.len()),
                group.interrupts,
                group.cpus.first(),
            )
        });
    match free {
        Some(group) => {
            why.extend(whole(group, &candidates, boot_cpu));
            Choice {
                bench: group.cpus.clone(),
                why,
            }
        }
        None => split(&candidates, primaries, boot_cpu, why),
    }
}

fn whole(group: &Group, candidates: &[&Group], boot_cpu: u32) -> Vec<String> {
    let what = if group.shares_l3 {
        "All cores of one sort (the others share their L3)"
    } else {
        "One whole cache domain"
    };
    let mut why = vec![format!(
        "{what} without CPU {boot_cpu}, which can neither be parked nor rid of all interrupts: {}; {} interrupts so far.",
        group.described(),
        group.interrupts
    )];
    let others: Vec<String> = candidates
        .iter()
        .filter(|other| other.cpus != group.cpus)
        .map(|other| {
            format!(
                "{} ({}, {} interrupts)",
                other.cpus,
                other.described(),
                other.interrupts
            )
        })
        .collect();
    if !others.is_empty() {
        why.push(format!("Not taken: {}.", others.join("; ")));
    }
    if candidates
        .iter()
        .any(|other| other.interrupts < group.interrupts)
    {
        why.push("More interrupts went here than elsewhere: a device is near. The profiles move those that can be moved; `bench run` tells what still arrives.".to_owned());
    }
    if candidates
        .iter()
        .any(|other| other.l3_kib > group.l3_kib && other.cpus.contains(boot_cpu))
    {
        why.push(format!("The domain of CPU {boot_cpu} has the larger L3: work that lives in the cache is faster there than these results will say."));
    }
    why
}

/// A part of the only group that there is, so that the rest can have the others.
fn split(candidates: &[&Group], primaries: &CpuSet, boot_cpu: u32, mut why: Vec<String>) -> Choice {
    let group = candidates
        .iter()
        .copied()
        .max_by_key(|group| (group.cpus.len(), group.l3_kib))
        .map(|group| group.cpus.clone())
        .unwrap_or_default();
    let movable = group.without(&CpuSet::from(boot_cpu));
    if primaries.without(&group).len() >= ENOUGH {
        why.push(format!(
            "All of this sort but CPU {boot_cpu}, which can neither be parked nor rid of all interrupts."
        ));
        return Choice {
            bench: movable,
            why,
        };
    }
    let wanted = (group.len() / 2).max(1);
    let bench: CpuSet = movable.iter().rev().take(wanted).collect();
    why.push(format!(
        "The upper half of the cores: they share their L3 with the rest ({}), so expect more noise than with a cache domain of their own.",
        primaries.without(&bench)
    ));
    Choice { bench, why }
}

/// The CPU for single-core, and why.
pub fn single_core(topology: &Topology, bench: &CpuSet) -> (u32, String) {
    let preference = |cpu: u32| topology.cpus.get(&cpu).and_then(|facts| facts.preference);
    let best = bench
        .iter()
        .max_by_key(|cpu| (preference(*cpu), Reverse(*cpu)))
        .unwrap_or_default();
    let ranked: Vec<Option<u32>> = bench.iter().map(preference).collect();
    let why = match preference(best) {
        Some(rank) if ranked.iter().any(|other| *other != Some(rank)) => {
            format!("The core that the firmware ranks highest of these ({rank}).")
        }
        Some(rank) => format!("The first: the firmware ranks them all alike ({rank})."),
        None => "The first: the firmware does not rank them.".to_owned(),
    };
    (best, why)
}
