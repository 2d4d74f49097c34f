//! Replays: the pure policies over fixed traces. They need no machine and show what a policy does, not
//! how a machine answers.

mod quota;
mod routing;

use std::fs;
use std::path::PathBuf;

use anyhow::Context;
use clap::Subcommand;

/// What is replayed.
#[derive(Subcommand)]
pub enum Command {
    /// The quota's full path over each controller trace, by each policy
    Quota(Options),
    /// When the policy in force and the shadow policy route and bring back, over each trace
    Routing {
        /// Of both policies
        #[command(flatten)]
        parameters: routing::Parameters,
        /// Where the table goes
        #[command(flatten)]
        options: Options,
    },
}

/// Arguments.
#[derive(clap::Args)]
pub struct Options {
    /// Writes the TSV here instead of printing it
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Replays, and prints or writes the table.
pub fn run(command: &Command) -> anyhow::Result<()> {
    let (text, options) = match command {
        Command::Quota(options) => (quota::table(), options),
        Command::Routing {
            parameters,
            options,
        } => (routing::table(parameters)?, options),
    };
    match &options.out {
        None => crate::print(&text),
        Some(path) => {
            fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
        }
    }
}
