//! What a diagnosis rests on: the last hour's snapshots, the machine, and the guard. Plain data, so that a
//! situation can be recorded and diagnosed elsewhere.

use serde::{Deserialize, Serialize};

use crate::snapshot::Snapshot;

/// Everything that a diagnosis looks at.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Situation {
    /// In seconds since 1970.
    pub now: u64,
    /// Snapshots, in the file's order; the last hour's count.
    pub history: Vec<Snapshot>,
    /// The machine.
    pub environment: Environment,
    /// The guard.
    pub guard: Guard,
}

/// The machine, as it is now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Environment {
    /// CPU pressure (`some avg10`), 0 to 1; none where the kernel tells none.
    pub psi: Option<f64>,
    /// Whether control groups are of version 2 alone.
    pub unified: bool,
    /// Whether the user manager has the cpu controller; none when that is not known.
    pub cpu_controller: Option<bool>,
    /// systemd's version.
    pub systemd: Option<u32>,
    /// The kernel's release, such as `6.12.1`.
    pub kernel: String,
    /// The sched_ext scheduler that is loaded.
    pub sched_ext: Option<String>,
    /// Programs that run and do a part of the same work.
    pub competing: Vec<Competing>,
    /// Whether control groups tell their own throttled time (`cpu.stat.local`); none when not known.
    pub stat_local: Option<bool>,
    /// The user.
    pub uid: u32,
}

impl Default for Environment {
    /// A machine that lacks nothing.
    fn default() -> Environment {
        Environment {
            psi: Some(0.0),
            unified: true,
            cpu_controller: Some(true),
            systemd: Some(257),
            kernel: "6.12.0".to_owned(),
            sched_ext: None,
            competing: Vec::new(),
            stat_local: Some(true),
            uid: 1000,
        }
    }
}

/// A program that does a part of the same work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Competing {
    /// Its name, such as `ananicy-cpp`.
    pub program: String,
    /// Its PID.
    pub pid: u32,
}

/// The guard, as it is now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Guard {
    /// `normal`, `degraded` or `paused`.
    pub state: String,
    /// Why it is not normal.
    pub reasons: Vec<String>,
    /// Watched units with the processes in each.
    pub watched: Vec<(String, u32)>,
    /// Routes since it started.
    pub routed_total: u64,
    /// Moves that did not happen since then.
    pub failed_total: u64,
    /// `active`, or why the kernel does not tell of new programs.
    pub exec_events: String,
    /// Whether the quota is steered.
    pub dynamic_quota: bool,
    /// The least quota, in percent of one logical CPU.
    pub quota_min: f64,
    /// Pressure at and above this is high, 0 to 1.
    pub pressure_high: f64,
    /// A throttled part of the heavy slice's periods at and above this counts, 0 to 1.
    pub throttle_high: f64,
    /// Seconds between two snapshots.
    pub interval_sec: u64,
    /// Why the history cannot be written.
    pub history_problem: Option<String>,
    /// The workloads.
    pub workloads: Vec<Workload>,
}

impl Default for Guard {
    /// A guard that is well, with the default settings.
    fn default() -> Guard {
        Guard {
            state: "normal".to_owned(),
            reasons: Vec::new(),
            watched: vec![("protected-workload.slice".to_owned(), 3)],
            routed_total: 0,
            failed_total: 0,
            exec_events: "active".to_owned(),
            dynamic_quota: false,
            quota_min: 100.0,
            pressure_high: 0.40,
            throttle_high: 0.10,
            interval_sec: 300,
            history_problem: None,
            workloads: Vec::new(),
        }
    }
}

/// A workload now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// Its class.
    pub class: String,
    /// Its command line.
    pub command: String,
    /// Seconds that its budget held it up since it was moved; none where the kernel does not tell.
    pub throttled_sec: Option<f64>,
    /// Seconds since it was moved.
    pub age_sec: f64,
}
