//! The calls that we make to logind (org.freedesktop.login1.Manager, org.freedesktop.login1(5)).

// The macros write undocumented items; that each member is documented is what tests/golden.rs checks.
#![allow(missing_docs)]

/// logind.
#[zbus::proxy(
    interface = "org.freedesktop.login1.Manager",
    default_service = "org.freedesktop.login1",
    default_path = "/org/freedesktop/login1",
    gen_blocking = false
)]
pub trait Login {
    /// Has the boot loader start this entry at the next boot alone; empty takes it back.
    fn set_reboot_to_boot_loader_entry(&self, boot_loader_entry: &str) -> zbus::Result<()>;

    /// Restarts the machine; whether a person may be asked.
    fn reboot(&self, interactive: bool) -> zbus::Result<()>;
}
