//! Live experiments: what budgets and routing do to real work, in the session of who runs this.
//!
//! Each says first what it will change, writes a row a trial, keeps every trial with whether it counts and why
//! not, and puts everything back, also on a signal.

mod contention;
mod interrupt;
mod plot;
mod session;
pub mod stats;
mod sweep;
mod table;
mod work;

use std::fs;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Subcommand;

use interrupt::Interrupt;
pub use interrupt::Interrupted;
use session::Session;

/// The experiments.
#[derive(Subcommand)]
pub enum Command {
    /// How long a fixed piece of work takes under each static quota of the heavy slice
    QuotaSweep(sweep::Options),
    /// An interactive probe beside a hog in the protected slice, without the guard and with it
    Contention(contention::Options),
    /// What the experiments run
    #[command(subcommand, hide = true)]
    Work(work::Work),
}

/// Arguments of each experiment.
#[derive(clap::Args)]
pub struct Common {
    /// Trials of each kind
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    reps: u32,
    /// Seconds between two trials, and after a change of a quota
    #[arg(long, default_value_t = 2.0, value_parser = seconds)]
    pause: f64,
    /// Folder for the TSV and SVG files
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/results"))]
    out: PathBuf,
    /// CPUs that really exist, where this machine shows more than it has [default: all that it shows]
    #[arg(long)]
    real_cpus: Option<usize>,
    /// Do not ask
    #[arg(long)]
    yes: bool,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("seconds from 0 to 86400".to_owned()),
    }
}

impl Common {
    fn pause(&self) -> std::time::Duration {
        std::time::Duration::from_secs_f64(self.pause)
    }

    /// CPUs that a quota can really use.
    fn cpus(&self, shown: usize) -> usize {
        self.real_cpus.map_or(shown, |real| real.min(shown))
    }
}

/// Runs one.
pub fn run(command: &Command) -> anyhow::Result<()> {
    match command {
        Command::QuotaSweep(options) => sweep::run(options),
        Command::Contention(options) => contention::run(options),
        Command::Work(work) => work::run(work),
    }
}

/// Says what will change and asks, then runs `body`, and puts everything back whatever became of it.
fn in_session<T>(
    common: &Common,
    changes: impl FnOnce(&Session) -> anyhow::Result<Vec<String>>,
    body: impl FnOnce(&mut Session, &Interrupt) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let interrupt = Interrupt::block()?;
    let mut session = Session::open()?;
    eprintln!("This will, on this machine:");
    for change in changes(&session)? {
        eprintln!("  - {change}");
    }
    eprintln!(
        "All of it is put back at the end, also after Ctrl-C; after a kill -9 it ends when you log out."
    );
    if !common.yes {
        confirm()?;
    }
    fs::create_dir_all(&common.out)
        .with_context(|| format!("cannot make {}", common.out.display()))?;
    let outcome = body(&mut session, &interrupt);
    let back = session.put_back();
    match (outcome, back) {
        (outcome, Ok(())) => outcome,
        (Ok(_), Err(back)) => Err(back),
        // The signal keeps its exit status; both are said.
        (Err(error), Err(back)) => {
            eprintln!("guard-benchmarks: {back:#}");
            Err(error)
        }
    }
}

fn confirm() -> anyhow::Result<()> {
    if !io::stdin().is_terminal() {
        bail!("nobody can be asked here: --yes says that it may begin");
    }
    eprint!("Begin? [y/N] ");
    io::stderr().flush()?;
    interrupt::unblock()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    interrupt::block_again()?;
    if !matches!(answer.trim(), "y" | "Y" | "yes") {
        bail!("nothing was changed");
    }
    Ok(())
}
