//! `cargo xtask package`: the product as packages of distributions, from the installer's list of what goes where.

mod control;
mod deb;

use anyhow::Result;

/// What is built.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Debian packages: workload-guard (the guard), workload-guard-bench, and workload-guard-common for both.
    Deb(deb::Args),
}

/// Builds it.
pub fn run(command: &Command) -> Result<()> {
    match command {
        Command::Deb(args) => deb::run(args),
    }
}
