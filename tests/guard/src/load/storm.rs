//! Programs that are started as fast as the machine can.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;

use super::ready;

/// Starts `true` over and over, once per CPU at the same time, and writes down how many there were.
pub fn run(out: &Path, time: Duration) -> Result<()> {
    ready(&[]);
    let started = AtomicU64::new(0);
    let begin = Instant::now();
    let end = begin + time;
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while Instant::now() < end {
                    // Out of processes for the moment: the next round tries again.
                    if Command::new("true").status().is_ok() {
                        started.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let text = format!(
        "{} {:.3}\n",
        started.into_inner(),
        begin.elapsed().as_secs_f64()
    );
    super::write_whole(out, &text)?;
    // The scenario ends it: a scope that empties would be one thing more that happens.
    loop {
        std::thread::park();
    }
}
