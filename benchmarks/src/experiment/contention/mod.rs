//! A probe beside a hog in the protected slice, without the guard and with it.

mod report;
mod trial;

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use guard_system::proc::ProcFs;

use super::interrupt::Interrupt;
use super::session::{HEAVY, Job, PROTECTED, Session, percent, pressure};
use super::table::Table;
use super::{Common, in_session, seconds};
use crate::machine::Machine;
use trial::{COLUMNS, Mode, SAMPLE_COLUMNS, Sample, Seen, Trial};

/// While the experiment runs.
const PROTECTED_QUOTA: u32 = 100;
const HEAVY_QUOTA: u32 = 400;
/// Between two looks at where the processes are.
const LOOK: Duration = Duration::from_millis(50);
/// From a move until its samples are steady.
const AFTER_MOVE: f64 = 2.0;
/// On top of the probe's own length, before a trial has failed. It stops by itself at twice that length.
const PATIENCE: Duration = Duration::from_secs(60);

/// Arguments.
#[derive(clap::Args)]
pub struct Options {
    /// Of every experiment
    #[command(flatten)]
    common: Common,
    /// Seconds of one trial
    #[arg(long, default_value_t = 20.0, value_parser = seconds)]
    duration: f64,
    /// Hogs
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    workers: u32,
    /// Iterations of the probe in one piece of its work
    #[arg(long, default_value_t = 5_000)]
    iterations: u64,
    /// Milliseconds between two of its pieces
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    period: u64,
    /// Seconds at the start of a trial without the guard that do not count
    #[arg(long, default_value_t = 12.0, value_parser = seconds)]
    settle: f64,
    /// Routing alone: the guard runs with WORKLOAD_GUARD_DYNAMIC_QUOTA=false
    #[arg(long)]
    isolated: bool,
    /// Fail when a trial with the guard did not have every hog routed
    #[arg(long)]
    require_routed: bool,
}

/// Runs it.
pub fn run(options: &Options) -> anyhow::Result<()> {
    ensure!(
        options.settle < options.duration,
        "--settle {} leaves nothing of --duration {}",
        options.settle,
        options.duration
    );
    let machine = Machine::read()?;
    let cpus = options.common.cpus(machine.cpus);
    let about = about(options, &machine, cpus);
    for line in &about {
        eprintln!("{line}");
    }
    let name = match options.isolated {
        true => "contention-isolated",
        false => "contention",
    };
    let file = |end: &str| options.common.out.join(format!("{name}.{end}"));
    let trials = in_session(
        &options.common,
        |session| changes(options, session),
        |session, interrupt| {
            let mut tables = (
                Table::create(&file("tsv"), &about, COLUMNS)?,
                Table::create(&file("samples.tsv"), &about, SAMPLE_COLUMNS)?,
            );
            if options.isolated {
                session.variable("WORKLOAD_GUARD_DYNAMIC_QUOTA", "false")?;
            }
            trials(options, cpus, session, interrupt, &mut tables)
        },
    )?;
    crate::print(&report::summary(&trials))?;
    let title = match options.isolated {
        true => "A probe beside a hog, routing alone (static quota)",
        false => "A probe beside a hog, with the guard as it is installed",
    };
    let note = format!("{}, {cpus} CPUs, {}", machine.cpu, machine.date);
    let svg = file("svg");
    std::fs::write(&svg, report::plot(title, &trials, &note))
        .with_context(|| svg.display().to_string())?;
    eprintln!(
        "written: {}, {}, {}",
        file("tsv").display(),
        file("samples.tsv").display(),
        svg.display()
    );
    let unrouted = trials
        .iter()
        .filter(|trial| trial.mode == Mode::On && !trial.all_routed())
        .count();
    ensure!(
        !options.require_routed || unrouted == 0,
        "{unrouted} trials with the guard did not have every hog routed"
    );
    Ok(())
}

fn about(options: &Options, machine: &Machine, cpus: usize) -> Vec<String> {
    let Options {
        common,
        duration,
        workers,
        iterations,
        period,
        settle,
        ..
    } = options;
    let mut about = vec![
        machine.headline(),
        format!(
            "{workers} hogs and a probe of {iterations} iterations every {period} ms, each in a scope of {PROTECTED} \
             ({PROTECTED_QUOTA} %); {HEAVY} has {HEAVY_QUOTA} %; {} pairs of {duration} s, the order alternated",
            common.reps
        ),
        format!(
            "steady: without the guard from {settle} s on, with it from {AFTER_MOVE} s after the last hog was moved; \
             lateness: from when a piece was due until it began; work: how long it took"
        ),
        format!(
            "again: cargo xtask experiment contention{} --reps {} --duration {duration} --workers {workers}",
            if options.isolated { " --isolated" } else { "" },
            common.reps
        ),
    ];
    if cpus < machine.cpus {
        about.push(format!(
            "emulated: {} CPUs are shown and {cpus} exist, so times say nothing of another machine",
            machine.cpus
        ));
    }
    about
}

fn changes(options: &Options, session: &Session) -> anyhow::Result<Vec<String>> {
    let (protected, heavy) = (
        session.quota(PROTECTED)?.usec_per_sec,
        session.quota(HEAVY)?.usec_per_sec,
    );
    let mut changes = vec![
        format!(
            "stop and start workload-guard.service, which {}, for each trial",
            if session.guard_ran() {
                "runs"
            } else {
                "does not run"
            }
        ),
        format!(
            "set CPUQuota= of {PROTECTED}, which has {}, to {PROTECTED_QUOTA} % and of {HEAVY}, which has {}, to \
             {HEAVY_QUOTA} %, at run time",
            percent(protected),
            percent(heavy)
        ),
        format!(
            "run {} busy processes and a probe in {PROTECTED} for {:.0} s",
            options.workers,
            f64::from(options.common.reps) * 2.0 * options.duration
        ),
    ];
    if options.isolated {
        changes.push(
            "start the guard with WORKLOAD_GUARD_DYNAMIC_QUOTA=false, by a drop-in of this login; your settings stay as they are"
                .to_owned(),
        );
    }
    Ok(changes)
}

fn trials(
    options: &Options,
    cpus: usize,
    session: &mut Session,
    interrupt: &Interrupt,
    (table, samples): &mut (Table, Table),
) -> anyhow::Result<Vec<Trial>> {
    let mut trials = Vec::new();
    for round in 1..=options.common.reps {
        // The order alternates, so that a drift of the machine favours neither.
        let modes = match round % 2 {
            1 => [Mode::Off, Mode::On],
            _ => [Mode::On, Mode::Off],
        };
        for mode in modes {
            let seen = one(options, session, interrupt, mode)?;
            let number = trials.len() + 1;
            let rules = trial::Rules {
                settle: options.settle,
                after_move: AFTER_MOVE,
                pieces: pieces(options),
                cpus,
            };
            let trial = Trial::judge(number, round, mode, seen, &rules);
            table.row(&trial.cells())?;
            for sample in &trial.samples {
                samples.row(&trial.sample_cells(sample))?;
            }
            eprintln!("{}", trial.line());
            trials.push(trial);
            interrupt.wait(options.common.pause())?;
        }
    }
    Ok(trials)
}

/// How many pieces the probe has to do.
fn pieces(options: &Options) -> usize {
    let periods = options.duration * 1e3 / options.period as f64;
    // A piece that would be due at the very end is not begun.
    (periods.ceil() as usize).saturating_sub(1)
}

fn one(
    options: &Options,
    session: &mut Session,
    interrupt: &Interrupt,
    mode: Mode,
) -> anyhow::Result<Seen> {
    session.guard(false)?;
    session.set_quota(PROTECTED, PROTECTED_QUOTA)?;
    session.set_quota(HEAVY, HEAVY_QUOTA)?;
    if mode == Mode::On {
        session.guard(true)?;
    }
    interrupt.wait(options.common.pause())?;
    let proc = ProcFs::default();
    let is_heavy = |pid: u32| proc.cgroup(pid).is_some_and(|group| group.contains(HEAVY));
    let before = (session.cpu_stat(PROTECTED)?, session.cpu_stat(HEAVY)?);
    let out = std::env::temp_dir().join(format!("guard-experiment-{}.tsv", std::process::id()));
    let begin = Instant::now();
    let hogs = (0..options.workers)
        .map(|_| Job::start(PROTECTED, &["hog"]))
        .collect::<anyhow::Result<Vec<Job>>>()?;
    let mut probe = Job::start(
        PROTECTED,
        &[
            "probe",
            &out.display().to_string(),
            "--iterations",
            &options.iterations.to_string(),
            "--period",
            &options.period.to_string(),
            "--seconds",
            &options.duration.to_string(),
        ],
    )?;
    let mut moved: Vec<Option<f64>> = vec![None; hogs.len()];
    let mut probe_moved = false;
    let patience = Duration::from_secs_f64(options.duration * 2.0) + PATIENCE;
    let end = begin + patience;
    while probe.ended()?.is_none() {
        for (hog, moved) in hogs.iter().zip(&mut moved) {
            if moved.is_none() && is_heavy(hog.pid()) {
                *moved = Some(begin.elapsed().as_secs_f64());
            }
        }
        probe_moved |= is_heavy(probe.pid());
        ensure!(Instant::now() < end, "the probe does not end");
        interrupt.wait(LOOK)?;
    }
    let still = hogs.iter().filter(|hog| is_heavy(hog.pid())).count();
    let after = (session.cpu_stat(PROTECTED)?, session.cpu_stat(HEAVY)?);
    let seconds = begin.elapsed().as_secs_f64();
    drop(hogs);
    let text = std::fs::read_to_string(&out).with_context(|| out.display().to_string())?;
    std::fs::remove_file(&out)?;
    Ok(Seen {
        moved,
        still_routed: still,
        probe_moved,
        samples: text
            .lines()
            .map(Sample::parse)
            .collect::<anyhow::Result<_>>()?,
        seconds,
        protected: after.0.since(before.0),
        heavy: after.1.since(before.1),
        heavy_quota: session.quota(HEAVY)?.percent(),
        psi_avg10: pressure().map(|(avg10, _)| avg10),
    })
}
