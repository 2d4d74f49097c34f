//! The canary: proof that work spreads across a set of CPUs, whatever the kernel command line says.
//!
//! One spinner is timed, then N at once. Real parallelism ends N spinners in about the time of one; a pool
//! that sits on one CPU takes N times as long. It always measures the running machine, never a recorded tree.

mod judge;
mod measure;
mod request;
mod spin;
#[cfg(test)]
mod tests;
mod text;

use bench_profile::cpus::CpuSet;
use serde::Serialize;

pub use judge::{Measured, Outcome, floor};
pub use request::DIVISOR;
pub use text::{heading, text};

/// Noise only ever makes spreading look worse, so a poor ratio is measured again before it counts.
const ROUNDS: u32 = 3;

/// What is to be proved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Request {
    /// The CPUs that the workers may use.
    pub cpus: CpuSet,
    /// How many workers run at once; at least 2.
    pub workers: usize,
    /// How many of them the hardware can run at full speed: one for each physical core where a set holds
    /// second threads, since a spinner gains almost nothing from those.
    pub parallelism: usize,
    /// The floor is `parallelism` divided by this, but never below 1.3.
    pub divisor: u32,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum CanaryError {
    /// One CPU is no pool.
    #[error("the canary needs at least two CPUs to spread work over, and {0} is not that many")]
    TooFew(String),
    /// The kernel refused the set.
    #[error("the workers cannot be kept on CPUs {cpus}: {error}")]
    Affinity {
        /// The set.
        cpus: String,
        /// The kernel's answer.
        #[source]
        error: nix::Error,
    },
    /// A worker could not be started or seen.
    #[error("the canary's workers: {0}")]
    Workers(#[from] std::io::Error),
}

/// Measures and judges. It takes about a second where work spreads, and `workers` times 0.3 s where it does not.
///
/// # Errors
///
/// When nothing could be measured; a canary that fails is no error.
pub fn run(request: &Request) -> Result<Outcome, CanaryError> {
    if request.workers < 2 || request.cpus.is_empty() {
        return Err(CanaryError::TooFew(format!(
            "{:?}",
            request.cpus.to_string()
        )));
    }
    let mut best: Option<Outcome> = None;
    for _ in 0..ROUNDS {
        let outcome = Outcome::new(request.clone(), measure::measure(request)?);
        // Too few CPUs is where the kernel put them, not noise: no second look changes it.
        let settled = outcome.passed() || !outcome.spread();
        if best
            .as_ref()
            .is_none_or(|best| outcome.effective() > best.effective())
            || settled
        {
            best = Some(outcome);
        }
        if settled {
            break;
        }
    }
    Ok(best.expect("at least one round"))
}
