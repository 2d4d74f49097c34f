//! CPU time of one look at N idle processes: the guard's sampler and engine beside the Python original's loop, in
//! turn, on the same processes.

mod report;
pub mod worker;

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, ensure};
use guard_system::cgroup::CgroupFs;
use guard_system::proc::ProcFs;

use crate::idle::{Herd, PER_GROUP};
use crate::machine::Machine;
use report::{Row, Side};
use worker::Outcome;

/// Looks of the guard in one run, at least.
const GUARD_TICKS: u32 = 2000;

/// Arguments.
#[derive(clap::Args)]
pub struct Options {
    /// How many idle processes
    #[arg(long, value_delimiter = ',', default_values_t = [100, 1000, 5000, 10_000])]
    counts: Vec<usize>,
    /// Runs of each side for each count; the table shows the median
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Processes to read in one run, by which its number of looks is chosen
    #[arg(long, default_value_t = 50_000)]
    reads: usize,
    /// Control group to work in, relative to the mount [default: this process's own]
    #[arg(long)]
    cgroup: Option<String>,
    /// The peer
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/peer/python_tick.py"))]
    peer: PathBuf,
    /// Where to write the TSV file
    #[arg(long, default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/results/tick.tsv"))]
    output: PathBuf,
}

/// Runs it, prints the table and writes the file.
pub fn run(options: &Options) -> anyhow::Result<()> {
    let cgroups = CgroupFs::detect()?;
    let home = match &options.cgroup {
        Some(cgroup) => cgroup.clone(),
        None => ProcFs::default()
            .cgroup(std::process::id())
            .context("this process has no control group")?,
    };
    let machine = Machine::read()?;
    let mut rows = Vec::new();
    for &count in &options.counts {
        eprintln!("{count} idle processes, {PER_GROUP} in each control group …");
        let herd = Herd::start(&cgroups, &home, count)?;
        let ticks = (options.reads / count.max(1)).clamp(5, 1000) as u32;
        // An idle look of the guard is so short that its clock needs more of them.
        let guard_ticks = ticks.max(GUARD_TICKS);
        let (mut guard, mut learning) = (Vec::new(), Vec::new());
        let (mut exhaustive, mut python) = (Vec::new(), Vec::new());
        // In turn, so that what else the machine does meets both.
        for _ in 0..options.runs {
            let run = |ticks, words| checked(count, guard_run(herd.path(), ticks, words)?);
            guard.push(run(guard_ticks, &[])?);
            learning.push(run(guard_ticks, &["--learning"])?);
            exhaustive.push(run(ticks, &["--learning", "--exhaustive"])?);
            python.push(checked(
                count,
                python_run(options, &cgroups, &herd, ticks)?,
            )?);
        }
        rows.push(Row::new(Side::Guard, count, herd.groups(), &guard));
        rows.push(Row::new(Side::Learning, count, herd.groups(), &learning));
        rows.push(Row::new(
            Side::Exhaustive,
            count,
            herd.groups(),
            &exhaustive,
        ));
        rows.push(Row::new(Side::Python, count, herd.groups(), &python));
    }
    print!("{}", report::table(&machine, &rows));
    std::fs::write(&options.output, report::tsv(&machine, &rows))
        .with_context(|| options.output.display().to_string())?;
    eprintln!("written: {}", options.output.display());
    Ok(())
}

fn guard_run(cgroup: &str, ticks: u32, words: &[&str]) -> anyhow::Result<Outcome> {
    let program = std::env::current_exe()?;
    let mut command = Command::new(program);
    command
        .args(["tick-worker", "--cgroup", cgroup])
        .args(["--ticks", &ticks.to_string()])
        .args(words);
    outcome(&mut command)
}

fn python_run(
    options: &Options,
    cgroups: &CgroupFs,
    herd: &Herd,
    ticks: u32,
) -> anyhow::Result<Outcome> {
    let folder = cgroups.folder(herd.path())?;
    outcome(
        Command::new("python3")
            .arg(&options.peer)
            .arg(folder)
            .arg(ticks.to_string()),
    )
}

fn outcome(command: &mut Command) -> anyhow::Result<Outcome> {
    let name = format!("{:?}", command.get_program());
    let output = command
        .output()
        .with_context(|| format!("{name} cannot be started"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success(),
        "{name} failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_str(&text).with_context(|| format!("{name} printed {text:?}"))
}

/// A figure counts only when all processes were seen.
fn checked(count: usize, outcome: Outcome) -> anyhow::Result<Outcome> {
    ensure!(
        outcome.processes == count,
        "{} of {count} processes were seen",
        outcome.processes
    );
    Ok(outcome)
}
