//! How much of a storm of events is looked at. Pure.
//!
//! A fork storm can execute programs faster than anybody can look at them. What is not looked at counts
//! as lost, and one scan makes good whatever was lost.

use std::collections::HashSet;
use std::time::{Duration, Instant};

/// Processes that are looked at for each wake-up. At 5 µs each that is some milliseconds.
pub const MOST_PER_WAKE: usize = 256;

/// The part of one CPU that events may take in the long run, however fast or slow the machine is.
const SHARE: f64 = 0.03;
/// CPU time that is saved up while it is quiet: some hundred programs are looked at as soon as they start.
const SAVINGS: Duration = Duration::from_millis(20);
/// No rest is longer: beyond it the sample is as early as the event.
const LONGEST_REST: Duration = Duration::from_secs(1);

/// CPU time for events: earned as time passes, spent when they are looked at (a token bucket).
#[derive(Clone, Debug)]
pub struct Budget {
    /// Seconds of CPU; negative when more was spent than there was.
    left: f64,
    at: Instant,
}

impl Budget {
    /// All that can be saved up.
    pub fn full(now: Instant) -> Budget {
        Budget {
            left: SAVINGS.as_secs_f64(),
            at: now,
        }
    }

    /// Takes note of CPU time that was spent, and answers how long to leave further events where they are.
    pub fn spend(&mut self, spent: Duration, now: Instant) -> Duration {
        let earned = now.saturating_duration_since(self.at).as_secs_f64() * SHARE;
        let least = -LONGEST_REST.as_secs_f64() * SHARE;
        self.left = (self.left + earned).min(SAVINGS.as_secs_f64()) - spent.as_secs_f64();
        self.left = self.left.max(least);
        self.at = now;
        Duration::from_secs_f64((-self.left / SHARE).max(0.0))
    }
}

/// The events of one wake-up: each process once, in the order of its first event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    pids: Vec<u32>,
    known: HashSet<u32>,
    passed_over: u64,
}

impl Heard {
    /// A process executes another program.
    pub fn exec(&mut self, pid: u32) {
        if self.known.contains(&pid) {
            return;
        }
        if self.pids.len() >= MOST_PER_WAKE {
            self.passed_over += 1;
            return;
        }
        self.known.insert(pid);
        self.pids.push(pid);
    }

    /// Which to look at.
    pub fn pids(&self) -> &[u32] {
        &self.pids
    }

    /// Events that are not looked at, since there are too many.
    pub fn passed_over(&self) -> u64 {
        self.passed_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_looked_at_once() {
        let mut heard = Heard::default();
        for pid in [7, 8, 7, 9, 8] {
            heard.exec(pid);
        }
        assert_eq!((heard.pids(), heard.passed_over()), (&[7, 8, 9][..], 0));
    }

    #[test]
    fn a_storm_is_passed_over_and_counted() {
        let mut heard = Heard::default();
        for pid in 1..=1000 {
            heard.exec(pid);
            // Known already: not one more that nobody looks at.
            heard.exec(1);
        }
        assert_eq!(heard.pids().len(), MOST_PER_WAKE);
        assert_eq!(heard.passed_over(), 1000 - MOST_PER_WAKE as u64);
    }

    #[test]
    fn single_programs_are_looked_at_without_rest() {
        let mut now = Instant::now();
        let mut budget = Budget::full(now);
        for _ in 0..100 {
            now += Duration::from_millis(20);
            assert_eq!(
                budget.spend(Duration::from_micros(500), now),
                Duration::ZERO
            );
        }
    }

    #[test]
    fn the_share_of_a_cpu_is_bounded_on_any_machine() {
        for each in [20, 100, 1000, 10_000, 20_000].map(Duration::from_micros) {
            let begin = Instant::now();
            let mut now = begin;
            let mut budget = Budget::full(now);
            let mut spent = Duration::ZERO;
            while now - begin < Duration::from_secs(60) {
                now += each;
                spent += each;
                now += budget.spend(each, now);
            }
            let share = spent.as_secs_f64() / (now - begin).as_secs_f64();
            assert!((0.029..0.032).contains(&share), "{each:?}: {share}");
        }
    }

    #[test]
    fn a_debt_is_forgotten_rather_than_rested_off_for_ever() {
        let now = Instant::now();
        let rest = Budget::full(now).spend(Duration::from_secs(9), now);
        assert!(rest.abs_diff(LONGEST_REST) < Duration::from_micros(1));
    }
}
