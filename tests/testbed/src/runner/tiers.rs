//! The sources of guests.

use anyhow::Result;

use crate::container::ContainerSource;
use crate::guest::GuestSource;
use crate::host::packages;
use crate::images;
use crate::machine::{Hardware, Machines};
use crate::payload::Payloads;

/// Where a guest runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum GuestTier {
    /// systemd-nspawn: starts in a second, shares the host's kernel.
    Container,
    /// QEMU: quotas and weights are enforced, everything else is slower.
    Machine,
}

/// How many containers run at once: scenarios mostly wait, but two that compute need a CPU each.
pub fn parallel_containers() -> usize {
    std::thread::available_parallelism().map_or(1, |cpus| cpus.get().min(2))
}

/// Machines; they exist with trixie only.
pub fn machine(payloads: &Payloads) -> Result<Machines> {
    packages::require(&[packages::MACHINE, images::packages()])?;
    let tree = images::ensure("trixie-machine")?;
    let payload = payloads.for_tree(&tree)?;
    Machines::open(&images::machines()?, &tree, Hardware::default(), payload)
}

/// Guests of any tier with trixie.
pub fn trixie(tier: GuestTier, payloads: &Payloads) -> Result<Box<dyn GuestSource>> {
    Ok(match tier {
        GuestTier::Container => Box::new(ContainerSource::new("trixie", payloads)?),
        GuestTier::Machine => Box::new(machine(payloads)?),
    })
}
