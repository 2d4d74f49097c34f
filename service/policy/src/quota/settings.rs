//! The controllers' settings.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// `[quota]`.
#[derive(Clone, Debug, PartialEq)]
pub struct QuotaSettings {
    /// Whether the controller moves the heavy slice's quota.
    pub dynamic: bool,
    /// By which policy.
    pub policy: Policy,
    /// Time between two decisions.
    pub interval: Duration,
    /// The least that a controller or a caller may set, in percent of one logical CPU.
    pub min: u32,
    /// The most, likewise.
    pub max: u32,
    /// The most that one decision changes, likewise.
    pub step: u32,
    /// Between any change and the next one.
    pub dwell: Duration,
    /// At or above this a CPU pressure (0 to 1) is high,
    pub pressure_high: f64,
    /// and at or below this it is low.
    pub pressure_low: f64,
    /// At or above this part of throttled periods (0 to 1) the heavy slice wants more.
    pub throttle_high: f64,
    /// At or above this the growth of our own run-queue delay in an interval is high, in milliseconds,
    pub delay_high: f64,
    /// and at or below this it is low.
    pub delay_low: f64,
    /// Whether AIMD's proposals are logged.
    pub aimd_shadow: bool,
    /// What AIMD multiplies by under pressure.
    pub aimd_decrease: f64,
    /// What AIMD adds, in percent of one logical CPU.
    pub aimd_add: f64,
}

impl Default for QuotaSettings {
    fn default() -> Self {
        QuotaSettings {
            dynamic: false,
            policy: Policy::Step,
            interval: Duration::from_secs(5),
            min: 100,
            max: 400,
            step: 50,
            dwell: Duration::from_secs(10),
            pressure_high: 0.40,
            pressure_low: 0.10,
            throttle_high: 0.10,
            delay_high: 20.0,
            delay_low: 5.0,
            aimd_shadow: false,
            aimd_decrease: 0.80,
            aimd_add: 10.0,
        }
    }
}

impl QuotaSettings {
    /// The least, to compute with.
    pub fn least(&self) -> f64 {
        f64::from(self.min)
    }

    /// The most, to compute with.
    pub fn most(&self) -> f64 {
        f64::from(self.max)
    }

    /// A quota between the bounds.
    pub fn clamped(&self, quota: f64) -> f64 {
        // Not f64::clamp, which panics where min > max; the settings refuse that, and this must not.
        quota.min(self.most()).max(self.least())
    }

    /// After this long a reading says nothing about now. A loaded machine may be late by a second.
    pub fn stale_after(&self) -> Duration {
        self.interval * 2 + Duration::from_secs(1)
    }
}

/// A policy that may act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// By the host's pressure, our own run-queue delay, throttling and demand.
    Step,
    /// By the pressure that the protected side suffers.
    Protected,
}

impl Policy {
    /// Every policy.
    pub const ALL: &[Policy] = &[Policy::Step, Policy::Protected];

    /// Its spelling in the settings and on the bus.
    pub fn as_str(self) -> &'static str {
        match self {
            Policy::Step => "step",
            Policy::Protected => "protected",
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Policy {
    type Err = ();

    fn from_str(text: &str) -> Result<Policy, ()> {
        let found = Policy::ALL.iter().find(|policy| policy.as_str() == text);
        found.copied().ok_or(())
    }
}
