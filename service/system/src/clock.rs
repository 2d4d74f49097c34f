//! Time, and how much of it the machine slept through.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// Time since boot, sleep included. What is counted over a span of it notices a suspend as a gap; the
/// standard library's clock stands still meanwhile.
pub fn since_boot() -> Duration {
    read(ClockId::CLOCK_BOOTTIME)
}

/// Time since boot that the machine was awake: what systemd's `…TimestampMonotonic` properties count in.
pub fn awake() -> Duration {
    read(ClockId::CLOCK_MONOTONIC)
}

/// How long the machine has slept since boot.
pub fn asleep() -> Duration {
    // In this order, so that what passes between the two readings is not taken for sleep.
    let total = since_boot();
    total.saturating_sub(awake())
}

/// Every supported kernel has both clocks.
fn read(clock: ClockId) -> Duration {
    clock_gettime(clock).map(Duration::from).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clocks_differ_by_sleep_alone() {
        let (before, total) = (asleep(), since_boot());
        std::thread::sleep(Duration::from_millis(20));
        assert!(since_boot() - total >= Duration::from_millis(20));
        assert!(asleep().saturating_sub(before) < Duration::from_millis(20));
        assert!(awake() <= since_boot());
    }
}
