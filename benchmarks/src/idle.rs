//! Idle processes in control groups of their own.
//!
//! The only place that makes control groups and writes `cgroup.procs`: the guard itself never does.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use guard_system::cgroup::CgroupFs;
use guard_system::proc::ProcFs;
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getppid};

/// Processes in one group, about as many as a terminal with a build or an editor has.
pub const PER_GROUP: usize = 20;
/// What the folders are called, before the PID of their benchmark.
const PREFIX: &str = "lwg-bench-";
/// How long all processes together may take to become idle.
const SETTLE: Duration = Duration::from_secs(60);

/// Arguments of an idle process.
#[derive(clap::Args)]
pub struct Options {
    /// PID of the benchmark
    #[arg(long)]
    parent: i32,
    /// Makes its command line as long as a usual one
    #[arg(long)]
    label: String,
}

/// Does nothing until the parent ends.
pub fn stay(options: &Options) -> anyhow::Result<()> {
    prctl::set_pdeathsig(Signal::SIGKILL)?;
    ensure!(
        getppid() == Pid::from_raw(options.parent),
        "the benchmark of {} is gone",
        options.label
    );
    loop {
        nix::unistd::pause();
    }
}

/// Idle processes, and the group that holds theirs. Both go when it is dropped.
pub struct Herd {
    folder: PathBuf,
    path: String,
    groups: Vec<PathBuf>,
    children: Vec<Child>,
}

impl Herd {
    /// `count` idle processes, [`PER_GROUP`] in each group, below `parent`.
    pub fn start(cgroups: &CgroupFs, parent: &str, count: usize) -> anyhow::Result<Herd> {
        let name = format!("{PREFIX}{}", std::process::id());
        let path = format!("{}/{name}", parent.trim_end_matches('/'));
        let home = cgroups.folder(parent)?;
        remove_stale(&home);
        let folder = cgroups.folder(&path)?;
        fs::create_dir(&folder).with_context(|| {
            format!(
                "{} cannot be made; run as root, or in a group of your own: systemd-run --user --scope -p Delegate=yes",
                folder.display()
            )
        })?;
        let mut herd = Herd {
            folder,
            path,
            groups: Vec::new(),
            children: Vec::new(),
        };
        let filled = herd.fill(count);
        // Back, so that the groups can be removed and the benchmark is not among what is watched.
        enter(&home)?;
        filled?;
        herd.wait_until_idle()?;
        Ok(herd)
    }

    /// The group that holds the others.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// How many groups have processes.
    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    fn fill(&mut self, count: usize) -> anyhow::Result<()> {
        let program = std::env::current_exe()?;
        let parent = std::process::id().to_string();
        for number in 0..count {
            if number % PER_GROUP == 0 {
                let group = self
                    .folder
                    .join(format!("app-{}.scope", number / PER_GROUP));
                fs::create_dir(&group).with_context(|| group.display().to_string())?;
                self.groups.push(group.clone());
                // Children are born where their parent is: one move for the whole group.
                enter(&group)?;
            }
            let child = Command::new(&program)
                .args([
                    "idle",
                    "--parent",
                    &parent,
                    "--label",
                    &format!("/usr/lib/some-app/worker-{number}.so"),
                ])
                .stdin(Stdio::null())
                .spawn()
                .with_context(|| format!("idle process {number} of {count} cannot be started"))?;
            self.children.push(child);
        }
        Ok(())
    }

    fn wait_until_idle(&self) -> anyhow::Result<()> {
        let proc = ProcFs::default();
        let deadline = Instant::now() + SETTLE;
        for child in &self.children {
            while proc
                .stat(child.id())?
                .context("an idle process has ended")?
                .state
                != b'S'
            {
                if Instant::now() > deadline {
                    bail!("the processes are not idle after {} s", SETTLE.as_secs());
                }
                std::thread::yield_now();
            }
        }
        Ok(())
    }
}

impl Drop for Herd {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
        }
        for child in &mut self.children {
            let _ = child.wait();
        }
        for folder in self.groups.iter().chain([&self.folder]) {
            if let Err(error) = fs::remove_dir(folder) {
                eprintln!("{} is left behind: {error}", folder.display());
            }
        }
    }
}

/// Moves this process.
fn enter(group: &Path) -> anyhow::Result<()> {
    let file = group.join("cgroup.procs");
    fs::write(&file, "0").with_context(|| format!("{} cannot be entered", file.display()))
}

/// Removes the groups of benchmarks that were killed; their processes ended with them.
fn remove_stale(home: &Path) {
    for name in entries(home) {
        let owner = name
            .strip_prefix(PREFIX)
            .and_then(|pid| pid.parse::<u32>().ok());
        if owner.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            let folder = home.join(&name);
            for inner in entries(&folder) {
                let _ = fs::remove_dir(folder.join(inner));
            }
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Names of the folders in a folder.
fn entries(folder: &Path) -> Vec<String> {
    match fs::read_dir(folder) {
        Ok(entries) => entries
            .filter_map(Result::ok)
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect(),
        Err(error) => {
            if error.kind() != ErrorKind::NotFound {
                eprintln!("{}: {error}", folder.display());
            }
            Vec::new()
        }
    }
}
