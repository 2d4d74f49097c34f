//! The sources of guests.

use anyhow::Result;

use crate::container::ContainerSource;
use crate::guest::GuestSource;
use crate::host::packages;
use crate::images;
use crate::machine::{Firmware, Hardware, Machines};
use crate::payload::Payloads;

/// Where a guest runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum GuestTier {
    /// systemd-nspawn: starts in a second, shares the host's kernel.
    Container,
    /// QEMU: quotas and weights are enforced, everything else is slower.
    Machine,
    /// QEMU with UEFI, systemd-boot and an EFI system partition.
    Loader,
}

/// How many containers run at once: scenarios mostly wait, but two that compute need a CPU each.
pub fn parallel_containers() -> usize {
    std::thread::available_parallelism().map_or(1, |cpus| cpus.get().min(2))
}

/// Machines; they exist with trixie only.
pub fn machine(payloads: &Payloads) -> Result<Machines> {
    packages::require(&[packages::MACHINE, images::packages()])?;
    machines(payloads, Firmware::Kernel)
}

/// Machines that boot by themselves, through UEFI and a boot loader.
pub fn loader(payloads: &Payloads) -> Result<Machines> {
    packages::require(&[packages::MACHINE, packages::LOADER, images::packages()])?;
    machines(payloads, Firmware::Uefi)
}

fn machines(payloads: &Payloads, firmware: Firmware) -> Result<Machines> {
    let tree = images::ensure("trixie-machine")?;
    let payload = payloads.for_tree(&tree)?;
    let hardware = Hardware {
        firmware,
        ..Hardware::default()
    };
    Machines::open(&images::machines()?, &tree, hardware, payload)
}

/// Guests of any tier with trixie.
pub fn trixie(tier: GuestTier, payloads: &Payloads) -> Result<Box<dyn GuestSource>> {
    Ok(match tier {
        GuestTier::Container => Box::new(ContainerSource::new("trixie", payloads)?),
        GuestTier::Machine => Box::new(machine(payloads)?),
        GuestTier::Loader => Box::new(loader(payloads)?),
    })
}
