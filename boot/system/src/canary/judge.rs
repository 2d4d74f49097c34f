//! What a measurement means. Pure.

use std::time::Duration;

use bench_profile::cpus::CpuSet;
use serde::Serialize;

use super::Request;

/// Below this two workers could share one CPU and pass by noise.
const LOWEST_FLOOR: f64 = 1.3;

/// One round of measuring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Iterations of each worker.
    pub iterations: u64,
    /// How long one worker took alone.
    pub one: Duration,
    /// How long all of them took together.
    pub all: Duration,
    /// The CPUs that the kernel let them use.
    pub allowed: CpuSet,
    /// The CPUs that they were seen on.
    pub seen: CpuSet,
}

/// A measurement with what was asked.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// What was asked.
    #[serde(flatten)]
    pub request: Request,
    /// Iterations of each worker.
    pub iterations: u64,
    /// Milliseconds that one worker took alone.
    pub one_ms: u64,
    /// Milliseconds that all of them took together.
    pub all_ms: u64,
    /// The CPUs that the kernel let them use.
    pub allowed: CpuSet,
    /// The CPUs that they were seen on.
    pub seen: CpuSet,
    /// How many workers' worth of work was done at once.
    pub effective: f64,
    /// What it has to reach.
    pub floor: f64,
    /// Whether work spreads.
    pub passed: bool,
}

/// What the effective parallelism, and the number of CPUs seen, have to reach.
pub fn floor(parallelism: usize, divisor: u32) -> f64 {
    (parallelism as f64 / f64::from(divisor.max(1))).max(LOWEST_FLOOR)
}

impl Outcome {
    /// Judges.
    pub fn new(request: Request, measured: Measured) -> Outcome {
        let floor = floor(request.parallelism, request.divisor);
        let all = measured.all.as_secs_f64();
        let effective = if all > 0.0 {
            request.workers as f64 * measured.one.as_secs_f64() / all
        } else {
            0.0
        };
        let spread = measured.seen.len() as f64 >= floor;
        Outcome {
            iterations: measured.iterations,
            one_ms: milliseconds(measured.one),
            all_ms: milliseconds(measured.all),
            allowed: measured.allowed,
            seen: measured.seen,
            effective,
            floor,
            passed: effective >= floor && spread,
            request,
        }
    }

    /// Whether work spreads.
    pub fn passed(&self) -> bool {
        self.passed
    }

    /// How many workers' worth of work was done at once.
    pub fn effective(&self) -> f64 {
        self.effective
    }

    /// Whether the workers were seen on enough CPUs.
    pub fn spread(&self) -> bool {
        self.seen.len() as f64 >= self.floor
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
