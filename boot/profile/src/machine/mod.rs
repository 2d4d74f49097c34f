//! The machine file: which CPUs a host gives to measuring, and what else of it is particular.

mod consistency;
mod file;
mod import;
pub(crate) mod keys;
mod mistake;
mod raw;
mod render;
mod shell;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use file::MachineFile;
pub use import::{Imported, import};
pub use mistake::{Mistake, Mistakes};
pub use render::{Reasons, render};
use serde::Serialize;

use crate::cpus::CpuSet;
use crate::profile::Profile;

/// A machine as its file describes it. Masks are derived from the sets, never written down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// Which CPU does what.
    pub cpus: Cpus,
    /// A boot entry's kernel is cloned when its name or path contains this; empty matches each.
    pub kernel_entry_match: String,
    /// Units that the profiles mask on the kernel command line.
    pub masked_units: Vec<String>,
    /// Units that disturb when they run, reported by Check.
    pub noisy_units: Vec<String>,
    /// The canary's floor is the available parallelism divided by this.
    pub canary_divisor: u32,
    /// Boost and SMT of each profile.
    pub profiles: BTreeMap<Profile, Switches>,
}

/// `[cpus]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cpus {
    /// The CPUs that are measured on: one L3, one core type, one NUMA node.
    pub bench: CpuSet,
    /// All else that is online in an isolating profile.
    pub housekeeping: CpuSet,
    /// The one that single-core measures on; in `bench`.
    pub single_core: u32,
    /// Housekeeping CPUs that multi-core takes offline; never cpu0.
    pub parked: CpuSet,
    /// What is online after a boot into an isolating profile, before anything is parked.
    pub expected_online: CpuSet,
}

/// `[profiles.NAME]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Switches {
    /// Whether the CPUs may exceed their base clock.
    pub boost: bool,
    /// Whether the second threads of the cores are online.
    pub smt: bool,
}

impl Switches {
    /// What the profile has when the file says nothing.
    pub fn default_of(profile: Profile) -> Self {
        match profile {
            Profile::SingleCore => Switches {
                boost: true,
                smt: false,
            },
            Profile::MultiCore => Switches {
                boost: false,
                smt: false,
            },
            Profile::Unlimited => Switches {
                boost: true,
                smt: true,
            },
        }
    }
}

impl Machine {
    /// Boost and SMT of a profile.
    pub fn switches(&self, profile: Profile) -> Switches {
        self.profiles
            .get(&profile)
            .copied()
            .unwrap_or_else(|| Switches::default_of(profile))
    }
}
