//! CPU percent from a counter that only grows.

use std::time::Duration;

use crate::id::Moment;

/// After this many intervals without a sample (a suspend, a stopped guard) the old value says nothing.
const STALE_INTERVALS: u32 = 10;
/// But a loaded machine may be late by this much, however short the interval.
const STALE_AT_LEAST: Duration = Duration::from_secs(5);
/// `/proc/PID/stat` counts in ticks of 10 ms: over a small part of an interval the rate is noise.
const TOO_SOON_PART: u32 = 4;

/// What a counter's new value says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reading {
    /// There is nothing to compare with, or nothing that still counts.
    Fresh,
    /// So little time has passed that the value is left for the next reading.
    TooSoon,
    /// Percent of one logical CPU over the time that really passed.
    Percent(f64),
}

/// The last value of a counter.
#[derive(Clone, Copy, Debug, Default)]
pub struct Meter {
    last: Option<(Moment, u64)>,
}

impl Meter {
    /// Whether so little time says nothing.
    pub fn is_too_soon(elapsed: Duration, interval: Duration) -> bool {
        elapsed < interval / TOO_SOON_PART || elapsed.is_zero()
    }

    /// Whether it is so long ago that the old value says nothing.
    pub fn is_stale(elapsed: Duration, interval: Duration) -> bool {
        elapsed > (interval * STALE_INTERVALS).max(STALE_AT_LEAST)
    }

    /// Takes the next value, in microseconds of CPU time.
    pub fn read(&mut self, now: Moment, usec: u64, interval: Duration) -> Reading {
        let Some((then, before)) = self.last else {
            self.last = Some((now, usec));
            return Reading::Fresh;
        };
        let elapsed = now.since(then);
        if Meter::is_too_soon(elapsed, interval) {
            return Reading::TooSoon;
        }
        self.last = Some((now, usec));
        match usec.checked_sub(before) {
            Some(used) if !Meter::is_stale(elapsed, interval) => {
                Reading::Percent(used as f64 / elapsed.as_micros().max(1) as f64 * 100.0)
            }
            _ => Reading::Fresh,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(ms: u64) -> Moment {
        Moment(Duration::from_millis(ms))
    }

    #[test]
    fn the_rate_is_over_the_time_that_really_passed() {
        let mut meter = Meter::default();
        assert_eq!(meter.read(at(0), 0, SECOND), Reading::Fresh);
        assert_eq!(
            meter.read(at(1000), 500_000, SECOND),
            Reading::Percent(50.0)
        );
        // Late by half a second.
        assert_eq!(
            meter.read(at(2500), 2_000_000, SECOND),
            Reading::Percent(100.0)
        );
    }

    #[test]
    fn an_early_sample_is_left_for_the_next() {
        let mut meter = Meter::default();
        meter.read(at(0), 0, SECOND);
        assert_eq!(meter.read(at(0), 10_000, SECOND), Reading::TooSoon);
        assert_eq!(meter.read(at(100), 10_000, SECOND), Reading::TooSoon);
        assert_eq!(
            meter.read(at(1000), 100_000, SECOND),
            Reading::Percent(10.0)
        );
    }

    #[test]
    fn a_gap_or_a_smaller_value_starts_afresh() {
        let mut meter = Meter::default();
        meter.read(at(0), 0, SECOND);
        assert_eq!(meter.read(at(10_001), 10_000_000, SECOND), Reading::Fresh);
        assert_eq!(
            meter.read(at(11_001), 10_500_000, SECOND),
            Reading::Percent(50.0)
        );
        assert_eq!(meter.read(at(12_001), 1, SECOND), Reading::Fresh);
    }
}
