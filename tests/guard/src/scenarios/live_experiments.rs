//! Short versions of the live experiments: their tables, what does not count, and that all is put back, also on a
//! signal.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;
use workload_guard_dbus::names::GUARD_UNIT;

use super::{MACHINE, Scenario};
use crate::harness::cgroup;
use crate::harness::command;
use crate::harness::guard::{Guard, HEAVY, PROTECTED, Settings};
use crate::harness::home;
use crate::harness::load::signal;
use crate::harness::outcome::{Verdict, step};
use crate::harness::session::{HOME, RUNTIME_DIR, Session, payload};
use crate::harness::units;
use crate::harness::wait::{PATIENCE, until_true};

pub const SCENARIO: Scenario = Scenario {
    name: "live-experiments",
    tiers: MACHINE,
    quick: false,
    full: false,
    exclusive: true,
    timeout_s: 400,
    run,
};

/// The hog is routed within a second and stays. The controller would move the quota, were it not for `--isolated`.
const SETTINGS: Settings<'static> = &[
    ("WORKLOAD_GUARD_SAMPLE_SEC", "0.25"),
    ("WORKLOAD_GUARD_CPU_THRESHOLD", "10"),
    ("WORKLOAD_GUARD_SUSTAINED_SAMPLES", "3"),
    ("WORKLOAD_GUARD_RECOVERY_CPU_THRESHOLD", "3"),
    ("WORKLOAD_GUARD_EXCLUDE_PATTERNS", "work probe"),
    ("WORKLOAD_GUARD_DYNAMIC_QUOTA", "true"),
    ("WORKLOAD_GUARD_QUOTA_INTERVAL_SEC", "0.5"),
    ("WORKLOAD_GUARD_QUOTA_MIN_DWELL_SEC", "0.5"),
];

fn run(session: &Session) -> Verdict {
    let _guard = Guard::install(session, SETTINGS)?;
    let before = Before::now()?;
    asks_first()?;
    sweep()?;
    before.is_back()?;
    contention()?;
    before.is_back()?;
    on_a_signal()?;
    before.is_back()
}

/// What an experiment changes, and everything that it must not leave.
#[derive(Debug, PartialEq)]
struct Before {
    quotas: [String; 2],
    settings: BTreeMap<PathBuf, String>,
}

impl Before {
    fn now() -> Result<Before> {
        Ok(Before {
            quotas: quotas_without_the_guard()?,
            settings: home::listing(&home::config_dir())?,
        })
    }

    fn is_back(&self) -> Verdict {
        ensure!(units::active_state(GUARD_UNIT)? == "active", "the guard was not started again");
        let now = quotas_without_the_guard()?;
        ensure!(now == self.quotas, "quotas were {:?} and are {now:?}", self.quotas);
        let settings = home::listing(&home::config_dir())?;
        ensure!(settings == self.settings, "{:?}", home::difference(&self.settings, &settings));
        let folder = Path::new(RUNTIME_DIR).join(format!("systemd/user/{GUARD_UNIT}.d"));
        ensure!(!folder.exists(), "{} is left", folder.display());
        let left = units::systemctl(&["list-units", "--all", "--plain", "--no-legend", "guard-experiment-*"])?;
        ensure!(left.is_empty(), "left: {left}");
        Ok(())
    }
}

/// What the guard puts back when it stops; while it runs, it steers.
fn quotas_without_the_guard() -> Result<[String; 2]> {
    let quota = |slice| units::property(slice, "CPUQuotaPerSecUSec");
    units::systemctl(&["stop", GUARD_UNIT])?;
    let quotas = [quota(PROTECTED)?, quota(HEAVY)?];
    // Or systemd may refuse: it starts here more often than a service that is well.
    units::systemctl(&["reset-failed", GUARD_UNIT])?;
    units::systemctl(&["start", GUARD_UNIT])?;
    Ok(quotas)
}

fn experiment(words: &[&str]) -> Result<command::Ended> {
    let mut argv = vec![payload("guard-benchmarks").display().to_string(), "experiment".into()];
    argv.extend(words.iter().map(|word| (*word).to_owned()));
    command::run(&argv)
}

/// Runs it to its end.
fn measured(words: &[&str]) -> Verdict {
    let out = out();
    let mut all = words.to_vec();
    all.extend(["--yes", "--pause", "0.3", "--out", &out]);
    let ended = experiment(&all)?;
    ensure!(ended.status == 0, "{words:?} ended with {}: {}", ended.status, ended.said());
    println!("{}", ended.stdout);
    Ok(())
}

fn out() -> String {
    format!("{HOME}/experiment")
}

/// The rows of a table: column name to cell.
fn rows(file: &str) -> Result<Vec<BTreeMap<String, String>>> {
    let path = Path::new(&out()).join(file);
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    let columns: Vec<&str> = lines.next().context("no columns")?.split('\t').collect();
    lines
        .map(|line| {
            let cells: Vec<&str> = line.split('\t').collect();
            ensure!(cells.len() == columns.len(), "{file}: {line:?}");
            Ok(columns.iter().zip(cells).map(|(name, cell)| ((*name).to_owned(), cell.to_owned())).collect())
        })
        .collect()
}

fn number(row: &BTreeMap<String, String>, column: &str) -> Result<f64> {
    let cell = row.get(column).with_context(|| format!("no column {column}"))?;
    cell.parse().with_context(|| format!("{column}: {cell:?}"))
}

fn drawn(file: &str) -> Verdict {
    let path = Path::new(&out()).join(file);
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    ensure!(text.starts_with("<svg") && text.contains("<circle"), "{}", path.display());
    Ok(())
}

/// Where nobody can be asked it changes nothing, and has said what it would have.
fn asks_first() -> Verdict {
    let ended = experiment(&["quota-sweep", "--out", &out()])?;
    ensure!(
        ended.status == 1
            && ended.stderr.contains("stop workload-guard.service, which runs")
            && ended.stderr.contains(" %, to 100, 150, 200, 250, 300, 350, 400 % at run time")
            && ended.stderr.contains("--yes says that it may begin"),
        "{ended:?}"
    );
    ensure!(!Path::new(&out()).exists(), "it has written something");
    Ok(())
}

fn sweep() -> Verdict {
    measured(&[
        "quota-sweep", "--reps", "1", "--quotas", "100,200,400", "--workers", "4", "--work", "40000000", "--real-cpus", "2",
    ])?;
    let rows = rows("quota-sweep.tsv")?;
    ensure!(rows.len() == 3, "{rows:?}");
    for (row, quota) in rows.iter().zip([100.0, 200.0, 400.0]) {
        ensure!(number(row, "quota_pct")? == quota && number(row, "enforced_pct")? == quota, "{row:?}");
        let used = number(row, "cpu_s")? / number(row, "elapsed_s")? * 100.0;
        // A period at each end is not whole.
        ensure!(used <= quota * 1.2, "{used:.0} % under a quota of {quota} %");
        let beyond = quota > 200.0;
        ensure!(
            row["trial_valid"] == (!beyond).to_string() && row["validity_reason"].is_empty() != beyond,
            "{row:?}"
        );
    }
    let speedup = number(&rows[0], "elapsed_s")? / number(&rows[1], "elapsed_s")?;
    ensure!(speedup > 1.05, "200 % was {speedup:.2} times as quick as 100 %");
    ensure!(number(&rows[0], "nr_throttled")? > 0.0, "{:?}", rows[0]);
    step(format_args!("200 %: {speedup:.2} times as quick as 100 %; 400 % does not count: {}", rows[2]["validity_reason"]));
    drawn("quota-sweep.svg")
}

fn contention() -> Verdict {
    for isolated in [false, true] {
        let mut words = vec!["contention", "--reps", "1", "--duration", "8", "--settle", "2", "--require-routed"];
        if isolated {
            words.push("--isolated");
        }
        measured(&words)?;
        let name = if isolated { "contention-isolated" } else { "contention" };
        let trials = rows(&format!("{name}.tsv"))?;
        let modes: Vec<&str> = trials.iter().map(|row| row["mode"].as_str()).collect();
        ensure!(modes == ["off", "on"], "{modes:?}");
        for row in &trials {
            ensure!(row["trial_valid"] == "true", "{}: {row:?}", row["validity_reason"]);
            ensure!(number(row, "steady_samples")? > 0.0 && number(row, "lateness_p95_ms")? >= 0.0, "{row:?}");
        }
        ensure!(trials[1]["routed_workers"] == "1" && number(&trials[1], "heavy_cpu_pct")? > 0.0, "{:?}", trials[1]);
        // With the controller it may be anything.
        ensure!(!isolated || number(&trials[1], "heavy_quota_pct")? == 400.0, "{:?}", trials[1]);
        let samples = rows(&format!("{name}.samples.tsv"))?;
        let of_trials = number(&trials[0], "samples")? + number(&trials[1], "samples")?;
        ensure!(samples.len() as f64 == of_trials && of_trials > 0.0, "{} samples", samples.len());
        drawn(&format!("{name}.svg"))?;
        step(format_args!(
            "{name}: the probe's work took {} ms without the guard and {} ms with it (p95)",
            trials[0]["work_p95_ms"], trials[1]["work_p95_ms"]
        ));
    }
    Ok(())
}

/// In the middle of a trial.
fn on_a_signal() -> Verdict {
    let mut child = Command::new(payload("guard-benchmarks"))
        .args(["experiment", "quota-sweep", "--yes", "--reps", "1", "--quotas", "150", "--pause", "0", "--out", &out()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let group = units::property(HEAVY, "ControlGroup")?;
    until_true("the workers are at work under 150 %", PATIENCE, || {
        let used = cgroup::read(&group, "cgroup.events")?.contains("populated 1");
        Ok(used && cgroup::quota_percent(&group)? == Some(150.0))
    })?;
    signal(child.id(), Signal::SIGTERM)?;
    let status = command::shell_status(child.wait()?);
    ensure!(status == 128 + Signal::SIGTERM as i32, "it ended with {status}");
    step("ended by SIGTERM in a trial: 143");
    Ok(())
}
