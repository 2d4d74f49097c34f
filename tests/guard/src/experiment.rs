//! An experiment of `guard-benchmarks` in the session, with the product installed as a user does.

use std::process::Command;

use anyhow::{Context, Result};

use crate::harness::command;
use crate::harness::guard::Guard;
use crate::harness::session::{Session, payload};

/// Runs it with its own output; answers its exit status.
pub fn run(words: &[&str]) -> Result<u8> {
    let session = Session::open()?;
    let _guard = Guard::install(&session, &[])?;
    let status = Command::new(payload("guard-benchmarks"))
        .arg("experiment")
        .args(words)
        .status()
        .context("cannot start guard-benchmarks")?;
    u8::try_from(command::shell_status(status)).context("an exit status beyond 255")
}
