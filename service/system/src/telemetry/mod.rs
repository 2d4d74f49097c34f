//! What the quota controllers go by: pressure, throttling, use, and our own wait for a CPU.
//!
//! A file that a machine does not have is [`Signal::Absent`]; one that was there before and is not any
//! more, or that says what cannot be understood, is [`Signal::Broken`], which freezes the quota.

mod growth;
mod pressure;
mod runqueue;
mod throttling;

use std::path::PathBuf;
use std::time::Duration;

use guard_policy::quota::{Signal, Telemetry};

use crate::cgroup::CgroupFs;
use growth::Growth;
use pressure::Pressure;

/// The control groups that are looked at, relative to the cgroup mount; none while systemd gives none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    /// Of the heavy class's slice.
    pub heavy: Option<String>,
    /// Of the protected class's slice.
    pub protected: Option<String>,
    /// Of the outermost slice around that, whose pressure is what the whole protected side suffers.
    pub protected_outermost: Option<String>,
}

/// What one look found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Look {
    /// The signals, without the demand, which rests on the workloads too.
    pub telemetry: Telemetry,
    /// CPU of the heavy slice since the last look, in percent of one logical CPU; none at the first one.
    pub heavy_usage: Option<f64>,
}

/// Reads the signals, and remembers what a growth is counted from.
#[derive(Debug)]
pub struct Sensor {
    proc: PathBuf,
    cgroups: CgroupFs,
    host: Pressure,
    protected: Pressure,
    delay: Growth<1>,
    heavy_throttling: Growth<3>,
    protected_throttling: Growth<3>,
}

impl Sensor {
    /// Reads below `proc`, such as `/proc`, and `cgroups`.
    pub fn new(proc: impl Into<PathBuf>, cgroups: CgroupFs) -> Sensor {
        Sensor {
            proc: proc.into(),
            cgroups,
            host: Pressure::default(),
            protected: Pressure::default(),
            delay: Growth::default(),
            heavy_throttling: Growth::default(),
            protected_throttling: Growth::default(),
        }
    }

    /// One look, at a time that only grows.
    pub fn look(&mut self, groups: &Groups, now: Duration) -> Look {
        let pressure_of = |group: &str| self.cgroups.file(group, "cpu.pressure");
        let protected_pressure = match &groups.protected_outermost {
            Some(group) => match pressure_of(group) {
                Ok(file) => self.protected.read(&file),
                Err(error) => Signal::Broken(error.to_string()),
            },
            None => no_group(),
        };
        let heavy = throttling::read(&self.cgroups, groups.heavy.as_deref());
        let protected = throttling::read(&self.cgroups, groups.protected.as_deref());
        let (throttled, heavy_usage) = self.heavy_throttling.throttled(heavy, now);
        let (protected_throttled, _) = self.protected_throttling.throttled(protected, now);
        Look {
            telemetry: Telemetry {
                pressure: self.host.read(&self.proc.join("pressure/cpu")),
                delay_ms: self.delay.delay(runqueue::read(&self.proc), now),
                throttled,
                demand: Signal::Absent,
                protected_pressure,
                protected_throttled,
            },
            heavy_usage,
        }
    }
}

fn no_group() -> Signal {
    Signal::Broken("systemd gives the slice no control group".to_owned())
}

#[cfg(test)]
mod tests;
