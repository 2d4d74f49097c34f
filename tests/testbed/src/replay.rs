//! `cargo xtask replay`: the replays of `benchmarks/`, under one command.

use std::ffi::OsString;

use anyhow::{Context, Result};

use crate::payload::cargo;
use crate::process;

/// Arguments of `cargo xtask replay`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to replay, and its options; `--help` lists them.
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "WHAT"
    )]
    what: Vec<OsString>,
}

/// Runs it with the caller's output, since it is the caller who wants it; returns its exit status.
pub fn run(args: &Args) -> Result<u8> {
    let mut command = cargo();
    command
        .args([
            "run",
            "--quiet",
            "--package",
            "guard-benchmarks",
            "--",
            "replay",
        ])
        .args(&args.what);
    let status = command.status().context("cannot start cargo")?;
    Ok(u8::try_from(process::shell_status(status)).unwrap_or(1))
}
