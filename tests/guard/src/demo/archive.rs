//! An unknown hog on real data: xz on one thread, fed with the system's libraries through a pipe.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use anyhow::{Context, Result, anyhow, ensure};

use crate::harness::guard::PROTECTED;
use crate::harness::proc;
use crate::harness::wait::{PATIENCE, until};

/// What runs.
pub const COMMAND: &[&str] = &["xz", "--threads=1", "-6", "--stdout"];
/// What it compresses, over and over.
pub const FILES: &str = "/usr/lib/x86_64-linux-gnu";
const UNIT: &str = "archive.scope";

/// The running hog.
#[derive(Debug)]
pub struct Archive {
    child: Child,
    /// Its process.
    pub pid: u32,
    /// Where it started.
    pub cgroup: String,
    pause: Arc<AtomicBool>,
    // Gives the pipe back when it is paused, still open: the hog then waits for more.
    feeder: Option<JoinHandle<Result<ChildStdin>>>,
}

impl Archive {
    /// Starts it and feeds it.
    pub fn start() -> Result<Archive> {
        let files = files()?;
        let mut child = Command::new("systemd-run")
            .args(["--user", "--scope", "--quiet", "--collect"])
            .arg(format!("--slice={PROTECTED}"))
            .arg(format!("--unit={UNIT}"))
            .arg("--description=an archive in the making")
            .arg("--")
            .args(COMMAND)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .context("cannot start systemd-run")?;
        let pid = child.id();
        let pipe = child.stdin.take().context("no pipe")?;
        let pause = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&pause);
        let feeder = std::thread::spawn(move || feed(pipe, &files, &told));
        let cgroup = until("xz runs in its scope", PATIENCE, || {
            let cgroup = proc::cgroup_of(pid)?;
            Ok((cgroup.ends_with(UNIT) && proc::comm(pid)? == COMMAND[0]).then_some(cgroup))
        })?;
        Ok(Archive {
            child,
            pid,
            cgroup,
            pause,
            feeder: Some(feeder),
        })
    }

    /// No more input for now; the pipe stays open.
    pub fn pause(&self) {
        self.pause.store(true, Ordering::Relaxed);
    }

    /// The end of the input, and of the hog: an error unless it ends with status 0.
    pub fn finish(mut self) -> Result<()> {
        self.pause();
        let feeder = self.feeder.take().context("it was ended before")?;
        drop(
            feeder
                .join()
                .map_err(|_| anyhow!("the feeder panicked"))??,
        );
        let status = self.child.wait()?;
        ensure!(status.success(), "xz ended with {status}");
        Ok(())
    }
}

fn feed(mut pipe: ChildStdin, files: &[PathBuf], pause: &AtomicBool) -> Result<ChildStdin> {
    let mut block = vec![0; 64 * 1024];
    for path in files.iter().cycle() {
        let mut file =
            File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        loop {
            if pause.load(Ordering::Relaxed) {
                return Ok(pipe);
            }
            let count = file.read(&mut block)?;
            if count == 0 {
                break;
            }
            pipe.write_all(&block[..count])
                .context("xz reads no more")?;
        }
    }
    Ok(pipe)
}

/// The libraries: regular files, largest first.
fn files() -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(FILES).with_context(|| format!("cannot list {FILES}"))? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            found.push((entry.metadata()?.len(), entry.path()));
        }
    }
    ensure!(!found.is_empty(), "no files in {FILES}");
    found.sort();
    Ok(found.into_iter().rev().map(|(_, path)| path).collect())
}
