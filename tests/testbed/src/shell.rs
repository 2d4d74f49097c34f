//! `cargo xtask shell`: a fresh guest to look around in.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::container::ContainerSource;
use crate::container::enter::{self, Stdio};
use crate::guest::Guest;
use crate::payload::{Payloads, Profile};
use crate::progress;
use crate::runner::tiers::{self, GuestTier};

/// For a command in the machine; a person who needs longer takes the container.
const COMMAND: Duration = Duration::from_secs(3600);

/// Arguments of `cargo xtask shell`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where the guest runs; in the machine there are only commands, no interactive shell.
    #[arg(long, value_enum, default_value = "container")]
    tier: GuestTier,
    /// Suite of the container; the machine has trixie.
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
    let command: Vec<&str> = args.command.iter().map(String::as_str).collect();
    if args.tier != GuestTier::Container {
        if command.is_empty() {
            bail!("the machine has no interactive shell: add a command, as in `-- journalctl`");
        }
        if args.suite != "trixie" {
            bail!("the machine has trixie only; --suite is for the container");
        }
    }
    let payloads = Payloads::new(args.payload.as_deref(), profile)?;
    let status = match args.tier {
        GuestTier::Container => in_container(args, &command, &payloads)?,
        GuestTier::Machine | GuestTier::Loader => in_machine(args, &command, &payloads)?,
    };
    Ok(u8::try_from(status).unwrap_or(1))
}

fn in_container(args: &Args, command: &[&str], payloads: &Payloads) -> Result<i32> {
    let mut guest = ContainerSource::new(&args.suite, payloads)?.boot()?;
    progress::say(&up(guest.name()));
    let terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let status = match (command, terminal) {
        ([], _) => guest.attach(&["/bin/bash", "--login"], args.user, Stdio::Terminal)?,
        (command, true) => guest.attach(command, args.user, Stdio::Terminal)?,
        (command, false) => guest.attach(command, args.user, Stdio::Pipe)?,
    };
    Box::new(guest).shutdown()?;
    Ok(status)
}

fn in_machine(args: &Args, command: &[&str], payloads: &Payloads) -> Result<i32> {
    let mut source = tiers::trixie(args.tier, payloads)?;
    let mut guest = source.fresh()?;
    progress::say(&up(guest.name()));
    let line = if args.user {
        enter::as_dev(command, Stdio::Pipe)
    } else {
        args.command.clone()
    };
    let line: Vec<&str> = line.iter().map(String::as_str).collect();
    let status = guest.run(&line, COMMAND, &mut |bytes| {
        // When nobody reads any more, the exit status still counts.
        let _ = std::io::stdout().write_all(bytes);
    })?;
    guest.shutdown()?;
    Ok(status)
}

fn up(guest: &str) -> String {
    format!("{guest} is up; the product is in /opt/workload-guard")
}
