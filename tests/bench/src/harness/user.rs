//! Running programs as an ordinary user.

use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::Result;

use super::command::{self, Ended};

/// The guest's ordinary user.
pub const UID: u32 = 1000;
/// Another one.
pub const OTHER: u32 = 1001;

/// Runs `argv` as that user to its end.
pub fn run(argv: &[&str]) -> Result<Ended> {
    command::finish(
        Command::new(argv[0])
            .args(&argv[1..])
            .uid(UID)
            .gid(UID)
            .current_dir("/"),
    )
}
