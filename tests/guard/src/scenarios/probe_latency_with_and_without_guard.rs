//! What the guard is for: an interactive program beside hogs in the same slice answers sooner with it than without.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use workload_guard_dbus::names::GUARD_UNIT;

use super::{MACHINE, Scenario};
use crate::harness::guard::{Guard, HEAVY, Settings};
use crate::harness::load::{Load, busy, load};
use crate::harness::outcome::{Verdict, step};
use crate::harness::proc;
use crate::harness::session::{HOME, Session};
use crate::harness::stats::quantile;
use crate::harness::units;
use crate::harness::wait::{PATIENCE, hold, until_true};
use crate::load::read_latencies;

pub const SCENARIO: Scenario = Scenario {
    name: "probe-latency-with-and-without-guard",
    tiers: MACHINE,
    quick: false,
    full: false,
    exclusive: true,
    timeout_s: 600,
    run,
};

const PAIRS: usize = 5;
const BETTER_IN: usize = 4;
/// On four CPUs they use up the 150 % of a period in 37 ms of its 100 ms: whoever shares their slice waits for the rest.
const HOGS: usize = 4;
/// Of heavy work here, as much as protected work has: the hogs get the same share with the guard and without, so that
/// what differs is whose budget they use up.
const HEAVY_QUOTA: &str = "CPUQuota=150%";
const WINDOW: Duration = Duration::from_secs(8);

/// The probe uses little, but where eight emulated CPUs share two real ones, whatever a CPU
/// waits for its turn counts as use; the experiment is about the hogs, so the probe is excluded by its command.
const SETTINGS: Settings<'static> = &[
    ("WORKLOAD_GUARD_SAMPLE_SEC", "0.5"),
    ("WORKLOAD_GUARD_CPU_THRESHOLD", "15"),
    ("WORKLOAD_GUARD_SUSTAINED_SAMPLES", "3"),
    ("WORKLOAD_GUARD_RECOVERY_CPU_THRESHOLD", "5"),
    ("WORKLOAD_GUARD_EXCLUDE_PATTERNS", "load probe"),
];

/// The probe's figures in one run, in milliseconds.
#[derive(Clone, Copy, Debug)]
struct Figures {
    p50: f64,
    p95: f64,
    count: usize,
}

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, SETTINGS)?;
    units::systemctl(&["set-property", "--runtime", HEAVY, HEAVY_QUOTA])?;
    println!("{HOGS} hogs and a probe (0.25 ms of work every 20 ms) in the protected slice, {} s a run", WINDOW.as_secs());
    println!("pair   without p50    p95   (n)      with p50    p95   (n)   better");
    let mut better = 0;
    for pair in 1..=PAIRS {
        // The order alternates, so that a drift of the host favours neither.
        let (without, with) = if pair % 2 == 1 {
            let without = one(&guard, false)?;
            (without, one(&guard, true)?)
        } else {
            let with = one(&guard, true)?;
            (one(&guard, false)?, with)
        };
        let won = with.p95 < without.p95;
        better += usize::from(won);
        println!(
            "{pair:4}   {:8.2} ms {:8.2} ms {:4}   {:8.2} ms {:8.2} ms {:4}   {}",
            without.p50,
            without.p95,
            without.count,
            with.p50,
            with.p95,
            with.count,
            if won { "yes" } else { "NO" }
        );
    }
    step(format_args!("p95 lower with the guard in {better} of {PAIRS} pairs, wanted {BETTER_IN}"));
    ensure!(better >= BETTER_IN, "better in {better} of {PAIRS} pairs");
    Ok(())
}

fn one(guard: &Guard, with: bool) -> Result<Figures> {
    if with {
        guard.start()?;
    } else {
        units::systemctl(&["stop", GUARD_UNIT])?;
        units::becomes(GUARD_UNIT, "inactive", PATIENCE)?;
    }
    let hogs = (0..HOGS)
        .map(|_| load(&["spin", "--idle"]).start())
        .collect::<Result<Vec<Load>>>()?;
    let out = Path::new(HOME).join("probe.log");
    let probe = load(&["probe", &out.to_string_lossy()]).start()?;
    for hog in &hogs {
        busy(hog.pid)?;
    }
    if with {
        until_true("the hogs are routed", PATIENCE, || {
            Ok(hogs
                .iter()
                .all(|hog| hog.now_in().is_ok_and(|now| now.contains(HEAVY))))
        })?;
    }
    let seen = read_latencies(&out)?.len();
    hold("all are where they belong", WINDOW, || {
        ensure!(probe.now_in()? == probe.cgroup, "the probe was moved");
        for hog in &hogs {
            ensure!(proc::alive(hog.pid), "a hog has ended");
            ensure!(
                hog.now_in()?.contains(HEAVY) == with,
                "a hog is in {}",
                hog.now_in()?
            );
        }
        Ok(())
    })?;
    let latencies: Vec<f64> = read_latencies(&out)?
        .split_off(seen)
        .iter()
        .map(|latency| latency.ms)
        .collect();
    Ok(Figures {
        p50: quantile(&latencies, 0.5).context("the probe wrote nothing")?,
        p95: quantile(&latencies, 0.95).context("the probe wrote nothing")?,
        count: latencies.len(),
    })
}
