//! A real parallel build of a real C program, again and again until it is told to stop.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use anyhow::{Context, Result, anyhow, ensure};

use crate::harness::command;
use crate::harness::guard::PROTECTED;
use crate::harness::session::HOME;

/// Source of lua5.4 as Debian ships it.
const SOURCE: &str = "/usr/src/lua5.4";
/// What is run in a copy of it.
///
/// Without optimisation: it takes half the time, which under emulation is a minute.
pub const COMMAND: &[&str] = &["make", "-j8", "linux", "MYCFLAGS=-O0"];

/// Builds, one after the other.
#[derive(Debug)]
pub struct Builds {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<String>>,
}

impl Builds {
    /// Starts the first one.
    pub fn start() -> Result<Builds> {
        ensure!(
            Path::new(SOURCE).join("Makefile").is_file(),
            "there is no source to build in {SOURCE}"
        );
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut count = 0;
            loop {
                count += 1;
                let version = one(count)?;
                if told.load(Ordering::Relaxed) {
                    return Ok(format!("built {count} times; the program says: {version}"));
                }
            }
        });
        Ok(Builds { stop, thread })
    }

    /// The build that runs is the last.
    pub fn no_more(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether the last one has ended.
    pub fn idle(&self) -> bool {
        self.thread.is_finished()
    }

    /// What was built; an error when a build failed.
    pub fn finish(self) -> Result<String> {
        ensure!(self.idle(), "the build is not done");
        self.thread
            .join()
            .map_err(|_| anyhow!("the builder panicked"))?
    }
}

/// Builds a fresh copy, and asks the built program for its version.
fn one(number: u32) -> Result<String> {
    let folder = PathBuf::from(HOME).join(format!("lua-build-{number}"));
    copy(Path::new(SOURCE), &folder)?;
    let output = Command::new("systemd-run")
        .args(["--user", "--scope", "--quiet", "--collect"])
        .arg(format!("--slice={PROTECTED}"))
        .arg(format!("--unit=build-{number}.scope"))
        .arg("--description=a build in a terminal")
        .arg("--")
        .args(COMMAND)
        .current_dir(&folder)
        .stdin(Stdio::null())
        .output()
        .context("cannot start systemd-run")?;
    ensure!(
        output.status.success(),
        "build {number}: {}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    let lua = folder.join("src/lua");
    let version = command::ok(&[lua.as_os_str(), "-v".as_ref()])?;
    fs::remove_dir_all(&folder)?;
    Ok(version)
}

fn copy(source: &Path, target: &Path) -> Result<()> {
    fs::create_dir_all(target).with_context(|| format!("cannot make {}", target.display()))?;
    for entry in
        fs::read_dir(source).with_context(|| format!("cannot list {}", source.display()))?
    {
        let entry = entry?;
        let to = target.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to)?;
        } else if entry.file_type()?.is_file() {
            fs::copy(entry.path(), &to)
                .with_context(|| format!("cannot write {}", to.display()))?;
        }
    }
    Ok(())
}
