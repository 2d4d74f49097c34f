//! A restored machine as a [`Guest`].

use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};

use super::command::Hardware;
use super::disk::PayloadDisk;
use super::emulator::Emulator;
use super::firmware::Firmware;
use super::qemu::Qemu;
use super::reboot;
use super::snapshot::{BOOT, Snapshot};
use crate::guest::{Guest, GuestSource, PAYLOAD_IN_GUEST, Payload};

/// For what is done in the guest at its restore, measured at half a second.
const READY: Duration = Duration::from_secs(60);

/// For a guest to come down: systemd gives each service 90 seconds.
const DOWN: Duration = Duration::from_secs(240);

/// For QEMU to end.
const QUIT: Duration = Duration::from_secs(30);

/// For printing the whole journal.
const JOURNAL: Duration = Duration::from_secs(120);

/// Run in the guest after its restore or a reboot, with the host's time (`$1`, seconds since 1970) and the mount point (`$2`).
///
/// udev has read from the payload's disk when the machine booted: the guest still has those pages of a disk that was
/// empty then, and is made to forget them.
const RESUME: &str = r#"
set -eu
date --set="@$1" >/dev/null
blockdev --flushbufs /dev/vdb
mountpoint --quiet "$2" || mount -t ext4 -o ro /dev/vdb "$2"
"#;

/// What a failure report needs from the guest.
const REPORT: &str = r#"
journalctl --no-pager --quiet --output=short-monotonic
if command -v coredumpctl >/dev/null; then coredumpctl --no-pager --no-legend --quiet list; fi
"#;

/// Restores machines with one payload.
#[derive(Debug)]
pub struct Machines {
    name: &'static str,
    snapshot: Snapshot,
    payload: PayloadDisk,
}

impl Machines {
    /// With the snapshot in `cache` of a machine whose root is `tree`; it is booted and saved now unless it is there.
    ///
    /// `payload` is copied now: what changes in it later is not seen.
    pub fn open(cache: &Path, tree: &Path, hardware: Hardware, payload: &Payload) -> Result<Self> {
        Ok(Self {
            name: match hardware.firmware {
                Firmware::Kernel => "machine/trixie",
                Firmware::Uefi => "loader/trixie",
            },
            payload: PayloadDisk::with(payload.dir())?,
            snapshot: Snapshot::ensure(cache, tree, hardware, &Emulator::ensure()?)?,
        })
    }

    /// As [`GuestSource::fresh`], with the type known.
    pub fn restore(&self) -> Result<Machine> {
        let mut machine = Machine {
            name: self.name,
            qemu: self.snapshot.restore(&self.payload)?,
        };
        machine
            .resume(READY)
            .context("making a restored machine ready")?;
        Ok(machine)
    }
}

impl GuestSource for Machines {
    fn name(&self) -> &str {
        self.name
    }

    fn fresh(&mut self) -> Result<Box<dyn Guest + '_>> {
        Ok(Box::new(self.restore()?))
    }
}

/// A running machine.
#[derive(Debug)]
pub struct Machine {
    name: &'static str,
    qemu: Qemu,
}

impl Machine {
    fn resume(&mut self, patience: Duration) -> Result<()> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .context("the host's clock is before 1970")?;
        let now = format!("{:.3}", now.as_secs_f64());
        let argv = ["bash", "-c", RESUME, "resume", &now, PAYLOAD_IN_GUEST];
        let (status, output) = self.output(&argv, patience)?;
        if status != 0 {
            bail!("status {status}: {}", output.trim());
        }
        Ok(())
    }

    fn output(&mut self, argv: &[&str], timeout: Duration) -> Result<(i32, String)> {
        let mut output = Vec::new();
        let status = self.run(argv, timeout, &mut |bytes| output.extend_from_slice(bytes))?;
        Ok((status, String::from_utf8_lossy(&output).into_owned()))
    }
}

impl Guest for Machine {
    fn name(&self) -> &str {
        self.name
    }

    fn run(
        &mut self,
        argv: &[&str],
        timeout: Duration,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<i32> {
        self.qemu.agent.run(argv, timeout, sink)
    }

    fn run_to_reboot(
        &mut self,
        argv: &[&str],
        timeout: Duration,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<i32> {
        reboot::allow(&mut self.qemu)?;
        let status = self.run(argv, timeout, sink)?;
        if status != 0 {
            reboot::forbid(&mut self.qemu)?;
            return Ok(status);
        }
        reboot::wait(&mut self.qemu, Instant::now() + DOWN)?;
        self.resume(BOOT)
            .context("waiting for the machine after a reboot")?;
        Ok(status)
    }

    /// The console's end instead, when the guest does not answer any more.
    fn journal(&mut self) -> Result<String> {
        match self.output(&["bash", "-c", REPORT], JOURNAL) {
            Ok((_, journal)) => Ok(journal),
            Err(error) => Ok(format!(
                "(no journal: {error:#})\nThe end of the machine's console:\n{}",
                self.qemu.log_tail()
            )),
        }
    }

    /// Ends QEMU and not the guest's systemd: its disk is thrown away, so there is nothing to bring to an end.
    fn shutdown(self: Box<Self>) -> Result<()> {
        self.qemu.quit(Instant::now() + QUIT)
    }
}
