//! `cargo xtask shell`: a fresh guest to look around in.

use std::io::IsTerminal;
use std::path::PathBuf;

use anyhow::Result;

use crate::container::ContainerSource;
use crate::container::enter::Stdio;
use crate::guest::Guest;
use crate::payload::{self, Profile};
use crate::progress;

/// Arguments of `cargo xtask shell`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Suite of the guest.
    #[arg(long, default_value = "trixie", value_parser = clap::builder::PossibleValuesParser::new(crate::container::SUITES))]
    suite: String,
    /// As the ordinary user `dev` (uid 1000), in its user manager; else as root.
    #[arg(long)]
    user: bool,
    /// With a release build of the product, as tests use it; else with a development build.
    #[arg(long)]
    release: bool,
    /// Builds nothing: shows the guest this folder as the product.
    #[arg(long, value_name = "FOLDER", conflicts_with = "release")]
    payload: Option<PathBuf>,
    /// Command to run instead of a shell; its exit status becomes ours.
    #[arg(last = true)]
    command: Vec<String>,
}

/// Boots, attaches, ends; returns the command's exit status.
pub fn run(args: &Args) -> Result<u8> {
    let profile = if args.release {
        Profile::Release
    } else {
        Profile::Dev
    };
    let built = payload::take_or_build(args.payload.as_deref(), profile)?;
    let source = ContainerSource::new(&args.suite, &built.payload)?;
    let mut guest = source.boot()?;
    progress::say(&format!(
        "{} is up; the product is in /opt/workload-guard",
        guest.name()
    ));
    let status = if args.command.is_empty() {
        guest.attach(&["/bin/bash", "--login"], args.user, Stdio::Terminal)?
    } else {
        let command: Vec<&str> = args.command.iter().map(String::as_str).collect();
        let stdio = if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
            Stdio::Terminal
        } else {
            Stdio::Pipe
        };
        guest.attach(&command, args.user, stdio)?
    };
    Box::new(guest).shutdown()?;
    Ok(u8::try_from(status).unwrap_or(1))
}
