//! The command line of `cargo xtask`.

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::container::launch::{self, Launch};
use crate::install::{self, InstallArgs, UninstallArgs};
use crate::{demo, experiment, images_command, package, progress, replay, runner, shell};

/// Builds, tests and shows Linux Workload Guard in real systemds of its own.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Cmd,
}

#[derive(Debug, Subcommand)]
enum Cmd {
    /// Runs the tests of every tier; the last line has the counts.
    Test(runner::Args),
    /// Shows the product at work on a real build, in a guest.
    Demo(demo::Args),
    /// Builds the guests' root trees, lists or removes them.
    Images(images_command::Args),
    /// Runs the pure policies over fixed traces, and prints where they lead (TSV).
    Replay(replay::Args),
    /// Measures what budgets and routing do to real work, in a machine; tables (TSV) and plots (SVG).
    Experiment(experiment::Args),
    /// Opens a shell (or runs a command) in a fresh guest that has the product at /opt/workload-guard.
    Shell(shell::Args),
    /// Installs the product for the user who runs it.
    Install(InstallArgs),
    /// Removes what `install` wrote; settings and history stay.
    Uninstall(UninstallArgs),
    /// Builds packages of distributions.
    #[command(subcommand)]
    Package(package::Command),
    /// Becomes systemd-nspawn; for ourselves only.
    #[command(hide = true)]
    ContainerLaunch(Launch),
}

/// Parses the command line and does what it says; returns the exit status.
pub fn run() -> Result<u8> {
    let cli = Cli::parse();
    progress::start();
    match cli.command {
        Cmd::Test(args) => runner::run(&args),
        Cmd::Demo(args) => demo::run(&args),
        Cmd::Images(args) => images_command::run(&args).map(|()| 0),
        Cmd::Replay(args) => replay::run(&args),
        Cmd::Experiment(args) => experiment::run(&args),
        Cmd::Shell(args) => shell::run(&args),
        Cmd::Install(args) => install::install(args).map(|()| 0),
        Cmd::Uninstall(args) => install::uninstall(args).map(|()| 0),
        Cmd::Package(command) => package::run(&command).map(|()| 0),
        Cmd::ContainerLaunch(launch) => launch::run(&launch).map(|()| 1),
    }
}
