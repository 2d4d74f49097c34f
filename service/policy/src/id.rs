//! Who a process is.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A process, told apart from a later one that got the same PID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProcId {
    /// Its PID in the initial namespace of the guard.
    pub pid: u32,
    /// Its start time in clock ticks after boot (`/proc/PID/stat`, field 22; proc_pid_stat(5)).
    pub start: u64,
}

impl fmt::Display for ProcId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.pid)
    }
}

/// A moment, as time since an arbitrary point that never goes back (`CLOCK_MONOTONIC`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub std::time::Duration);

impl Moment {
    /// Time since `earlier`; zero when that is later.
    pub fn since(self, earlier: Moment) -> std::time::Duration {
        self.0.saturating_sub(earlier.0)
    }
}
