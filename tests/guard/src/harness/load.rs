//! Starting loads in units of their own, as an app or a terminal starts its work.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::guard::PROTECTED;
use super::proc;
use super::session::{HOME, this_program};

/// How a load is started.
#[derive(Debug)]
pub struct Spec {
    slice: String,
    properties: Vec<String>,
    description: String,
    name: Option<String>,
    cpus: Option<String>,
    args: Vec<OsString>,
}

/// A load that runs: `guard-scenarios load …` in a scope. Dropping it ends it.
#[derive(Debug)]
pub struct Load {
    child: Child,
    /// Its process.
    pub pid: u32,
    /// Processes that it told of: its descendants at the start.
    pub members: Vec<u32>,
    /// Its scope.
    pub unit: String,
    /// The control group that it started in.
    pub cgroup: String,
}

/// A load with these words after `load`, in a scope of the protected slice. See [`crate::load::Mode`].
pub fn load(words: &[&str]) -> Spec {
    Spec {
        slice: PROTECTED.to_owned(),
        properties: Vec::new(),
        description: "a load of the scenarios".to_owned(),
        name: None,
        cpus: None,
        args: words.iter().map(OsString::from).collect(),
    }
}

impl Spec {
    /// In another slice.
    pub fn slice(mut self, slice: &str) -> Spec {
        self.slice = slice.to_owned();
        self
    }

    /// With a unit property, `NAME=VALUE`.
    pub fn property(mut self, property: &str) -> Spec {
        self.properties.push(property.to_owned());
        self
    }

    /// With this description of its scope.
    pub fn description(mut self, text: &str) -> Spec {
        self.description = text.to_owned();
        self
    }

    /// Under another program name, as `$HOME/bin/NAME`: a rule matches what a command is called.
    pub fn named(mut self, name: &str) -> Spec {
        self.name = Some(name.to_owned());
        self
    }

    /// On these CPUs only (taskset(1)).
    pub fn on_cpus(mut self, list: &str) -> Spec {
        self.cpus = Some(list.to_owned());
        self
    }

    /// With further arguments, which a load ignores.
    pub fn further(mut self, args: &[&OsStr]) -> Spec {
        self.args.push("--".into());
        self.args.extend(args.iter().map(|arg| (*arg).to_owned()));
        self
    }

    /// Starts it and waits until it says that it is ready.
    pub fn start(self) -> Result<Load> {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let unit = format!("load-{}.scope", NEXT.fetch_add(1, Ordering::Relaxed));
        let mut command = Command::new("systemd-run");
        command
            .args(["--user", "--scope", "--quiet", "--collect"])
            .arg(format!("--unit={unit}"))
            .arg(format!("--slice={}", self.slice))
            .arg(format!("--description={}", self.description));
        for property in &self.properties {
            command.args(["-p", property]);
        }
        command.arg("--");
        if let Some(cpus) = &self.cpus {
            command.args(["taskset", "--cpu-list", cpus]);
        }
        match &self.name {
            Some(name) => command.arg(program_named(name)?),
            None => command.arg(this_program()?),
        };
        let mut child = command
            .arg("load")
            .args(&self.args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start systemd-run")?;
        // systemd-run --scope becomes the command, so its PID is the load's.
        let pid = child.id();
        let stdout = child.stdout.take().context("no pipe")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let Some(members) = line.strip_prefix("ready") else {
            let status = child.wait()?;
            bail!("{unit} did not get ready: {line:?}, {status}");
        };
        let members = members
            .split_whitespace()
            .map(|word| word.parse().context("a PID"))
            .collect::<Result<_>>()?;
        let cgroup = proc::cgroup_of(pid)?;
        // A known-heavy load may have been moved already; its unit then says where it was.
        Ok(Load {
            child,
            pid,
            members,
            unit,
            cgroup,
        })
    }
}

/// A link to this program under another name, as `$HOME/bin/NAME`.
pub fn program_named(name: &str) -> Result<PathBuf> {
    let path = Path::new(HOME).join("bin").join(name);
    if !path.is_symlink() {
        fs::create_dir_all(Path::new(HOME).join("bin"))?;
        symlink(this_program()?, &path)
            .with_context(|| format!("cannot link {}", path.display()))?;
    }
    Ok(path)
}

/// Sends a signal to a process.
pub fn signal(pid: u32, signal: Signal) -> Result<()> {
    kill(Pid::from_raw(i32::try_from(pid)?), signal)
        .with_context(|| format!("cannot send {signal} to {pid}"))
}

/// Makes a load busy for 120 ms.
pub fn burst(pid: u32) -> Result<()> {
    signal(pid, Signal::SIGHUP)
}

/// Makes a load busy: all of one CPU.
pub fn busy(pid: u32) -> Result<()> {
    signal(pid, Signal::SIGUSR1)
}

/// Makes a load idle.
pub fn idle(pid: u32) -> Result<()> {
    signal(pid, Signal::SIGUSR2)
}

impl Load {
    /// The only process that it started.
    pub fn member(&self) -> Result<u32> {
        ensure!(
            self.members.len() == 1,
            "{} has {} members",
            self.unit,
            self.members.len()
        );
        Ok(self.members[0])
    }

    /// Where it is now.
    pub fn now_in(&self) -> Result<String> {
        proc::cgroup_of(self.pid)
    }

    /// Whether its process has ended; it is reaped then.
    pub fn ended(&mut self) -> Result<bool> {
        Ok(self.exit()?.is_some())
    }

    /// How its process ended, if it has; it is reaped then.
    pub fn exit(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for pid in proc::tree(self.pid).unwrap_or_default().into_iter().rev() {
            // It may be gone already, which is what is wanted.
            let _ = signal(pid, Signal::SIGKILL);
        }
        let _ = self.child.wait();
    }
}
