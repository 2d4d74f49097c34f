//! A terminal in miniature, which measures how soon a known-heavy program is in the heavy slice.

use std::fmt::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::ready;
use crate::harness::guard::HEAVY;
use crate::harness::proc;

/// Between two looks at where the program is: what the figures are accurate to.
const LOOK: Duration = Duration::from_micros(500);
/// Longest time for one run.
const PATIENCE: Duration = Duration::from_secs(20);
/// Spreads the starts over the phases of a sampling interval; it has no divisor in common with any.
const PHASE_MS: u64 = 613;

/// Starts a program that is called `make` so many times, and writes down the milliseconds from just before its
/// start until it is in the heavy slice. Before each start it waits for up to `spread`.
pub fn run(out: &Path, runs: u64, spread: Duration) -> Result<()> {
    ready(&[]);
    let mut text = String::new();
    for run in 0..runs {
        let spread = spread.as_millis().max(1) as u64;
        std::thread::sleep(Duration::from_millis(run * PHASE_MS % spread));
        let begin = Instant::now();
        let mut child = Command::new("sleep")
            .arg0("make")
            .arg("1000")
            .stdin(Stdio::null())
            .spawn()?;
        let arrived = loop {
            if proc::cgroup_of(child.id())?.contains(HEAVY) {
                break Some(begin.elapsed());
            }
            if begin.elapsed() > PATIENCE {
                break None;
            }
            std::thread::sleep(LOOK);
        };
        child.kill()?;
        child.wait()?;
        ensure!(
            arrived.is_some(),
            "run {run} was not routed within {PATIENCE:?}"
        );
        let ms = arrived.unwrap_or_default().as_secs_f64() * 1000.0;
        writeln!(text, "{ms:.3}")?;
    }
    super::write_whole(out, &text)?;
    loop {
        std::thread::park();
    }
}
