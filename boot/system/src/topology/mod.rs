//! Reads how the CPUs lie to each other, from `/sys/devices` and `/proc`.

mod interrupts;

use std::collections::BTreeMap;

use bench_profile::cpus::{BadCpus, CpuSet};
use bench_profile::topology::{CoreKind, Cpu, L3, Topology};

use crate::root::{FileError, Root};

const CPUS: &str = "sys/devices/system/cpu";

/// A topology that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TopologyError {
    /// The file that says which CPUs run is not there.
    #[error("{0} is not there: the topology comes from sysfs, which must be mounted")]
    NoSysfs(String),
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file does not hold what the kernel writes.
    #[error("{path}: {error}")]
    Cpus {
        /// The file.
        path: String,
        /// What is wrong with it.
        error: BadCpus,
    },
}

/// Reads the topology below `root`.
///
/// # Errors
///
/// There is no sysfs, or a file of it does not hold what the kernel writes.
pub fn read(root: &Root) -> Result<Topology, TopologyError> {
    let online_file = format!("{CPUS}/online");
    let online = list(root, &online_file)?
        .ok_or_else(|| TopologyError::NoSysfs(root.path(&online_file).display().to_string()))?;
    let mut topology = Topology {
        model: model(root)?,
        present: list(root, &format!("{CPUS}/present"))?.unwrap_or_else(|| online.clone()),
        isolated: list(root, &format!("{CPUS}/isolated"))?.unwrap_or_default(),
        smt_control: word(root, &format!("{CPUS}/smt/control"))?,
        cpus: BTreeMap::new(),
        online,
    };
    let kinds = Kinds::read(root, &topology.online)?;
    let nodes = nodes(root)?;
    let interrupts = interrupts::per_cpu(&root.read("proc/interrupts")?.unwrap_or_default());
    for cpu in topology.online.iter() {
        let folder = format!("{CPUS}/cpu{cpu}");
        let siblings = list(root, &format!("{folder}/topology/thread_siblings_list"))?;
        let facts = Cpu {
            // The kernel says -1 where firmware does not tell the socket.
            package: number(root, &format!("{folder}/topology/physical_package_id"))?
                .unwrap_or_default(),
            siblings: siblings.unwrap_or_else(|| CpuSet::from(cpu)),
            l3: l3(root, &folder)?,
            node: nodes
                .iter()
                .find(|(_, cpus)| cpus.contains(cpu))
                .map(|(node, _)| *node),
            kind: kinds.of(cpu),
            preference: preference(root, cpu)?,
            interrupts: interrupts.get(&cpu).copied().unwrap_or_default(),
        };
        topology.cpus.insert(cpu, facts);
    }
    Ok(topology)
}

fn word(root: &Root, path: &str) -> Result<Option<String>, FileError> {
    Ok(root.read(path)?.map(|text| text.trim().to_owned()))
}

fn number(root: &Root, path: &str) -> Result<Option<u32>, FileError> {
    Ok(word(root, path)?.and_then(|text| text.parse().ok()))
}

fn list(root: &Root, path: &str) -> Result<Option<CpuSet>, TopologyError> {
    let Some(text) = root.read(path)? else {
        return Ok(None);
    };
    text.parse().map(Some).map_err(|error| TopologyError::Cpus {
        path: root.path(path).display().to_string(),
        error,
    })
}

fn model(root: &Root) -> Result<String, FileError> {
    let cpuinfo = root.read("proc/cpuinfo")?.unwrap_or_default();
    let name = cpuinfo
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.trim() == "model name")
        .map(|(_, name)| name.trim().to_owned());
    Ok(name.unwrap_or_default())
}

/// The unified cache of level 3. Its index is 3 on x86, and another elsewhere.
fn l3(root: &Root, folder: &str) -> Result<Option<L3>, TopologyError> {
    for index in 0.. {
        let cache = format!("{folder}/cache/index{index}");
        let Some(level) = word(root, &format!("{cache}/level"))? else {
            // A tree may leave out what nobody asks for.
            if index < 4 {
                continue;
            }
            break;
        };
        if level != "3" {
            continue;
        }
        let Some(cpus) = list(root, &format!("{cache}/shared_cpu_list"))? else {
            continue;
        };
        let size = word(root, &format!("{cache}/size"))?.unwrap_or_default();
        let kib = size.trim_end_matches('K').parse().unwrap_or_default();
        return Ok(Some(L3 { cpus, kib }));
    }
    Ok(None)
}

fn nodes(root: &Root) -> Result<Vec<(u32, CpuSet)>, TopologyError> {
    let folder = "sys/devices/system/node";
    let mut nodes = Vec::new();
    for name in root.names(folder)? {
        let Some(node) = name.strip_prefix("node").and_then(|n| n.parse().ok()) else {
            continue;
        };
        if let Some(cpus) = list(root, &format!("{folder}/{name}/cpulist"))? {
            nodes.push((node, cpus));
        }
    }
    Ok(nodes)
}

/// AMD's ranking of preferred cores, else what the firmware's CPPC says of the highest performance.
fn preference(root: &Root, cpu: u32) -> Result<Option<u32>, FileError> {
    let ranking = format!("{CPUS}/cpufreq/policy{cpu}/amd_pstate_prefcore_ranking");
    match number(root, &ranking)? {
        Some(rank) => Ok(Some(rank)),
        None => number(root, &format!("{CPUS}/cpu{cpu}/acpi_cppc/highest_perf")),
    }
}

/// Which CPU is of which sort.
struct Kinds {
    performance: CpuSet,
    efficiency: CpuSet,
    capacities: BTreeMap<u32, u32>,
}

impl Kinds {
    fn read(root: &Root, online: &CpuSet) -> Result<Self, TopologyError> {
        let set = |name: &str| list(root, &format!("sys/devices/{name}/cpus"));
        let mut capacities = BTreeMap::new();
        for cpu in online.iter() {
            if let Some(capacity) = number(root, &format!("{CPUS}/cpu{cpu}/cpu_capacity"))? {
                capacities.insert(cpu, capacity);
            }
        }
        // Alike, capacities say nothing.
        if capacities.values().min() == capacities.values().max() {
            capacities.clear();
        }
        Ok(Kinds {
            performance: set("cpu_core")?.unwrap_or_default(),
            efficiency: set("cpu_atom")?.unwrap_or_default(),
            capacities,
        })
    }

    /// Intel's own word goes before capacities, which its preferred cores make differ within one sort.
    fn of(&self, cpu: u32) -> CoreKind {
        if self.performance.contains(cpu) {
            CoreKind::Performance
        } else if self.efficiency.contains(cpu) {
            CoreKind::Efficiency
        } else if let Some(capacity) = self.capacities.get(&cpu) {
            CoreKind::Capacity(*capacity)
        } else {
            CoreKind::Uniform
        }
    }
}
