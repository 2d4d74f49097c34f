//! `cargo xtask`: builds and boots real systemds and runs the scenarios in them.

mod cli;
mod container;
mod demo;
mod experiment;
mod guest;
mod host;
mod images;
mod images_command;
mod install;
mod machine;
mod package;
mod payload;
mod process;
mod progress;
mod replay;
mod runner;
mod shell;
mod tail;

use std::process::ExitCode;

fn main() -> ExitCode {
    match cli::run() {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
