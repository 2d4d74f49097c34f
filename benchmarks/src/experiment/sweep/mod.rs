//! Fixed work under each static quota of the heavy slice.

mod report;

use std::time::Duration;

use anyhow::{Context, ensure};

use super::interrupt::Interrupt;
use super::session::{HEAVY, Job, Session, percent, pressure};
use super::table::Table;
use super::{Common, in_session};
use crate::machine::Machine;
use report::{COLUMNS, Trial};

/// How long one trial may take.
const PATIENCE: Duration = Duration::from_secs(1800);

/// Arguments.
#[derive(clap::Args)]
pub struct Options {
    /// Of every experiment
    #[command(flatten)]
    common: Common,
    /// Quotas of the heavy slice, in percent of one logical CPU
    #[arg(long, value_delimiter = ',', default_values_t = [100, 150, 200, 250, 300, 350, 400],
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    quotas: Vec<u32>,
    /// Worker processes
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1024))]
    workers: u32,
    /// Iterations of each worker
    #[arg(long, default_value_t = 250_000_000)]
    work: u64,
}

/// Runs it.
pub fn run(options: &Options) -> anyhow::Result<()> {
    let machine = Machine::read()?;
    let cpus = options.common.cpus(machine.cpus);
    let about = about(options, &machine, cpus);
    for line in &about {
        eprintln!("{line}");
    }
    let path = options.common.out.join("quota-sweep.tsv");
    let trials = in_session(
        &options.common,
        |session| changes(options, session),
        |session, interrupt| {
            let mut table = Table::create(&path, &about, COLUMNS)?;
            session.guard(false)?;
            trials(options, cpus, session, interrupt, &mut table)
        },
    )?;
    crate::print(&report::summary(&trials, cpus))?;
    let svg = path.with_extension("svg");
    std::fs::write(&svg, report::plot(&trials, &machine, cpus))
        .with_context(|| svg.display().to_string())?;
    eprintln!("written: {}, {}", path.display(), svg.display());
    Ok(())
}

fn about(options: &Options, machine: &Machine, cpus: usize) -> Vec<String> {
    let Options {
        common,
        workers,
        work,
        ..
    } = options;
    let mut about = vec![
        machine.headline(),
        format!(
            "{workers} worker processes of {work} iterations each; {} runs of each quota, the order rotated from round to round; \
             {} s after each change of the quota and between trials",
            common.reps, common.pause
        ),
        "elapsed_s: from the first worker's start to the last one's end; cpu_s and periods: growth of the slice's cpu.stat; \
         psi: the host's, at the end of the trial"
            .to_owned(),
        format!(
            "again: cargo xtask experiment quota-sweep --reps {} --workers {workers} --work {work}",
            common.reps
        ),
    ];
    if cpus < machine.cpus {
        about.push(format!(
            "emulated: {} CPUs are shown and {cpus} exist, so times say nothing of another machine",
            machine.cpus
        ));
    }
    if let Some(most) = options
        .quotas
        .iter()
        .copied()
        .max()
        .filter(|most| *most as usize > cpus * 100)
    {
        about.push(format!(
            "{most} % asks for more than the {cpus} CPUs that there are: those trials are kept, and do not count"
        ));
    }
    about
}

fn changes(options: &Options, session: &Session) -> anyhow::Result<Vec<String>> {
    let before = session.quota(HEAVY)?.usec_per_sec;
    let quotas: Vec<String> = options.quotas.iter().map(u32::to_string).collect();
    let guard = match session.guard_ran() {
        true => "stop workload-guard.service, which runs",
        false => "leave workload-guard.service stopped",
    };
    Ok(vec![
        guard.to_owned(),
        format!(
            "set CPUQuota= of {HEAVY}, which has {}, to {} % at run time, one after the other",
            percent(before),
            quotas.join(", ")
        ),
        format!(
            "run {} busy processes in it, {} times",
            options.workers,
            options.quotas.len() * options.common.reps as usize
        ),
    ])
}

fn trials(
    options: &Options,
    cpus: usize,
    session: &mut Session,
    interrupt: &Interrupt,
    table: &mut Table,
) -> anyhow::Result<Vec<Trial>> {
    let mut trials = Vec::new();
    for round in 0..options.common.reps {
        let mut quotas = options.quotas.clone();
        let count = quotas.len();
        quotas.rotate_left(round as usize % count);
        for quota in quotas {
            let trial = one(options, cpus, session, interrupt, quota, round + 1)?;
            table.row(&trial.cells(trials.len() + 1))?;
            eprintln!(
                "round {} of {}: {quota} %: {:.3} s{}",
                round + 1,
                options.common.reps,
                trial.elapsed_s,
                match trial.invalid.as_str() {
                    "" => String::new(),
                    why => format!(" (does not count: {why})"),
                }
            );
            trials.push(trial);
            interrupt.wait(options.common.pause())?;
        }
    }
    Ok(trials)
}

fn one(
    options: &Options,
    cpus: usize,
    session: &mut Session,
    interrupt: &Interrupt,
    quota: u32,
    round: u32,
) -> anyhow::Result<Trial> {
    let enforced = session.set_quota(HEAVY, quota)?;
    ensure!(
        (enforced - f64::from(quota)).abs() < 0.5,
        "the kernel enforces {enforced} % instead of {quota} %"
    );
    interrupt.wait(options.common.pause())?;
    let before = session.cpu_stat(HEAVY)?;
    let (workers, work) = (options.workers.to_string(), options.work.to_string());
    let mut job = Job::start(HEAVY, &["group", &workers, &work])?;
    let line = interrupt.until("the workers end", PATIENCE, || job.ended())?;
    let elapsed_s: f64 = line
        .parse()
        .with_context(|| format!("the workers said {line:?}"))?;
    let stat = session.cpu_stat(HEAVY)?.since(before);
    // Whoever else sets a quota meanwhile spoils the trial.
    let after = session.quota(HEAVY)?;
    let kept = after.usec_per_sec == Some(u64::from(quota) * 10_000) && after.holds;
    let psi = pressure();
    Ok(Trial {
        round,
        quota,
        enforced,
        workers: options.workers,
        work: options.work,
        elapsed_s,
        stat,
        psi_avg10: psi.map(|(avg10, _)| avg10),
        psi_avg60: psi.map(|(_, avg60)| avg60),
        invalid: match (kept, quota as usize > cpus * 100) {
            (false, _) => "the quota was changed meanwhile".to_owned(),
            (true, true) => format!("asks for more than {cpus} CPUs"),
            (true, false) => String::new(),
        },
    })
}
