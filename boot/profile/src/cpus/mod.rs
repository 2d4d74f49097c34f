//! Sets of CPUs, in the two notations of the kernel: lists (`0-7,16`) and masks (`ff00`).

mod list;
mod mask;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// One more than the highest CPU number that any kernel can have (NR_CPUS with MAXSMP on x86).
pub const LIMIT: u32 = 8192;

/// A set of logical CPUs, by their kernel numbers.
///
/// Written (and serialized) as the kernel's list notation: `0-7,16`, and the empty text for no CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuSet {
    cpus: BTreeSet<u32>,
}

impl CpuSet {
    /// How many CPUs are in it.
    pub fn len(&self) -> usize {
        self.cpus.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.cpus.is_empty()
    }

    /// Whether it holds `cpu`.
    pub fn contains(&self, cpu: u32) -> bool {
        self.cpus.contains(&cpu)
    }

    /// The lowest one.
    pub fn first(&self) -> Option<u32> {
        self.cpus.first().copied()
    }

    /// Its CPUs, the lowest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = u32> + '_ {
        self.cpus.iter().copied()
    }

    /// Those in both.
    pub fn and(&self, other: &CpuSet) -> CpuSet {
        self.cpus.intersection(&other.cpus).copied().collect()
    }

    /// Those in either.
    pub fn or(&self, other: &CpuSet) -> CpuSet {
        self.cpus.union(&other.cpus).copied().collect()
    }

    /// Those that `other` does not hold.
    pub fn without(&self, other: &CpuSet) -> CpuSet {
        self.cpus.difference(&other.cpus).copied().collect()
    }

    /// Whether `other` holds each of them.
    pub fn is_subset(&self, other: &CpuSet) -> bool {
        self.cpus.is_subset(&other.cpus)
    }
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> Self {
        CpuSet {
            cpus: cpus.into_iter().collect(),
        }
    }
}

impl From<u32> for CpuSet {
    fn from(cpu: u32) -> Self {
        CpuSet::from_iter([cpu])
    }
}

/// A text that is no CPU list or mask.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadCpus {
    /// Not a number, or a range that runs backwards.
    #[error("{part:?} is no CPU and no range of CPUs such as 0-7")]
    Part {
        /// The part between two commas.
        part: String,
    },
    /// A number that no kernel has.
    #[error("CPU {0} does not exist on any kernel: the highest number is 8191")]
    TooHigh(u64),
    /// Not up to eight hexadecimal digits between two commas.
    #[error("{group:?} is no part of a CPU mask: up to eight hexadecimal digits between commas")]
    Group {
        /// The part between two commas.
        group: String,
    },
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        list::format(self, f)
    }
}

impl Serialize for CpuSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CpuSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
