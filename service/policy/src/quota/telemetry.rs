//! What a decision rests on.

use std::time::Duration;

/// One signal, as it was last read.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Signal {
    /// This machine does not offer it: a kernel without PSI, say. Each policy says what it does then.
    #[default]
    Absent,
    /// A growth whose first reading was taken only now: there is none yet.
    Pending,
    /// It is offered and could not be read or understood, in words: a file that is gone, a text that is
    /// no number.
    Broken(String),
    /// A value.
    Read {
        /// The value.
        value: f64,
        /// How long ago it was read; of a growth, also the time that it covers.
        age: Duration,
    },
}

impl Signal {
    /// A value that was read right now.
    pub fn now(value: f64) -> Signal {
        Signal::Read {
            value,
            age: Duration::ZERO,
        }
    }

    /// From the traces' spelling, where nothing means absent.
    pub fn from_option(value: Option<f64>) -> Signal {
        value.map_or(Signal::Absent, Signal::now)
    }

    /// The value, when there is one, whatever its age.
    pub fn value(&self) -> Option<f64> {
        match self {
            Signal::Read { value, .. } => Some(*value),
            _ => None,
        }
    }
}

/// Every signal that a policy can see.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Telemetry {
    /// The host's CPU pressure: `some avg10` of `/proc/pressure/cpu` over 100, 0 to 1.
    pub pressure: Signal,
    /// Growth of our own run-queue delay over the interval, in milliseconds (`/proc/self/schedstat`).
    pub delay_ms: Signal,
    /// Throttled periods of the heavy slice over all of its periods in the interval, 0 to 1.
    pub throttled: Signal,
    /// What the heavy work asks for, 0 to 1; see [`super::demand()`].
    pub demand: Signal,
    /// The CPU pressure that the protected side suffers: `some avg10` of its outermost slice over 100.
    pub protected_pressure: Signal,
    /// As `throttled`, of the protected slice: its own budget is then what holds it up.
    pub protected_throttled: Signal,
}

/// Why nothing is decided.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// Such as `CPU pressure of the host`.
    pub signal: &'static str,
    /// What is wrong with it.
    pub why: String,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.signal, self.why)
    }
}

/// Collects what is wrong while signals are looked at.
pub(super) struct Check {
    stale_after: Duration,
    /// What is wrong.
    pub faults: Vec<Fault>,
    /// Some growth has no second reading yet.
    pub pending: bool,
}

impl Check {
    pub(super) fn new(stale_after: Duration) -> Check {
        Check {
            stale_after,
            faults: Vec::new(),
            pending: false,
        }
    }

    /// The value of a signal between 0 and `most`; a fault is noted. Absent is no fault here.
    pub(super) fn value(&mut self, name: &'static str, signal: &Signal, most: f64) -> Option<f64> {
        let why = match signal {
            Signal::Absent => return None,
            Signal::Pending => {
                self.pending = true;
                return None;
            }
            Signal::Broken(why) => why.clone(),
            Signal::Read { value, age } if *age > self.stale_after => {
                format!("{value:.2} is of {:.1} s ago", age.as_secs_f64())
            }
            // Not a comparison that lets NaN through.
            Signal::Read { value, .. } if (0.0..=most).contains(value) => return Some(*value),
            Signal::Read { value, .. } => format!("{value} is no value that it can have"),
        };
        self.faults.push(Fault { signal: name, why });
        None
    }

    /// As [`Check::value`], where absent is a fault too.
    pub(super) fn needed(&mut self, name: &'static str, signal: &Signal, most: f64) -> Option<f64> {
        if *signal == Signal::Absent {
            let why = "there is none on this machine".to_owned();
            self.faults.push(Fault { signal: name, why });
        }
        self.value(name, signal, most)
    }
}

/// How each signal is called in words.
pub(super) mod name {
    pub const PRESSURE: &str = "CPU pressure of the host";
    pub const DELAY: &str = "run-queue delay of the guard";
    pub const THROTTLED: &str = "throttling of the heavy slice";
    pub const DEMAND: &str = "demand of heavy work";
    pub const PROTECTED_PRESSURE: &str = "CPU pressure of the protected slice";
    pub const PROTECTED_THROTTLED: &str = "throttling of the protected slice";
}
