//! Benchmarks of the guard's own paths. Each prints a table, and writes a TSV file beside the others in
//! `benchmarks/results/`.

mod experiment;
mod idle;
mod machine;
mod replay;
mod status_time;
mod tick;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use experiment::Interrupted;

#[derive(Parser)]
#[command(about = "Benchmarks of the guard's own paths")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// CPU time of one look at N idle processes, beside the Python original's loop
    Tick(tick::Options),
    /// The pure policies over fixed traces
    #[command(subcommand)]
    Replay(replay::Command),
    /// Live experiments in the session of who runs them; `cargo xtask experiment` runs them elsewhere
    #[command(subcommand)]
    Experiment(experiment::Command),
    /// `workload-guard status` as a whole process beside `busctl --user status`, in pairs, in your session
    StatusTime(status_time::Options),
    /// One idle process of a benchmark; ends with its parent
    #[command(hide = true)]
    Idle(idle::Options),
    /// One run of the guard's sampler; prints what it used
    #[command(hide = true)]
    TickWorker(tick::worker::Options),
}

fn main() -> ExitCode {
    let outcome = match Args::parse().command {
        Command::Tick(options) => tick::run(&options),
        Command::Replay(command) => replay::run(&command),
        Command::Experiment(command) => experiment::run(&command),
        Command::StatusTime(options) => status_time::run(&options),
        Command::Idle(options) => idle::stay(&options),
        Command::TickWorker(options) => tick::worker::run(&options),
    };
    let Err(error) = outcome else {
        return ExitCode::SUCCESS;
    };
    eprintln!("guard-benchmarks: {error:#}");
    // As a shell says it.
    match error.downcast_ref::<Interrupted>() {
        Some(Interrupted(signal)) => ExitCode::from(128 + signal),
        None => ExitCode::FAILURE,
    }
}

/// Prints to stdout. A reader that has seen enough (`| head`) is no error.
fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}
