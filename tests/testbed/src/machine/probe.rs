//! Whether KVM works here. A /dev/kvm may exist and not be able to run a kernel (some nested and emulated hosts), so a
//! kernel is booted with it.

use std::fs::{self, OpenOptions};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::command::{self, Accelerator, Hardware};
use super::disk;
use super::emulator::Emulator;
use super::key::Key;
use super::qemu::Qemu;
use crate::progress;

/// A kernel takes two seconds to get to its panic with KVM, ten under software emulation on a busy host.
const DEADLINE: Duration = Duration::from_secs(40);

/// The fastest accelerator that works, tried with the kernel of the image in `tree`; the answer is kept in `cache` until
/// the host boots again or has another QEMU.
pub fn accelerator(
    cache: &Path,
    tree: &Path,
    emulator: &Emulator,
    qemu_version: &str,
) -> Result<Accelerator> {
    if OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/kvm")
        .is_err()
    {
        return Ok(Accelerator::Tcg);
    }
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .context("cannot read the host's boot id")?;
    let note = cache.join(format!(
        "kvm-{}",
        Key::new().with(boot).with(qemu_version).name()
    ));
    match fs::read_to_string(&note).as_deref() {
        Ok("works") => return Ok(Accelerator::Kvm),
        Ok("fails") => return Ok(Accelerator::Tcg),
        _ => {}
    }
    let kernel = tempfile::tempdir().context("cannot create a temporary folder")?;
    disk::copy_kernel(tree, kernel.path())?;
    let tried = boots(emulator, kernel.path(), Accelerator::Kvm);
    let (answer, accelerator) = match &tried {
        Ok(()) => ("works", Accelerator::Kvm),
        Err(_) => ("fails", Accelerator::Tcg),
    };
    if let Err(error) = tried {
        let reason = format!("{error:#}");
        let reason = reason.lines().next().unwrap_or_default();
        progress::say(&format!(
            "machine: /dev/kvm is there but does not boot a kernel ({reason}); using {accelerator}"
        ));
    }
    fs::write(&note, answer).with_context(|| format!("cannot write {}", note.display()))?;
    Ok(accelerator)
}

/// Boots the kernel in the folder `kernel` up to where it has nothing to go on with.
fn boots(emulator: &Emulator, kernel: &Path, accelerator: Accelerator) -> Result<()> {
    let mut qemu = Qemu::start(
        emulator,
        &command::kernel_only(Hardware::default(), accelerator),
        kernel,
    )?;
    let panicked = qemu
        .qmp
        .wait(Instant::now() + DEADLINE, |event, data| match event {
            "SHUTDOWN" => Some(data["reason"] == "guest-reset"),
            // KVM gave up on an instruction, say.
            "STOP" => Some(false),
            _ => None,
        })
        .context("the kernel did not get through its boot")?;
    if !panicked {
        bail!("the kernel was stopped in its boot");
    }
    Ok(())
}
