//! What is known of this machine: its file, the boot, the topology.

use bench_profile::machine::MachineFile;
use bench_profile::profile::Profile;
use bench_profile::topology::Topology;
use bench_system::machine::{self, LoadError};
use bench_system::root::Root;
use bench_system::{boot, topology};

use crate::error::CliError;

/// The profile of this boot.
pub fn booted(root: &Root) -> Result<Option<Profile>, CliError> {
    boot::profile(root).map_err(failed)
}

/// The machine file; none where nobody wrote one.
pub fn file(root: &Root) -> Result<Option<MachineFile>, CliError> {
    match machine::load(root) {
        Ok(file) => Ok(Some(file)),
        Err(LoadError::Missing(_)) => Ok(None),
        Err(error) => Err(failed(error)),
    }
}

/// The machine file, which has to be there.
pub fn required(root: &Root) -> Result<MachineFile, CliError> {
    machine::load(root).map_err(failed)
}

/// How the CPUs lie to each other; none without sysfs.
pub fn topology(root: &Root) -> Option<Topology> {
    topology::read(root).ok()
}

/// An error in its own words.
pub fn failed(error: impl std::fmt::Display) -> CliError {
    CliError::Failed(error.to_string())
}
