//! A terminal in miniature, which measures how soon a known-heavy program is in the heavy slice.

use std::fmt::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::ready;
use crate::harness::guard::HEAVY;
use crate::harness::proc;

/// Between two looks at where the program is: a part of the time that has passed, which is what the figures are
/// accurate to. An emulated machine would have little else to do but to look.
const LOOK: u32 = 50;
const SHORTEST_LOOK: Duration = Duration::from_micros(200);
/// Longest time for one run.
const PATIENCE: Duration = Duration::from_secs(20);
/// Spreads the starts over the phases of a sampling interval; it has no divisor in common with any.
const PHASE_MS: u64 = 613;

/// Starts a program that is called `make` so many times, and writes down the milliseconds from its
/// execution until it is in the heavy slice. Before each start it waits for up to `spread`, as a person does: the guard
/// moves one workload at a time, and what is measured is not its queue.
pub fn run(out: &Path, runs: u64, spread: Duration) -> Result<()> {
    ready(&[]);
    let spread = spread.as_millis().max(1) as u64;
    let mut text = String::new();
    let mut last: Option<Child> = None;
    for run in 0..runs {
        let pause = Duration::from_millis(run * PHASE_MS % spread);
        // The last one ends when its move has been finished and recorded, long before the next one starts.
        std::thread::sleep(pause / 2);
        if let Some(mut last) = last.take() {
            last.kill()?;
            last.wait()?;
        }
        std::thread::sleep(pause / 2);
        let mut child = Command::new("sleep")
            .arg0("make")
            .arg("1000")
            .stdin(Stdio::null())
            .spawn()?;
        // It returns when the program is executed, or has failed to be.
        let begin = Instant::now();
        while !proc::cgroup_of(child.id())?.contains(HEAVY) {
            if begin.elapsed() > PATIENCE {
                child.kill()?;
                child.wait()?;
                bail!("run {run} was not routed within {PATIENCE:?}");
            }
            std::thread::sleep((begin.elapsed() / LOOK).max(SHORTEST_LOOK));
        }
        let ms = begin.elapsed().as_secs_f64() * 1000.0;
        writeln!(text, "{ms:.3}")?;
        last = Some(child);
    }
    super::write_whole(out, &text)?;
    loop {
        std::thread::park();
    }
}
