//! How the CPUs of a machine lie to each other.

mod suits;

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::cpus::CpuSet;

/// A machine's CPUs. Only those that are online are known in detail: the kernel takes the rest out of
/// its topology.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Topology {
    /// The CPU's name, as `/proc/cpuinfo` has it; empty where it has none (many Arm parts).
    pub model: String,
    /// The CPUs that the machine has, running or not.
    pub present: CpuSet,
    /// Those that run.
    pub online: CpuSet,
    /// Those that `isolcpus=domain` takes out of load balancing in this boot.
    pub isolated: CpuSet,
    /// `smt/control`, such as `on` or `notsupported`; `None` where the kernel has no such file.
    pub smt_control: Option<String>,
    /// Each CPU that is online.
    pub cpus: BTreeMap<u32, Cpu>,
}

/// One logical CPU that is online.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cpu {
    /// The socket.
    pub package: u32,
    /// The CPUs of its core, itself included.
    pub siblings: CpuSet,
    /// Its last-level cache; `None` where the machine tells none, as many virtual ones.
    pub l3: Option<L3>,
    /// Its NUMA node; `None` on a kernel without NUMA.
    pub node: Option<u32>,
    /// What sort of core it is.
    pub kind: CoreKind,
    /// How fast the firmware thinks it can be, in its own unit; `None` where it says nothing.
    pub preference: Option<u32>,
    /// Numbered hardware interrupts that it took since the boot.
    pub interrupts: u64,
}

/// A level 3 cache.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct L3 {
    /// The CPUs that share it, of those online.
    pub cpus: CpuSet,
    /// Its size, in KiB.
    pub kib: u64,
}

/// Sorts of cores, the slowest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CoreKind {
    /// Relative capacity, of 1024 for the fastest (`cpu_capacity`).
    Capacity(u32),
    /// Intel's E-cores (`/sys/devices/cpu_atom`).
    Efficiency,
    /// Intel's P-cores (`/sys/devices/cpu_core`).
    Performance,
    /// All cores are alike.
    #[default]
    Uniform,
}

impl fmt::Display for CoreKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CoreKind::Capacity(capacity) => write!(f, "cores of capacity {capacity}"),
            CoreKind::Efficiency => f.write_str("E-cores"),
            CoreKind::Performance => f.write_str("P-cores"),
            CoreKind::Uniform => f.write_str("cores"),
        }
    }
}

impl Topology {
    /// The first thread of each core that is online: what `nosmt` leaves.
    pub fn primaries(&self) -> CpuSet {
        self.cpus
            .iter()
            .filter(|(cpu, facts)| facts.siblings.first().is_none_or(|first| first == **cpu))
            .map(|(cpu, _)| *cpu)
            .collect()
    }

    /// Whether some core has two threads online.
    pub fn has_siblings(&self) -> bool {
        self.cpus.values().any(|cpu| cpu.siblings.len() > 1)
    }
}
