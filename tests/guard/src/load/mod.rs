//! Loads: programs whose name and arguments match no rule, and that are busy when they are told to.
//!
//! Each prints `ready` and the PIDs that it started. SIGUSR1 makes it busy, SIGUSR2 idle,
//! SIGHUP busy for 120 ms.

mod forker;
mod launcher;
mod probe;
mod spinner;
mod storm;
mod tree;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use nix::sys::prctl;
use nix::sys::signal::Signal;

pub use probe::read_latencies;

/// What a load does.
#[derive(Debug, clap::Subcommand)]
pub enum Mode {
    /// All of one CPU while it is busy, which it is from the start.
    Spin {
        /// Start idle.
        #[arg(long)]
        idle: bool,
        /// End with the parent.
        #[arg(long)]
        with_parent: bool,
        /// Ignored: what a scenario wants to see in the command line.
        #[arg(last = true)]
        rest: Vec<OsString>,
    },
    /// Ends after so many milliseconds.
    Short {
        /// Milliseconds.
        ms: u64,
    },
    /// An idle parent of idle spinners: the children take the signals.
    Nest {
        /// Spinners.
        children: u32,
        /// Put the children into this sub-cgroup of the delegated unit.
        #[arg(long)]
        into: Option<String>,
    },
    /// A spinner with idle children, each with an idle child of its own.
    Tree {
        /// Children.
        children: u32,
    },
    /// A spinner that starts and reaps short-lived children all the time.
    Forker,
    /// An idle parent that starts sleeping processes as fast as it can, once it is ready, until there are so many.
    Grower {
        /// How many.
        count: u32,
    },
    /// An idle parent of many sleeping processes.
    Many {
        /// How many.
        count: u32,
    },
    /// An idle parent of a child that has ended and is not reaped.
    Zombie,
    /// Starts programs as fast as it can; SIGUSR1 and the like do nothing.
    Storm {
        /// File for how many, and in how many seconds.
        out: PathBuf,
        /// Seconds.
        seconds: u64,
    },
    /// Starts known-heavy programs one after the other, and measures how soon each is in the heavy slice.
    Launcher {
        /// File for a line a run: milliseconds.
        out: PathBuf,
        /// How many.
        runs: u64,
        /// Milliseconds over which the starts are spread.
        spread: u64,
    },
    /// An interactive program in miniature: every period a fixed piece of work, whose delay it writes down.
    Probe {
        /// File for one line a period: milliseconds since the start, latency in microseconds.
        out: PathBuf,
        /// Milliseconds between two pieces of work.
        #[arg(long, default_value_t = 20)]
        period: u64,
        /// Microseconds of CPU that a piece takes on an idle machine.
        #[arg(long, default_value_t = 250)]
        work: u64,
    },
}

/// Runs a load; ends only when it is told to.
pub fn run(mode: Mode) -> Result<()> {
    match mode {
        Mode::Spin {
            idle, with_parent, ..
        } => {
            if with_parent {
                prctl::set_pdeathsig(Signal::SIGKILL)?;
            }
            spinner::Spinner::new(!idle)?.ready_and_obey(&[])
        }
        Mode::Short { ms } => {
            ready(&[]);
            std::thread::sleep(Duration::from_millis(ms));
            Ok(())
        }
        Mode::Nest { children, into } => tree::nest(children, into.as_deref()),
        Mode::Tree { children } => tree::tree(children),
        Mode::Forker => forker::run(),
        Mode::Grower { count } => tree::grower(count),
        Mode::Many { count } => tree::many(count),
        Mode::Zombie => tree::zombie(),
        Mode::Storm { out, seconds } => storm::run(&out, Duration::from_secs(seconds)),
        Mode::Launcher { out, runs, spread } => {
            launcher::run(&out, runs, Duration::from_millis(spread))
        }
        Mode::Probe { out, period, work } => probe::run(
            &out,
            Duration::from_millis(period),
            Duration::from_micros(work),
        ),
    }
}

/// Tells who started it that it can be used now, and which processes it has started.
fn ready(members: &[u32]) {
    let members: Vec<String> = members.iter().map(u32::to_string).collect();
    println!("ready {}", members.join(" "));
}

/// Writes a file so that whoever sees it sees all of it.
fn write_whole(path: &Path, text: &str) -> Result<()> {
    let part = path.with_extension("part");
    std::fs::write(&part, text)?;
    Ok(std::fs::rename(part, path)?)
}
