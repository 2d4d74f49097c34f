//! The accelerated measurement: how soon sustained load is routed and idle work comes back, and no false route.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::{CONTAINER, Scenario};
use crate::harness::guard::{ACCELERATED, Guard};
use crate::harness::load::{Load, burst, busy, idle, load};
use crate::harness::outcome::{Verdict, step};
use crate::harness::session::Session;
use crate::harness::stats::median;
use crate::harness::wait::{PATIENCE, hold};

pub const SCENARIO: Scenario = Scenario {
    name: "accelerated-measurement",
    tiers: CONTAINER,
    quick: false,
    full: false,
    exclusive: true,
    timeout_s: 120,
    run,
};

const TRIALS: usize = 5;
const DETECTION: f64 = 0.80;
const RECOVERY: f64 = 1.57;
/// After a burst: more than the three samples that a route takes. And how long the load goes on once it is routed.
const WINDOW: Duration = Duration::from_secs(1);

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, ACCELERATED)?;
    let mut detections = Vec::new();
    let mut recoveries = Vec::new();
    let mut false_routes = 0;
    println!("sampling 250 ms, threshold 10 %, 3 hot samples; recovery below 35 %, 2 low samples, 1 s dwell");
    println!("trial   120 ms burst   detection   recovery");
    for trial in 1..=TRIALS {
        let work = load(&["spin", "--idle"]).start()?;
        burst(work.pid)?;
        let quiet = hold("the burst is not routed", WINDOW, || in_place(&work));
        false_routes += usize::from(quiet.is_err());

        let mark = guard.signals.mark();
        let begin = Instant::now();
        busy(work.pid)?;
        let (at, routed) = guard.signals.routed_after(mark, work.pid, PATIENCE)?;
        let detection = (at - begin).as_secs_f64();

        hold("it stays routed while busy", WINDOW, || {
            ensure!(work.now_in()? == routed.destination, "it was moved");
            Ok(())
        })?;
        let mark = guard.signals.mark();
        let begin = Instant::now();
        idle(work.pid)?;
        let (at, recovered) = guard.signals.recovered_after(mark, work.pid, PATIENCE)?;
        let recovery = (at - begin).as_secs_f64();
        ensure!(
            recovered.exact && work.now_in()? == work.cgroup,
            "{recovered:?}"
        );
        println!(
            "{trial:5}   {:<12}   {detection:7.3} s   {recovery:6.3} s",
            if quiet.is_ok() { "not routed" } else { "ROUTED" }
        );
        detections.push(detection);
        recoveries.push(recovery);
    }
    let detection = median(&detections).context("no trial")?;
    let recovery = median(&recoveries).context("no trial")?;
    println!(
        "median  {:<12}   {detection:7.3} s   {recovery:6.3} s",
        format!("{false_routes} of {TRIALS}")
    );
    println!("at most 0              {DETECTION:7.3} s   {RECOVERY:6.3} s");
    ensure!(false_routes == 0, "{false_routes} bursts were routed");
    ensure!(detection <= DETECTION, "median detection {detection:.3} s");
    ensure!(recovery <= RECOVERY, "median recovery {recovery:.3} s");
    step("all within the bounds");
    Ok(())
}

fn in_place(load: &Load) -> Result<()> {
    let now = load.now_in()?;
    ensure!(now == load.cgroup, "it is in {now}");
    Ok(())
}
