//! Scenarios of the guard. They run inside a booted guest, each in a fresh one.

mod chaos;
mod client;
mod demo;
mod docs;
#[path = "../../../dbus-interfaces/examples/app.rs"]
mod example_app;
mod experiment;
mod fuzz;
mod harness;
mod load;
mod scenarios;

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;

use harness::outcome;
use harness::session::Place;

/// Scenarios of Linux Workload Guard, for guests of the testbed.
#[derive(Debug, Parser)]
#[command(name = "guard-scenarios")]
enum Command {
    /// Print the scenarios, one JSON object a line.
    List,
    /// Run a scenario, as root: exit 0 passed, 1 failed.
    Run {
        /// Its name.
        name: String,
    },
    /// Show the product on real work, as root.
    Demo,
    /// Measure, as root: an experiment of `guard-benchmarks` with the product installed.
    Experiment {
        /// Its arguments.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// The part of `run` and `demo` that runs as the user.
    #[command(hide = true)]
    InSession {
        /// `run NAME`, `demo` or `experiment …`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Be a load.
    #[command(subcommand, hide = true)]
    Load(load::Mode),
    /// Be a bus client that calls everything with anything.
    #[command(hide = true)]
    Fuzz {
        /// What to do, as JSON.
        task: String,
    },
    /// Be the example of an app.
    #[command(hide = true)]
    ExampleApp,
    /// Be a bus client that attaches itself to a class.
    #[command(hide = true)]
    AttachSelf {
        /// The class.
        class: String,
    },
}

fn main() -> ExitCode {
    match act(Command::parse()) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            eprintln!("guard-scenarios: {error:#}");
            ExitCode::from(outcome::FAIL)
        }
    }
}

fn act(command: Command) -> Result<u8> {
    match command {
        Command::List => scenarios::print_list().map(|()| outcome::PASS),
        Command::Run { name } => {
            scenarios::find(&name)?;
            enter(scenarios::place_of(&name), &["run", &name])
        }
        Command::Demo => enter(Place::Inside, &["demo"]),
        Command::Experiment { words } => {
            let words = words.iter().map(String::as_str);
            enter(
                Place::Inside,
                &std::iter::once("experiment")
                    .chain(words)
                    .collect::<Vec<_>>(),
            )
        }
        Command::InSession { words } => match words
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>()
            .as_slice()
        {
            ["run", name] => {
                outcome::start();
                let scenario = scenarios::find(name)?;
                let verdict =
                    harness::session::Session::open().and_then(|session| (scenario.run)(&session));
                Ok(outcome::conclude(name, verdict))
            }
            ["demo"] => demo::run(),
            ["experiment", words @ ..] => experiment::run(words),
            _ => anyhow::bail!("nothing to do in the session: {words:?}"),
        },
        Command::Load(mode) => load::run(mode).map(|()| outcome::PASS),
        Command::Fuzz { task } => fuzz::client(&task).map(|()| outcome::PASS),
        Command::ExampleApp => example_app::main()
            .map(|()| outcome::PASS)
            .map_err(anyhow::Error::from_boxed),
        Command::AttachSelf { class } => client::attach_self(&class).map(|()| outcome::PASS),
    }
}

fn enter(place: Place, words: &[&str]) -> Result<u8> {
    let status = harness::session::enter(place, words)?;
    u8::try_from(status).context("an exit status beyond 255")
}
