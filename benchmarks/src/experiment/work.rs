//! What is run: a group of workers with a fixed amount of work, a hog, and a probe.

use std::fs::File;
use std::hint::black_box;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use nix::sys::prctl;
use nix::sys::signal::Signal;

use super::interrupt::unblock;

/// Rounds of [`mix`] in one iteration of the probe. The original's probe is in Python, whose loop takes about
/// as long for one.
const PROBE_ROUNDS: u64 = 50;

/// A process of an experiment.
#[derive(clap::Subcommand)]
pub enum Work {
    /// So many processes, each with so many iterations; prints the seconds that all took together
    Group {
        /// Processes
        workers: u32,
        /// Of each
        iterations: u64,
    },
    /// One worker
    Worker {
        /// How many
        iterations: u64,
    },
    /// Uses all of one CPU until it is ended
    Hog,
    /// Does a fixed piece of work at fixed times
    Probe {
        /// A row for each piece: when it was due, in seconds; how late it began and how long it took, in ms
        out: PathBuf,
        /// Iterations in one piece
        #[arg(long)]
        iterations: u64,
        /// Milliseconds between two pieces
        #[arg(long)]
        period: u64,
        /// Seconds
        #[arg(long)]
        seconds: f64,
    },
}

/// Runs it.
pub fn run(work: &Work) -> anyhow::Result<()> {
    unblock()?;
    match work {
        Work::Group {
            workers,
            iterations,
        } => group(*workers, *iterations),
        Work::Worker { iterations } => {
            prctl::set_pdeathsig(Signal::SIGKILL)?;
            mix(*iterations);
            Ok(())
        }
        Work::Hog => loop {
            mix(1_000_000);
        },
        Work::Probe {
            out,
            iterations,
            period,
            seconds,
        } => {
            let file =
                File::create(out).with_context(|| format!("cannot write {}", out.display()))?;
            probe(
                &mut BufWriter::new(file),
                *iterations,
                Duration::from_millis(*period),
                Duration::from_secs_f64(*seconds),
            )
        }
    }
}

fn group(workers: u32, iterations: u64) -> anyhow::Result<()> {
    let program = std::env::current_exe()?;
    let begin = Instant::now();
    let children = (0..workers)
        .map(|_| {
            Command::new(&program)
                .args(["experiment", "work", "worker", &iterations.to_string()])
                .spawn()
        })
        .collect::<std::io::Result<Vec<Child>>>()?;
    for mut child in children {
        let status = child.wait()?;
        ensure!(status.success(), "a worker ended with {status}");
    }
    println!("{}", begin.elapsed().as_secs_f64());
    Ok(())
}

/// The schedule is fixed: a piece that is late moves none of the others, and each is done.
fn probe(
    out: &mut impl Write,
    iterations: u64,
    period: Duration,
    length: Duration,
) -> anyhow::Result<()> {
    let begin = Instant::now();
    for n in 1.. {
        let due = period * n;
        if due >= length {
            break;
        }
        std::thread::sleep((begin + due).saturating_duration_since(Instant::now()));
        let started = begin.elapsed();
        // A queue that never gets shorter must not keep it running for ever.
        if started >= length * 2 {
            break;
        }
        mix(iterations * PROBE_ROUNDS);
        let ended = begin.elapsed();
        writeln!(
            out,
            "{:.3}\t{:.3}\t{:.3}",
            due.as_secs_f64(),
            (started - due).as_secs_f64() * 1e3,
            (ended - started).as_secs_f64() * 1e3,
        )?;
    }
    Ok(out.flush()?)
}

/// Integer mixing that no compiler can leave out.
fn mix(iterations: u64) {
    let mut value = black_box(0x9e37_79b9_7f4a_7c15_u64);
    // A plain count: an iterator's cost would depend on how this was built.
    let mut n = 0;
    while n < iterations {
        value ^= value >> 30;
        value = value.wrapping_mul(0xbf58_476d_1ce4_e5b9).wrapping_add(n);
        n += 1;
    }
    black_box(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_does_every_piece_of_its_schedule() {
        let mut out = Vec::new();
        probe(
            &mut out,
            1,
            Duration::from_millis(5),
            Duration::from_millis(52),
        )
        .expect("it runs");
        let text = String::from_utf8(out).expect("text");
        let due: Vec<&str> = text
            .lines()
            .filter_map(|line| line.split('\t').next())
            .collect();
        assert_eq!(due.len(), 10, "{text}");
        assert_eq!((due[0], due[9]), ("0.005", "0.050"));
        assert!(text.lines().all(|line| line.split('\t').count() == 3));
    }
}
