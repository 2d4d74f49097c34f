//! The clocks of holds.

use std::time::{Duration, SystemTime};

use nix::time::{ClockId, clock_gettime};

/// Time since boot, with the time that the machine was suspended (`CLOCK_BOOTTIME`, clock_gettime(2)).
pub fn since_boot() -> Duration {
    // Linux has had the clock since 2.6.39, and there is nothing else that can fail.
    clock_gettime(ClockId::CLOCK_BOOTTIME).map_or(Duration::ZERO, Duration::from)
}

/// Microseconds since 1970.
pub fn wall_usec() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_micros() as u64)
}
