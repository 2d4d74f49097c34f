//! The inner half of a container's start, run as `xtask container-launch` in a process of its own: it becomes
//! systemd-nspawn. A process of its own can enter the container's cgroup and a mount namespace without touching
//! the runner's, and everything that it mounts vanishes with it, however it ends.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl;
use nix::sys::signal::Signal;

use crate::guest::PAYLOAD_IN_GUEST;

/// What the outer half passes on.
#[derive(Debug, Clone, clap::Args)]
pub struct Launch {
    /// Root tree; it is not written to.
    #[arg(long)]
    pub image: PathBuf,
    /// Folder that the guest sees at /opt/workload-guard.
    #[arg(long)]
    pub payload: PathBuf,
    /// Name of the machine.
    #[arg(long)]
    pub machine: String,
    /// Cgroup to enter; without it we are in one of our own already.
    #[arg(long)]
    pub cgroup: Option<PathBuf>,
    /// Empty folder that serves as mount point. Many can share it: each mounts in a namespace of its own.
    #[arg(long)]
    pub scratch: PathBuf,
}

impl Launch {
    /// The arguments that [`run`] parses back.
    pub fn arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec!["container-launch".into()];
        let mut option = |name: &str, value: &Path| arguments.extend([name.into(), value.into()]);
        option("--image", &self.image);
        option("--payload", &self.payload);
        option("--machine", self.machine.as_ref());
        option("--scratch", &self.scratch);
        if let Some(cgroup) = &self.cgroup {
            option("--cgroup", cgroup);
        }
        arguments
    }
}

/// The program whose subcommand `container-launch` is: ourselves.
#[cfg(not(test))]
pub fn program() -> PathBuf {
    // The path that we were started by may name a newer build by now; this is the one that runs, also when another
    // process opens it.
    PathBuf::from(format!("/proc/{}/exe", std::process::id()))
}

/// The program whose subcommand `container-launch` is: cargo builds it beside the tests.
#[cfg(test)]
pub fn program() -> PathBuf {
    let tests = std::env::current_exe().expect("the tests have a path");
    tests
        .ancestors()
        .nth(2)
        .expect("they are two folders below the target folder")
        .join("xtask")
}

/// Becomes systemd-nspawn; returns only on failure.
pub fn run(launch: &Launch) -> Result<()> {
    // Should the runner be killed, the container ends in order instead of living on.
    prctl::set_pdeathsig(Signal::SIGTERM).context("cannot ask for a signal at the runner's end")?;
    if let Some(cgroup) = &launch.cgroup {
        let procs = cgroup.join("cgroup.procs");
        std::fs::write(&procs, "0").with_context(|| format!("cannot write {}", procs.display()))?;
    }
    let root = mount_root(launch)?;
    Err(nspawn(launch, &root).exec()).context("cannot start systemd-nspawn")
}

/// The image below, a fresh tmpfs above.
fn mount_root(launch: &Launch) -> Result<PathBuf> {
    const NONE: Option<&str> = None;
    unshare(CloneFlags::CLONE_NEWNS).context("cannot make a mount namespace")?;
    mount(NONE, "/", NONE, MsFlags::MS_REC | MsFlags::MS_PRIVATE, NONE)
        .context("cannot make the mount namespace private")?;
    let scratch = &launch.scratch;
    mount(
        Some("tmpfs"),
        scratch,
        Some("tmpfs"),
        MsFlags::empty(),
        Some("mode=755"),
    )
    .with_context(|| format!("cannot mount a tmpfs on {}", scratch.display()))?;
    for folder in ["upper", "work", "root"] {
        std::fs::create_dir(scratch.join(folder)).context("cannot fill the tmpfs")?;
    }
    let mut options = OsString::from("lowerdir=");
    options.push(escaped(&launch.image));
    options.push(",upperdir=");
    options.push(escaped(&scratch.join("upper")));
    options.push(",workdir=");
    options.push(escaped(&scratch.join("work")));
    let root = scratch.join("root");
    mount(
        Some("overlay"),
        &root,
        Some("overlay"),
        MsFlags::empty(),
        Some(options.as_os_str()),
    )
    .with_context(|| format!("cannot mount an overlay over {}", launch.image.display()))?;
    Ok(root)
}

/// A path within overlayfs's options, where commas and colons separate.
fn escaped(path: &Path) -> String {
    path.to_string_lossy()
        .replace('\\', r"\\")
        .replace(',', r"\,")
        .replace(':', r"\:")
}

fn nspawn(launch: &Launch, root: &Path) -> Command {
    let mut bind = OsString::from("--bind-ro=");
    // nspawn separates source and target by a colon.
    bind.push(
        launch
            .payload
            .to_string_lossy()
            .replace('\\', r"\\")
            .replace(':', r"\:"),
    );
    bind.push(format!(":{PAYLOAD_IN_GUEST}"));
    let mut command = Command::new("systemd-nspawn");
    command
        .args(["--quiet", "--boot", "--register=no", "--keep-unit"])
        // A network namespace of its own also hides the host's abstract sockets.
        .args([
            "--private-network",
            "--resolv-conf=off",
            "--timezone=off",
            "--link-journal=no",
        ])
        // SIGTERM to nspawn arrives at the guest's init as its order to power off.
        .args(["--notify-ready=yes", "--kill-signal=SIGRTMIN+3"])
        .arg(format!("--machine={}", launch.machine))
        .arg(bind)
        .arg("--directory")
        .arg(root)
        // On a host with the hybrid layout the guest gets cgroup v2 nevertheless.
        .env("SYSTEMD_NSPAWN_UNIFIED_HIERARCHY", "1");
    command
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        launch: Launch,
    }

    #[test]
    fn the_arguments_parse_back() {
        let launch = Launch {
            image: "/images/a b".into(),
            payload: "/payload".into(),
            machine: "wg-1".into(),
            cgroup: Some("/sys/fs/cgroup/x".into()),
            scratch: "/scratch".into(),
        };
        // clap takes the subcommand's word as the program's name.
        let parsed = Line::try_parse_from(launch.arguments()).unwrap().launch;
        assert_eq!(format!("{parsed:?}"), format!("{launch:?}"));
    }

    #[test]
    fn separators_in_paths_are_escaped() {
        assert_eq!(escaped(Path::new("/a,b:c\\d")), r"/a\,b\:c\\d");
    }

    #[test]
    fn the_guest_gets_no_network_and_a_read_only_payload() {
        let launch = Launch {
            image: "/i".into(),
            payload: "/p:q".into(),
            machine: "m".into(),
            cgroup: None,
            scratch: "/s".into(),
        };
        let command = nspawn(&launch, Path::new("/s/root"));
        let arguments: Vec<_> = command
            .get_args()
            .map(|argument| argument.to_string_lossy())
            .collect();
        assert!(arguments.contains(&"--private-network".into()));
        assert!(arguments.contains(&r"--bind-ro=/p\:q:/opt/workload-guard".into()));
    }
}
