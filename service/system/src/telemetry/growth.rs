//! What counters grew by between two looks.

use std::time::Duration;

use guard_policy::quota::Signal;

use super::throttling::CpuStat;

/// Counters at the last look that could read them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Growth<const N: usize> {
    last: Option<(Duration, [u64; N])>,
}

impl<const N: usize> Growth<N> {
    /// The growth and the time that it took; none at the first look, and when a counter fell, since then
    /// it counts something new.
    fn since_last(&mut self, counters: [u64; N], now: Duration) -> Option<([u64; N], Duration)> {
        let (then, before) = self.last.replace((now, counters))?;
        let mut grown = [0; N];
        for at in 0..N {
            grown[at] = counters[at].checked_sub(before[at])?;
        }
        Some((grown, now.checked_sub(then).filter(|time| !time.is_zero())?))
    }

    fn forget(&mut self) {
        self.last = None;
    }
}

impl Growth<1> {
    /// Growth of a wait, from nanoseconds to milliseconds.
    pub(super) fn delay(&mut self, read: Result<Option<u64>, String>, now: Duration) -> Signal {
        match read {
            Ok(Some(nanoseconds)) => match self.since_last([nanoseconds], now) {
                Some(([grown], age)) => Signal::Read {
                    value: grown as f64 / 1e6,
                    age,
                },
                None => Signal::Pending,
            },
            Ok(None) if self.last.is_none() => Signal::Absent,
            Ok(None) => Signal::Broken("the file /proc/self/schedstat is gone".to_owned()),
            Err(why) => {
                self.forget();
                Signal::Broken(why)
            }
        }
    }
}

impl Growth<3> {
    /// Throttled periods over all periods, and the use in percent of one logical CPU.
    pub(super) fn throttled(
        &mut self,
        read: Result<CpuStat, String>,
        now: Duration,
    ) -> (Signal, Option<f64>) {
        let stat = match read {
            Ok(stat) => stat,
            Err(why) => {
                self.forget();
                return (Signal::Broken(why), None);
            }
        };
        let counters = [stat.usage_usec, stat.periods, stat.throttled];
        let Some(([usage, periods, throttled], age)) = self.since_last(counters, now) else {
            return (Signal::Pending, None);
        };
        // A group that did not run had no period, and nothing held it up. The two counters are not read
        // at one moment, so that the second can be ahead.
        let value = match periods {
            0 => 0.0,
            periods => (throttled as f64 / periods as f64).min(1.0),
        };
        let usage = usage as f64 / age.as_micros().max(1) as f64 * 100.0;
        (Signal::Read { value, age }, Some(usage))
    }
}
