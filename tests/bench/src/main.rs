//! Scenarios of the bench profiles. They run as root inside a booted guest, each in a fresh one.

mod harness;
mod scenarios;

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;

use harness::outcome;

/// Scenarios of Linux Workload Guard's bench profiles, for guests of the testbed.
#[derive(Debug, Parser)]
#[command(name = "bench-scenarios")]
enum Command {
    /// Print the scenarios, one JSON object a line.
    List,
    /// Run a scenario, as root: exit 0 passed, 1 failed.
    Run {
        /// Its name.
        name: String,
        /// Which of its boots this is.
        #[arg(long, default_value_t = 0)]
        boot: usize,
    },
    /// Call the bench service as the user whose process this is, once told to: what scenarios start.
    #[command(hide = true)]
    Call {
        /// What is called, as JSON.
        order: String,
    },
}

fn main() -> ExitCode {
    match act(&Command::parse()) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            eprintln!("bench-scenarios: {error:#}");
            ExitCode::from(outcome::FAIL)
        }
    }
}

fn act(command: &Command) -> Result<u8> {
    match command {
        Command::List => scenarios::print_list().map(|()| outcome::PASS),
        Command::Call { order } => harness::call::main(order).map(|()| outcome::PASS),
        Command::Run { name, boot } => {
            outcome::start();
            let scenario = scenarios::find(name)?;
            let run = scenario
                .boots
                .get(*boot)
                .with_context(|| format!("{name} has {} boots", scenario.boots.len()))?;
            Ok(outcome::conclude(&scenario.named(*boot), run()))
        }
    }
}
