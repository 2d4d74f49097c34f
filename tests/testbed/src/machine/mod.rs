//! The machine tier: Debian's kernel and systemd in QEMU, where quotas and weights are real.
//!
//! The machine boots once, which takes a minute under software emulation, and is saved when its user manager runs. Each
//! scenario gets it restored from there, in two seconds, with a disk layer of its own that ends with it. The product
//! comes on a second disk, so that a new build does not cost a boot.
//!
//! A machine can also start as a PC does, by UEFI and a boot loader, and reboot: see [`Firmware`].
//!
//! From the pure to the effects: `key`, `command` and `protocol` decide; `disk`, `esp`, `emulator`, `qmp`, `qemu`,
//! `channel`, `reboot` and `probe` each do one thing; `snapshot` boots and saves, `guest` restores.

mod channel;
mod command;
mod disk;
mod emulator;
mod esp;
mod firmware;
mod guest;
mod key;
mod probe;
mod protocol;
mod qemu;
mod qmp;
mod reboot;
mod snapshot;
#[cfg(all(test, feature = "machine-tests"))]
mod tests;

pub use command::Hardware;
pub use firmware::Firmware;
pub use guest::Machines;
