//! The controller under real contention: each policy moves within bounds, step and dwell, and the kernel has each value;
//! cut telemetry freezes it, and AIMD only talks.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use workload_guard_dbus::names::GUARD_UNIT;
use zbus::block_on;

use super::{MACHINE, Scenario};
use crate::harness::cgroup::{self, Meter};
use crate::harness::guard::{Guard, HEAVY, write_settings};
use crate::harness::journal;
use crate::harness::load::{Load, busy, load};
use crate::harness::outcome::{Verdict, step};
use crate::harness::proc;
use crate::harness::quota::Quota;
use crate::harness::root;
use crate::harness::session::{HOME, Session};
use crate::harness::stats::quantile;
use crate::harness::units;
use crate::harness::wait::{PATIENCE, hold, until_true};
use crate::load::read_latencies;

pub const SCENARIO: Scenario = Scenario {
    name: "quota-steering",
    tiers: MACHINE,
    quick: false,
    full: false,
    exclusive: true,
    timeout_s: 400,
    run,
};

/// Interval, dwell and window in seconds: the design's own in a full run take a quarter of an hour.
pub struct Pace {
    /// Of the controller.
    pub interval: f64,
    /// Between changes.
    pub dwell: f64,
    /// Of one policy.
    pub window: u64,
    /// Static, step and protected in turn, so often.
    pub rounds: usize,
}

const SHORT: Pace = Pace {
    interval: 1.0,
    dwell: 2.0,
    window: 8,
    rounds: 1,
};

const HOGS: usize = 4;
const STEP: f64 = 50.0;
const BOUNDS: (f64, f64) = (100.0, 400.0);

/// How the quota is governed in one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Policy {
    Static,
    Step,
    Protected,
}

fn run(session: &Session) -> Verdict {
    steer(session, &SHORT)?;
    cut(session)
}

fn settings(policy: Policy, pace: &Pace) -> Result<()> {
    let (interval, dwell) = (pace.interval.to_string(), pace.dwell.to_string());
    let (dynamic, name) = match policy {
        Policy::Static => ("false", "step"),
        Policy::Step => ("true", "step"),
        Policy::Protected => ("true", "protected"),
    };
    write_settings(&[
        ("WORKLOAD_GUARD_SAMPLE_SEC", "0.5"),
        ("WORKLOAD_GUARD_SUSTAINED_SAMPLES", "1000"),
        ("WORKLOAD_GUARD_DYNAMIC_QUOTA", dynamic),
        ("WORKLOAD_GUARD_QUOTA_POLICY", name),
        ("WORKLOAD_GUARD_QUOTA_INTERVAL_SEC", &interval),
        ("WORKLOAD_GUARD_QUOTA_MIN_DWELL_SEC", &dwell),
        ("WORKLOAD_GUARD_AIMD_SHADOW", "true"),
    ])
}

/// Each policy in turn, the figures printed.
pub fn steer(session: &Session, pace: &Pace) -> Verdict {
    let guard = Guard::install(session, &[])?;
    println!("{HOGS} busy heavy processes and a protected probe (0.25 ms of work every 20 ms), {} s each; host CPUs: {}",
        pace.window, std::thread::available_parallelism()?);
    println!("round  policy     changes   quota   probe p50      p95   heavy CPU");
    for round in 1..=pace.rounds {
        for policy in [Policy::Static, Policy::Step, Policy::Protected] {
            one(session, &guard, pace, round, policy)?;
        }
    }
    let proposals = journal::of_guard(&["WORKLOAD_REASON=shadow-aimd"])?;
    ensure!(!proposals.is_empty(), "AIMD proposed nothing in any run");
    ensure!(
        proposals.iter().all(|entry| entry.get("MESSAGE").is_some_and(|text| text.contains("quota shadow=aimd") && text.contains("action=log-only"))),
        "{proposals:?}"
    );
    step(format_args!("AIMD: {} proposals in the journal, and each change of the quota was a policy's own", proposals.len()));
    Ok(())
}

fn one(session: &Session, guard: &Guard, pace: &Pace, round: usize, policy: Policy) -> Verdict {
    settings(policy, pace)?;
    units::systemctl(&["restart", GUARD_UNIT])?;
    guard.answers()?;
    let quota = Quota::connect(session)?;
    ensure!(quota.now()? == BOUNDS.1, "a run begins with {}", quota.now()?);
    let group = units::property(HEAVY, "ControlGroup")?;
    let hogs = (0..HOGS)
        .map(|_| load(&["spin", "--idle"]).slice(HEAVY).start())
        .collect::<Result<Vec<Load>>>()?;
    let out = Path::new(HOME).join("probe.log");
    let _probe = load(&["probe", &out.to_string_lossy()]).start()?;
    for hog in &hogs {
        busy(hog.pid)?;
    }
    let seen = read_latencies(&out)?.len();
    let meter = Meter::start(&group)?;
    hold("the hogs live", Duration::from_secs(pace.window), || {
        ensure!(hogs.iter().all(|hog| proc::alive(hog.pid)), "a hog has ended");
        Ok(())
    })?;
    let heavy = meter.percent()?;
    let told = quota.told();
    kernel_has_it(&quota, &group)?;
    follows_the_rules(&told, pace, policy)?;
    let latencies: Vec<f64> = read_latencies(&out)?.split_off(seen).iter().map(|latency| latency.ms).collect();
    println!(
        "{round:5}  {:9} {:8}   {:4} %   {:7.2} ms {:7.2} ms   {heavy:6.1} %",
        format!("{policy:?}").to_lowercase(),
        told.len(),
        quota.now()?,
        quantile(&latencies, 0.5).context("the probe wrote nothing")?,
        quantile(&latencies, 0.95).context("the probe wrote nothing")?,
    );
    step(block_on(quota.proxy().last_decision())?);
    Ok(())
}

/// `cpu.max` is what systemd says, and Enforced says so, whatever moment it is.
fn kernel_has_it(quota: &Quota, group: &str) -> Verdict {
    until_true("Quota, Enforced and cpu.max are one", PATIENCE, || {
        let (told, enforced, kernel) = (quota.now()?, quota.enforced()?, cgroup::quota_percent(group)?);
        ensure!(kernel == Some(told) && enforced == told, "{told} {enforced} {kernel:?}");
        Ok(true)
    })
}

fn follows_the_rules(told: &[(Instant, f64)], pace: &Pace, policy: Policy) -> Verdict {
    ensure!(policy != Policy::Static || told.is_empty(), "a static quota moved: {told:?}");
    let mut before = BOUNDS.1;
    let mut last: Option<Instant> = None;
    for (at, quota) in told {
        ensure!((BOUNDS.0..=BOUNDS.1).contains(quota), "{quota} is out of bounds");
        ensure!((quota - before).abs() <= STEP, "{before} to {quota} is more than a step");
        if let Some(last) = last {
            // What is measured is when the signal came, which a busy machine delays.
            let apart = at.duration_since(last).as_secs_f64();
            ensure!(apart >= pace.dwell * 0.75, "two changes {apart:.2} s apart");
        }
        (before, last) = (*quota, Some(*at));
    }
    // The guard's own clock has no such delay. A guard that starts knows of no change before.
    let mut times = Vec::new();
    for reason in ["WORKLOAD_REASON=step", "WORKLOAD_REASON=protected"] {
        for entry in journal::of_guard(&[reason])? {
            let usec: u64 = entry.get("__REALTIME_TIMESTAMP").context("no time")?.parse()?;
            times.push((entry.get("_PID").context("no PID")?.clone(), usec));
        }
    }
    times.sort_unstable();
    for pair in times.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
        let apart = (pair[1].1 - pair[0].1) as f64 / 1e6;
        ensure!(apart >= pace.dwell - 0.1, "two changes {apart:.2} s apart in the journal");
    }
    Ok(())
}

/// Cut telemetry.
fn cut(session: &Session) -> Verdict {
    let guard = Guard::connect(session)?;
    settings(Policy::Step, &SHORT)?;
    units::systemctl(&["restart", GUARD_UNIT])?;
    guard.answers()?;
    let quota = Quota::connect(session)?;
    let says = |what: &str, words: &str| -> Result<()> {
        until_true(what, PATIENCE, || {
            let reasons = guard.reasons()?;
            let why = reasons.iter().find(|reason| reason.contains("is frozen where it is"));
            ensure!(
                quota.control()? == "frozen" && why.is_some_and(|why| why.contains(words)),
                "{}: {reasons:?}",
                quota.control()?
            );
            Ok(true)
        })
    };
    let steers = || {
        until_true("it steers again", PATIENCE, || {
            let control = quota.control()?;
            ensure!(control == "auto", "{control}: {:?}", guard.reasons()?);
            Ok(true)
        })
    };
    steers()?;

    root::ok(&["mount", "--bind", "/dev/null", "/proc/pressure/cpu"])?;
    says("frozen without PSI", "/proc/pressure/cpu has no line")?;
    let (before, changes) = (quota.now()?, quota.told().len());
    // Four intervals and twice the dwell, with all that would move it.
    let hogs = (0..HOGS).map(|_| load(&["spin"]).slice(HEAVY).start()).collect::<Result<Vec<Load>>>()?;
    hold("the quota stays", Duration::from_secs(4), || {
        ensure!(quota.now()? == before && quota.told().len() == changes, "{}", quota.now()?);
        Ok(())
    })?;
    step(format_args!("PSI hidden: frozen at {before} %"));
    root::ok(&["umount", "/proc/pressure/cpu"])?;
    steers()?;
    drop(hogs);

    units::systemctl(&["mask", "--runtime", HEAVY])?;
    units::systemctl(&["stop", HEAVY])?;
    says("frozen without the slice", "throttling of the heavy slice")?;
    step("slice stopped: frozen");
    units::systemctl(&["unmask", "--runtime", HEAVY])?;
    units::systemctl(&["start", HEAVY])?;
    steers()
}
