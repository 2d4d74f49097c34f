//! The machine tier: Debian's kernel and systemd in QEMU, where quotas and weights are real.
//!
//! The machine boots once, which takes a minute under software emulation, and is saved when its user manager runs. Each
//! scenario gets it restored from there, in two seconds, with a disk layer of its own that ends with it. The product
//! comes on a second disk, so that a new build does not cost a boot.
//!
//! From the pure to the effects: `key` and `command` and `protocol` decide; `disk`, `emulator`, `qmp`, `qemu`, `channel` and `probe`
//! each do one thing; `snapshot` boots and saves, `guest` restores.

mod channel;
mod command;
mod disk;
mod emulator;
mod guest;
mod key;
mod probe;
mod protocol;
mod qemu;
mod qmp;
mod snapshot;
#[cfg(all(test, feature = "machine-tests"))]
mod tests;

pub use command::Hardware;
pub use guest::Machines;
