//! The container tier: a Debian root tree booted by systemd-nspawn, in about a second.
//!
//! Each guest is an overlay over the cached image with its writable half in memory, lives in a cgroup of its own and
//! has no network. /sys and /proc/sys of the host are read-only in it (nspawn's default).

mod cgroup;
pub mod enter;
pub mod launch;
mod notify;
#[cfg(all(test, feature = "container-tests"))]
mod tests;

use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::guest::{Guest, GuestSource, Payload};
use crate::host::{self, packages};
use crate::images;
use crate::payload::Payloads;
use crate::process::{self, Ended, shell_status};
use cgroup::Cgroup;
use launch::Launch;
use notify::NotifySocket;

/// The suites that we boot: systemd 252, 257 and Debian's current unstable.
pub const SUITES: &[&str] = &["bookworm", "trixie", "sid"];

/// A boot takes 0.6 s when the host is idle.
const BOOT: Duration = Duration::from_secs(60);

/// An orderly end takes 0.2 s, unless a service has to be killed.
const SHUTDOWN: Duration = Duration::from_secs(100);

/// Numbers the containers of this process.
static SERIAL: AtomicU32 = AtomicU32::new(0);

/// Boots containers of one suite.
#[derive(Debug, Clone)]
pub struct ContainerSource {
    name: String,
    suite: String,
    image: PathBuf,
    scratch: PathBuf,
    payload: Payload,
}

impl ContainerSource {
    /// Installs what the host lacks and builds the suite's image unless it is cached.
    pub fn new(suite: &str, payloads: &Payloads) -> Result<Self> {
        if !host::is_root() {
            bail!("the container tier needs root");
        }
        packages::require(&[packages::CONTAINER, images::packages()])?;
        let image = images::ensure(suite)?;
        let scratch = images::cache()?.join(".scratch");
        std::fs::create_dir_all(&scratch)
            .with_context(|| format!("cannot create {}", scratch.display()))?;
        let payload = payloads.for_tree(&image)?.clone();
        Ok(Self {
            name: format!("container/{suite}"),
            suite: suite.to_owned(),
            image,
            scratch,
            payload,
        })
    }

    /// As [`GuestSource::fresh`], with the concrete type.
    pub fn boot(&self) -> Result<Container> {
        Container::start(self).with_context(|| format!("cannot boot {}", self.name))
    }
}

impl GuestSource for ContainerSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn fresh(&mut self) -> Result<Box<dyn Guest + '_>> {
        Ok(Box::new(self.boot()?))
    }
}

/// Where the container's processes live on the host.
enum Home {
    /// Below the mount of cgroup2, on a host without systemd. Held for its drop.
    Cgroup(#[allow(dead_code, reason = "held for its drop")] Cgroup),
    /// A delegated scope of the host's systemd, which alone may write there.
    Scope(String),
}

/// A running container. Dropping it kills it.
pub struct Container {
    name: String,
    nspawn: Child,
    /// The guest's init, as the host numbers it.
    leader: u32,
    commands: u32,
    home: Home,
    /// Name of the machine.
    machine: String,
    console: File,
}

impl Container {
    fn start(source: &ContainerSource) -> Result<Self> {
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let id = format!("{}-{}-{serial}", source.suite, std::process::id());
        let mut launch = Launch {
            image: source.image.clone(),
            payload: source.payload.dir().to_owned(),
            machine: format!("wg-{id}"),
            cgroup: None,
            scratch: source.scratch.clone(),
        };
        let program = launch::program();
        let (home, mut command) = if host::has_systemd() {
            let unit = format!("workload-guard-test-{id}.scope");
            let mut command = Command::new("systemd-run");
            command
                .args(["--quiet", "--scope", "--collect", "--property=Delegate=yes"])
                .arg(format!("--unit={unit}"))
                .arg("--")
                .arg(program);
            (Home::Scope(unit), command)
        } else {
            let cgroup = Cgroup::create(serial)?;
            launch.cgroup = Some(cgroup.path().to_owned());
            (Home::Cgroup(cgroup), Command::new(program))
        };
        let notify = NotifySocket::bind()?;
        let console = tempfile::tempfile().context("cannot create a temporary file")?;
        command
            .args(launch.arguments())
            .env("NOTIFY_SOCKET", notify.path())
            .stdin(std::process::Stdio::null())
            .stdout(console.try_clone()?)
            .stderr(console.try_clone()?)
            // An interrupt at our terminal is ours to handle.
            .process_group(0);
        let nspawn = command.spawn().context("cannot start a process")?;
        let mut container = Self {
            name: source.name.clone(),
            nspawn,
            leader: 0,
            commands: 0,
            home,
            machine: launch.machine,
            console,
        };
        // From here on an error drops the container, which ends it.
        container
            .wait_booted(&notify)
            .with_context(|| format!("its console says:\n{}", container.console_tail()))?;
        Ok(container)
    }

    fn wait_booted(&mut self, notify: &NotifySocket) -> Result<()> {
        let deadline = Instant::now() + BOOT;
        let nspawn = &mut self.nspawn;
        self.leader = notify.wait_ready(deadline, &mut || match nspawn.try_wait()? {
            Some(status) => bail!("systemd-nspawn ended at once ({status})"),
            None => Ok(()),
        })?;
        let state = self.ask(&["systemctl", "is-system-running", "--wait"])?;
        if state.trim() != "running" {
            let failed = self.ask(&["systemctl", "--failed", "--no-legend", "--plain"])?;
            bail!("its system manager is {}: {failed}", state.trim());
        }
        // They start by lingering; a start job that joins theirs ends when they are ready.
        self.ask(&[
            "systemctl",
            "start",
            "user@1000.service",
            "user@1001.service",
        ])?;
        Ok(())
    }

    /// The output of a short command that is not part of any test; runs outside of the guest's units.
    fn ask(&mut self, argv: &[&str]) -> Result<String> {
        let mut output = Vec::new();
        let mut command = enter::nsenter(self.leader);
        command.args(argv);
        match process::stream(command, BOOT, &mut |bytes| output.extend_from_slice(bytes))? {
            Ended::Exited(_) => Ok(String::from_utf8_lossy(&output).into_owned()),
            Ended::TimedOut => bail!(
                "{} in {} did not end within {} s",
                argv.join(" "),
                self.name,
                BOOT.as_secs()
            ),
        }
    }

    /// Runs a command with our own stdio: for a person. As root, or as `dev` in its user manager.
    pub fn attach(&mut self, argv: &[&str], dev: bool, stdio: enter::Stdio) -> Result<i32> {
        let mut command = enter::nsenter(self.leader);
        if dev {
            command.args(enter::as_dev(argv, stdio));
        } else {
            let unit = self.next_unit();
            command.args(enter::as_root(argv, &unit, stdio));
        }
        let status = command.status().context("cannot start nsenter")?;
        Ok(shell_status(status))
    }

    fn next_unit(&mut self) -> String {
        self.commands += 1;
        format!("testbed-{}.service", self.commands)
    }

    /// The last lines of the console: why a boot failed.
    fn console_tail(&mut self) -> String {
        let mut bytes = Vec::new();
        let read = self
            .console
            .rewind()
            .and_then(|()| self.console.read_to_end(&mut bytes));
        match read {
            Ok(_) => last_lines(&String::from_utf8_lossy(&bytes), 40),
            Err(error) => format!("(unreadable: {error})"),
        }
    }

    fn end_in_order(&mut self) -> Result<ExitStatus> {
        let pid = Pid::from_raw(i32::try_from(self.nspawn.id()).expect("a PID fits in i32"));
        // SIGTERM, never the kill signal itself: nspawn would die of it and leave the container behind.
        kill(pid, Signal::SIGTERM).context("cannot signal systemd-nspawn")?;
        let deadline = Instant::now() + SHUTDOWN;
        let mut pause = Duration::from_millis(5);
        loop {
            if let Some(status) = self.nspawn.try_wait()? {
                return Ok(status);
            }
            if Instant::now() > deadline {
                bail!(
                    "{} did not power off within {} s",
                    self.name,
                    SHUTDOWN.as_secs()
                );
            }
            // std has no wait with a deadline: ask again, ever less often.
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(100));
        }
    }
}

impl Guest for Container {
    fn name(&self) -> &str {
        &self.name
    }

    fn run(
        &mut self,
        argv: &[&str],
        timeout: Duration,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<i32> {
        let unit = self.next_unit();
        let mut command = enter::nsenter(self.leader);
        command.args(enter::as_root(argv, &unit, enter::Stdio::Pipe));
        match process::stream(command, timeout, sink)? {
            Ended::Exited(status) => Ok(shell_status(status)),
            Ended::TimedOut => {
                // What was killed is only our end of it.
                self.ask(&["systemctl", "kill", "--signal=SIGKILL", &unit])?;
                // Returns when the unit has ended, or at once when it is gone already.
                self.ask(&["systemctl", "stop", &unit])?;
                Err(anyhow!(
                    "{} did not end within {} s in {}",
                    argv.join(" "),
                    timeout.as_secs(),
                    self.name
                ))
            }
        }
    }

    fn journal(&mut self) -> Result<String> {
        let journal = self.ask(&[
            "journalctl",
            "--boot",
            "--no-pager",
            "--quiet",
            "--output=short-monotonic",
        ])?;
        // Cores go where the host's kernel sends them; the guest's own list exists when the host has no handler.
        let cores = self.ask(&[
            "coredumpctl",
            "--no-pager",
            "--no-legend",
            "--quiet",
            "list",
        ])?;
        Ok(format!("{journal}{cores}"))
    }

    fn shutdown(mut self: Box<Self>) -> Result<()> {
        let status = self.end_in_order()?;
        if !status.success() {
            let console = self.console_tail();
            bail!("{} ended badly ({status}): {console}", self.name);
        }
        Ok(())
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        if let Home::Scope(unit) = &self.home {
            // Fails when the scope has ended already.
            let _ = Command::new("systemctl")
                .args(["--quiet", "kill", "--signal=SIGKILL", unit])
                .stderr(std::process::Stdio::null())
                .status();
        }
        // The rest of the tree dies with the cgroup, when `home` is dropped.
        let _ = self.nspawn.kill();
        let _ = self.nspawn.wait();
        // nspawn leaves this behind, an empty folder of the host's, however it ends.
        let _ = std::fs::remove_dir(Path::new("/run/systemd/nspawn/propagate").join(&self.machine));
    }
}

fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

#[cfg(test)]
mod unit_tests {
    use super::*;

    #[test]
    fn the_last_lines_of_short_and_long_texts() {
        assert_eq!(last_lines("a\nb\n", 5), "a\nb");
        assert_eq!(last_lines("a\nb\nc", 2), "b\nc");
    }
}
