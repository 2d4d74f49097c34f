//! How much of a storm of events is looked at. Pure.
//!
//! A fork storm can execute programs faster than anybody can look at them. What is not looked at counts
//! as lost, and one scan makes good whatever was lost.

use std::collections::HashSet;
use std::time::Duration;

/// Processes that are looked at for each wake-up. At 5 µs each that is some milliseconds.
pub const MOST_PER_WAKE: usize = 256;

/// Rest after each wake-up, in times the CPU that it took. With the wake-up itself, which costs about as
/// much as a look at one process, this bounds the share of a CPU to a few percent, however fast or slow
/// the machine is; and after a single event it is over before the next command can be typed.
const REST: u32 = 30;
/// No rest is longer.
const LONGEST_REST: Duration = Duration::from_millis(500);

/// How long to leave events where they are after they were looked at for `spent` of CPU time.
pub fn rest_after(spent: Duration) -> Duration {
    (spent * REST).min(LONGEST_REST)
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
    fn the_share_of_a_cpu_is_bounded_on_any_machine() {
        for spent in [20, 100, 1000, 10_000].map(Duration::from_micros) {
            let share = spent.as_secs_f64() / (spent + rest_after(spent)).as_secs_f64();
            assert!(share < 0.04, "{spent:?}: {share}");
        }
        assert!(rest_after(Duration::from_micros(60)) < Duration::from_millis(2));
        assert_eq!(rest_after(Duration::from_secs(9)), LONGEST_REST);
    }
}
