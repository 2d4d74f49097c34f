//! What every tier offers to the runner: a fresh guest with the product visible in it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};

/// Where every guest sees the [`Payload`], read-only.
pub const PAYLOAD_IN_GUEST: &str = "/opt/workload-guard";

/// A booted guest, whatever the tier. Dropping it ends it, at once and without a trace.
pub trait Guest {
    /// Tier and suite, for people: `container/trixie`, `machine/trixie`, `loader/trixie`.
    fn name(&self) -> &str;

    /// Runs `argv` as root in the guest and returns its exit status (128 + N when signal N ended it).
    ///
    /// Its stdout and stderr go to `sink` as they come. An error means that the status is not known: the
    /// guest died, or `timeout` passed (the command is then killed, its output so far has been delivered).
    fn run(&mut self, argv: &[&str], timeout: Duration, sink: &mut dyn FnMut(&[u8]))
    -> Result<i32>;

    /// As [`Guest::run`], of a command that reboots the guest as its last act; waits until the guest is up again.
    ///
    /// A status other than 0 means that it did not: then nothing is waited for.
    fn run_to_reboot(
        &mut self,
        argv: &[&str],
        timeout: Duration,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<i32> {
        let _ = (timeout, sink);
        bail!("{} cannot be rebooted, as {argv:?} does", self.name())
    }

    /// The guest's journal and list of coredumps since boot, for a failure report.
    fn journal(&mut self) -> Result<String>;

    /// Ends the guest in order; an error when it had to be killed.
    fn shutdown(self: Box<Self>) -> Result<()>;
}

/// Hands out guests of one tier and suite.
///
/// The machine tier boots once and restores a snapshot, the container tier boots each time; a caller sees
/// no difference but the time.
pub trait GuestSource: Send {
    /// As [`Guest::name`].
    fn name(&self) -> &str;

    /// A fresh guest, booted and ready: its system manager has finished its start jobs and the user manager of
    /// uid 1000 (`dev`) runs. Nothing that an earlier guest did is visible in it.
    fn fresh(&mut self) -> Result<Box<dyn Guest + '_>>;
}

/// A directory on the host with the product, as a guest sees it at [`PAYLOAD_IN_GUEST`]:
/// `workload-guardd`, `workload-guard`, `bench-prepd` (release builds), `guard-scenarios`, `bench-scenarios`,
/// `guard-benchmarks`, `xtask`,
/// `units/`, `config/`, `polkit/`, `docs/`, README.md, CHANGELOG.md, LICENSE.
#[derive(Debug, Clone)]
pub struct Payload {
    dir: PathBuf,
}

impl Payload {
    /// A payload that is already laid out in `dir`.
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// The directory on the host.
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}
