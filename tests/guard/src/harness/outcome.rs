//! How a scenario ends, and how it tells what it does.

use std::fmt;
use std::sync::OnceLock;
use std::time::Instant;

/// Exit status of a scenario that passed.
pub const PASS: u8 = 0;
/// Exit status of a scenario that failed.
pub const FAIL: u8 = 1;
/// What a scenario returns.
pub type Verdict = anyhow::Result<()>;

/// Since when [`step`] counts: since the first call of this.
pub fn start() -> Instant {
    static START: OnceLock<Instant> = OnceLock::new();
    *START.get_or_init(Instant::now)
}

/// Prints a line of progress with the seconds since the scenario began.
pub fn step(text: impl fmt::Display) {
    println!("{:7.2}  {text}", start().elapsed().as_secs_f64());
}

/// Prints the verdict for people and answers the exit status.
pub fn conclude(name: &str, verdict: Verdict) -> u8 {
    match verdict {
        Ok(()) => {
            step(format_args!("{name}: passed"));
            PASS
        }
        Err(error) => {
            step(format_args!("{name}: FAILED: {error:#}"));
            FAIL
        }
    }
}
