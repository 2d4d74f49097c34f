//! Loads of several processes.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::spinner::Spinner;
use crate::harness::{cgroup, proc};

/// A child of this program that ends with us, once it is ready; with the PIDs that it started.
fn child(words: &[&str]) -> Result<(Child, Vec<u32>)> {
    let mut child = Command::new(std::env::current_exe()?)
        .arg("load")
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let stdout = child.stdout.take().context("no pipe")?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line)?;
    ensure!(
        line.starts_with("ready"),
        "a child did not get ready: {line:?}"
    );
    let members = line
        .split_whitespace()
        .skip(1)
        .map(|pid| pid.parse().context("a PID"))
        .collect::<Result<_>>()?;
    Ok((child, members))
}

/// An idle spinner that ends with its parent.
const IDLE_CHILD: &[&str] = &["spin", "--idle", "--with-parent"];

/// An idle parent with idle spinners below it, in a sub-cgroup if one is named.
pub fn nest(children: u32, into: Option<&str>) -> Result<()> {
    let spinner = Spinner::new(false)?;
    let mut members = Vec::new();
    for _ in 0..children {
        members.push(child(IDLE_CHILD)?.0.id());
    }
    if let Some(name) = into {
        let inner = cgroup::dir(&proc::cgroup_of(std::process::id())?).join(name);
        fs::create_dir_all(&inner).with_context(|| format!("cannot make {}", inner.display()))?;
        for pid in &members {
            fs::write(inner.join("cgroup.procs"), pid.to_string())
                .with_context(|| format!("cannot move {pid} into {}", inner.display()))?;
        }
    }
    spinner.ready_and_obey(&members)
}

/// A spinner with idle children, each with an idle child.
pub fn tree(children: u32) -> Result<()> {
    let spinner = Spinner::new(false)?;
    let mut members = Vec::new();
    for _ in 0..children {
        let (child, grandchildren) = child(&["nest", "1"])?;
        members.push(child.id());
        members.extend(grandchildren);
    }
    spinner.ready_and_obey(&members)
}

/// An idle parent of sleeping processes.
pub fn many(count: u32) -> Result<()> {
    let spinner = Spinner::new(false)?;
    let members = (0..count)
        .map(|_| Ok(Command::new("sleep").arg("infinity").spawn()?.id()))
        .collect::<Result<Vec<_>>>()?;
    spinner.ready_and_obey(&members)
}

/// An idle parent of sleeping processes that come while it is used. Each third is a grandchild.
pub fn grower(count: u32) -> Result<()> {
    let spinner = Spinner::new(false)?;
    std::thread::spawn(move || {
        let mut living = 0;
        while living < count {
            let (words, more): (&[&str], _) = match living % 3 {
                0 if living + 1 < count => {
                    (&["sh", "-c", "sleep infinity & exec sleep infinity"], 2)
                }
                _ => (&["sleep", "infinity"], 1),
            };
            // Out of processes for the moment: the next round tries again.
            if Command::new(words[0]).args(&words[1..]).spawn().is_ok() {
                living += more;
            }
        }
    });
    spinner.ready_and_obey(&[])
}

/// An idle parent of a zombie.
pub fn zombie() -> Result<()> {
    let spinner = Spinner::new(false)?;
    let child = Command::new("true").spawn()?;
    while proc::state(child.id())? != 'Z' {
        std::thread::yield_now();
    }
    spinner.ready_and_obey(&[child.id()])
}
