//! The whole machine, looked at now and then: who used CPU since the last look, and what runs that does a part
//! of the same work. A look costs in proportion to all processes, so it belongs on a thread of its own.

mod census;
mod tools;

pub use census::{Census, Consumer, Group, Seen};
pub use tools::{Tool, competing};

use std::path::Path;

/// The kernel's release, such as `6.12.1-amd64`; empty where it cannot be read.
pub fn kernel_release(proc: &Path) -> String {
    std::fs::read_to_string(proc.join("sys/kernel/osrelease"))
        .map(|text| text.trim().to_owned())
        .unwrap_or_default()
}
