//! The sources of guests.

use anyhow::Result;

use crate::container::ContainerSource;
use crate::guest::{GuestSource, Payload};
use crate::host::packages;
use crate::images;
use crate::machine::{Hardware, Machines};

/// How many containers run at once: scenarios mostly wait, but two that compute need a CPU each.
pub fn parallel_containers() -> usize {
    std::thread::available_parallelism().map_or(1, |cpus| cpus.get().min(2))
}

/// Containers of a suite.
pub fn container(suite: &str, payload: &Payload) -> Result<ContainerSource> {
    ContainerSource::new(suite, payload)
}

/// Machines.
pub fn machine(payload: &Payload) -> Result<Box<dyn GuestSource>> {
    packages::require(&[packages::MACHINE])?;
    let tree = images::ensure("trixie-machine")?;
    let machines = Machines::open(&images::machines()?, &tree, Hardware::default(), payload)?;
    Ok(Box::new(machines))
}
