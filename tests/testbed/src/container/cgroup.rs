//! A cgroup of a container's own on a host that systemd does not run.
//!
//! Two containers that start from one cgroup share the payload tree that nspawn makes below it, and corrupt each
//! other. Under systemd a transient scope does the same job, and only systemd may write there.

use std::fs::{self, File};
use std::io::{Read, Seek};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

const PREFIX: &str = "workload-guard-test-";

/// How long killed processes may take to be gone. They are dead at once, unless they sit in the kernel.
const DEATH: Duration = Duration::from_secs(20);

/// A cgroup2 cgroup; dropping it kills what is in it and removes it.
#[derive(Debug)]
pub struct Cgroup {
    path: PathBuf,
}

impl Cgroup {
    /// Creates one directly below the mount of cgroup2, and removes those that a killed run has left.
    pub fn create(serial: u32) -> Result<Self> {
        let mounts =
            fs::read_to_string("/proc/self/mounts").context("cannot read /proc/self/mounts")?;
        let Some(root) = cgroup2_mount(&mounts) else {
            bail!("no cgroup2 file system is mounted: /proc/self/mounts has none")
        };
        remove_stale(&root);
        let path = root.join(format!("{PREFIX}{}-{serial}", std::process::id()));
        fs::create_dir(&path)
            .with_context(|| format!("cannot create the cgroup {}", path.display()))?;
        Ok(Self { path })
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Kills every process in it (cgroup.kill, Linux 5.14), waits for their end and removes it.
    fn destroy(&self) -> Result<()> {
        let kill = self.path.join("cgroup.kill");
        fs::write(&kill, "1").with_context(|| format!("cannot write {}", kill.display()))?;
        self.wait_empty()?;
        remove_all(&self.path)
            .with_context(|| format!("cannot remove the cgroup {}", self.path.display()))
    }

    /// Waits for `populated 0`; the kernel signals a change of cgroup.events with POLLPRI.
    fn wait_empty(&self) -> Result<()> {
        let deadline = Instant::now() + DEATH;
        let path = self.path.join("cgroup.events");
        let mut events =
            File::open(&path).with_context(|| format!("cannot open {}", path.display()))?;
        loop {
            let mut text = String::new();
            events.rewind()?;
            events.read_to_string(&mut text)?;
            if text.lines().any(|line| line == "populated 0") {
                return Ok(());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                bail!("processes in {} survive SIGKILL", self.path.display());
            }
            let mut fds = [PollFd::new(events.as_fd(), PollFlags::POLLPRI)];
            let left = PollTimeout::try_from(left.as_millis()).unwrap_or(PollTimeout::MAX);
            match poll(&mut fds, left) {
                Ok(_) | Err(nix::errno::Errno::EINTR) => {}
                Err(error) => return Err(error).context("cannot poll cgroup.events"),
            }
        }
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        if let Err(error) = self.destroy() {
            crate::progress::say(&format!("warning: {error:#}"));
        }
    }
}

/// Where cgroup2 is mounted, from the text of /proc/self/mounts: alone or, in the hybrid layout, beside version 1.
fn cgroup2_mount(mounts: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let target = fields.next()?;
        (fields.next()? == "cgroup2").then(|| PathBuf::from(target))
    })
}

/// Removes the empty cgroups of runs that no longer live. One that is still in use cannot be removed.
fn remove_stale(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let stale = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX)?.split('-').next())
            .is_some_and(|pid| !Path::new("/proc").join(pid).exists());
        if stale {
            // It may have gone meanwhile, or still end; the next run tries again.
            let _ = remove_all(&entry.path());
        }
    }
}

/// Removes a cgroup and those below it; only folders can be removed, and only empty ones.
fn remove_all(path: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(path)?.flatten() {
        if entry.file_type()?.is_dir() {
            remove_all(&entry.path())?;
        }
    }
    fs::remove_dir(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cgroup2_is_found_alone_and_in_the_hybrid_layout() {
        let unified = "proc /proc proc rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0\n";
        assert_eq!(cgroup2_mount(unified), Some("/sys/fs/cgroup".into()));
        let hybrid = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        assert_eq!(cgroup2_mount(hybrid), Some("/sys/fs/cgroup/unified".into()));
        assert_eq!(
            cgroup2_mount("cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n"),
            None
        );
    }
}
