//! A reset of the machine that is wanted. Any other one, as after a panic, ends QEMU, so that nobody waits for it.

use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::json;

use super::qemu::Qemu;

/// Has QEMU reset the machine when its guest reboots.
pub fn allow(qemu: &mut Qemu) -> Result<()> {
    action(qemu, "reset")
}

/// Has QEMU end when its guest reboots, as it does from the start.
pub fn forbid(qemu: &mut Qemu) -> Result<()> {
    action(qemu, "shutdown")
}

/// Waits until the guest has reset the machine, which [`allow`] has allowed; a second time it may not.
pub fn wait(qemu: &mut Qemu, deadline: Instant) -> Result<()> {
    qemu.qmp
        .wait(deadline, |event, data| {
            (event == "RESET" && data["guest"] == true).then_some(())
        })
        .with_context(|| {
            format!(
                "the machine did not reboot; the end of its console:\n{}",
                qemu.log_tail()
            )
        })?;
    forbid(qemu)
}

fn action(qemu: &mut Qemu, reboot: &str) -> Result<()> {
    qemu.qmp
        .execute("set-action", json!({ "reboot": reboot }))
        .map(drop)
}
