//! How a scenario ends, and how it tells what it does.

use std::fmt;
use std::sync::OnceLock;
use std::time::Instant;

/// Exit status of a scenario that passed.
pub const PASS: u8 = 0;
/// Exit status of a scenario that failed.
pub const FAIL: u8 = 1;
/// Exit status of a scenario that cannot run here; its last line says why (the automake convention).
pub const SKIP: u8 = 77;

/// What a scenario returns. A [`Skip`] inside the error is a skip, any other error a failure.
pub type Verdict = anyhow::Result<()>;

/// The scenario cannot run in this guest.
#[derive(Debug)]
pub struct Skip(pub String);

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Skip {}

/// Ends a scenario as skipped.
pub fn skip<T>(reason: impl Into<String>) -> anyhow::Result<T> {
    Err(anyhow::Error::new(Skip(reason.into())))
}

/// Since when [`step`] counts.
fn start() -> Instant {
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
        Err(error) => match error.downcast_ref::<Skip>() {
            Some(Skip(reason)) => {
                println!("{reason}");
                SKIP
            }
            None => {
                step(format_args!("{name}: FAILED: {error:#}"));
                FAIL
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn a_skip_stays_a_skip_under_context() {
        let verdict: Verdict = skip::<()>("no compiler").context("while building");
        assert_eq!(conclude("x", verdict), SKIP);
        assert_eq!(conclude("x", Err(anyhow::anyhow!("broken"))), FAIL);
        assert_eq!(conclude("x", Ok(())), PASS);
    }
}
