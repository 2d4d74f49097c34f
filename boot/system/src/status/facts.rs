//! What can be seen of the machine.

use std::collections::BTreeMap;

use bench_profile::cpus::CpuSet;
use bench_profile::machine::MachineFile;
use bench_profile::profile::Profile;
use bench_profile::requested::SYSCTLS;
use bench_profile::topology::Topology;

use super::frequency::Frequency;
use super::units;
use crate::root::Root;
use crate::snapshot::{SWAPS, sysctl};
use crate::swap;
use crate::{boot, machine, topology};

/// The state of one moment. A text in an `Err` says why a thing is not known.
#[derive(Debug)]
pub struct Facts {
    /// The profile of this boot.
    pub booted: Result<Option<Profile>, String>,
    /// The kernel's command line.
    pub command_line: String,
    /// The machine file.
    pub machine: Result<MachineFile, String>,
    /// How the CPUs lie to each other.
    pub topology: Result<Topology, String>,
    /// CPUs without a timer tick.
    pub nohz_full: CpuSet,
    /// Clock policy.
    pub frequency: Frequency,
    /// Masks that say where the kernel's own work may go, by name; those that the kernel shows.
    pub masks: BTreeMap<&'static str, CpuSet>,
    /// Where each numbered interrupt arrives, as far as the kernel tells.
    pub interrupts: BTreeMap<u32, CpuSet>,
    /// Active swap areas; none where /proc/swaps cannot be read.
    pub swaps: Option<Vec<String>>,
    /// The settings that the profiles change, by name; those that the kernel shows.
    pub sysctls: BTreeMap<&'static str, String>,
    /// Units of the machine file that run.
    pub running: Vec<String>,
}

/// How a kernel file notes a set of CPUs.
type Notation = fn(&str) -> Option<CpuSet>;

/// The files of [`Facts::masks`].
const MASKS: [(&str, &str, Notation); 3] = [
    (
        "default_smp_affinity",
        "proc/irq/default_smp_affinity",
        mask,
    ),
    ("workqueue", "sys/devices/virtual/workqueue/cpumask", mask),
    ("watchdog", "proc/sys/kernel/watchdog_cpumask", list),
];

impl Facts {
    /// Looks.
    pub fn gather(root: &Root) -> Facts {
        let machine = machine::load(root).map_err(|error| error.to_string());
        let topology = topology::read(root).map_err(|error| error.to_string());
        let units: Vec<&str> = machine.as_ref().map_or(Vec::new(), |file| {
            let machine = &file.machine;
            let all = machine.masked_units.iter().chain(&machine.noisy_units);
            all.map(String::as_str).collect()
        });
        Facts {
            booted: boot::profile(root).map_err(|error| error.to_string()),
            command_line: text(root, "proc/cmdline").unwrap_or_default(),
            nohz_full: text(root, "sys/devices/system/cpu/nohz_full")
                .and_then(|list| list.parse().ok())
                .unwrap_or_default(),
            frequency: Frequency::read(root, topology.as_ref().map(|all| &all.online).ok()),
            masks: MASKS
                .iter()
                .filter_map(|(name, file, read)| Some((*name, read(&text(root, file)?)?)))
                .collect(),
            interrupts: interrupts(root),
            swaps: text(root, SWAPS).map(|table| {
                let areas = swap::areas(&table).into_iter();
                areas.map(|area| area.device).collect()
            }),
            sysctls: SYSCTLS
                .iter()
                .filter_map(|(name, _)| Some((*name, text(root, &sysctl(name))?)))
                .collect(),
            running: units::running(root, &units),
            machine,
            topology,
        }
    }
}

/// Where the kernel sends it now, else where it may.
fn interrupts(root: &Root) -> BTreeMap<u32, CpuSet> {
    let target = |irq: u32| {
        ["effective_affinity", "smp_affinity"]
            .iter()
            .find_map(|file| mask(&text(root, &format!("proc/irq/{irq}/{file}"))?))
    };
    let names = root.names("proc/irq").unwrap_or_default();
    names
        .iter()
        .filter_map(|name| name.parse().ok())
        .filter_map(|irq| Some((irq, target(irq)?)))
        .collect()
}

fn mask(text: &str) -> Option<CpuSet> {
    CpuSet::from_mask(text).ok()
}

fn list(text: &str) -> Option<CpuSet> {
    text.parse().ok()
}

/// A file's text without blanks around it; none where it cannot be read.
pub(super) fn text(root: &Root, file: &str) -> Option<String> {
    let text = root.read(file).ok().flatten()?;
    Some(text.trim().to_owned())
}
