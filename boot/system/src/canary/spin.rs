//! Work that needs a CPU and nothing else.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// How long one worker is to take alone: long against a timer tick, short for a person.
const TARGET: Duration = Duration::from_millis(300);
/// A first run that took this long tells the speed well enough.
const ENOUGH: Duration = Duration::from_millis(20);

/// Keeps a CPU busy without touching memory.
pub fn spin(iterations: u64) {
    let mut x = black_box(0x9e37_79b9_7f4a_7c15_u64);
    for _ in 0..iterations {
        // xorshift64: each step needs the one before it.
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    black_box(x);
}

/// How many iterations take about [`TARGET`] on the CPU that runs this. It also wakes the CPU's clock up.
pub fn calibrate() -> u64 {
    let mut iterations = 1 << 16;
    loop {
        let begin = Instant::now();
        spin(iterations);
        let took = begin.elapsed();
        if took >= ENOUGH {
            let scale = TARGET.as_secs_f64() / took.as_secs_f64();
            return (iterations as f64 * scale).max(1.0) as u64;
        }
        iterations *= 2;
    }
}
