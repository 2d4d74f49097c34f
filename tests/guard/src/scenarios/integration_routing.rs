//! The original's `integration-routing.sh`: a burst of 120 ms is not routed, sustained load is; prints how soon.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use super::{CONTAINER, Scenario};
use crate::harness::guard::{ACCELERATED, Guard, KEPT};
use crate::harness::load::{burst, busy, load};
use crate::harness::outcome::{Verdict, step};
use crate::harness::session::Session;
use crate::harness::stats::median;
use crate::harness::wait::{PATIENCE, hold};

pub const SCENARIO: Scenario = Scenario {
    name: "integration-routing",
    tiers: CONTAINER,
    quick: false,
    full: false,
    exclusive: true,
    timeout_s: 180,
    run,
};

const TRIALS: usize = 3;
/// After a burst: more than the samples that a route takes.
const WINDOW: Duration = Duration::from_millis(1500);

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, &[ACCELERATED, KEPT].concat())?;
    let mut detections = Vec::new();
    for trial in 1..=TRIALS {
        let work = load(&["spin", "--idle"]).start()?;
        burst(work.pid)?;
        hold("the burst is not routed", WINDOW, || {
            let now = work.now_in()?;
            ensure!(now == work.cgroup, "it is in {now}");
            Ok(())
        })?;
        let mark = guard.signals.mark();
        let begin = Instant::now();
        busy(work.pid)?;
        let (at, routed) = guard.signals.routed_after(mark, work.pid, PATIENCE)?;
        ensure!(
            routed.reason == "sustained-cpu" && routed.source == work.cgroup,
            "{routed:?}"
        );
        ensure!(work.now_in()? == routed.destination, "{routed:?}");
        let took = (at - begin).as_secs_f64();
        step(format_args!(
            "trial {trial}: burst not routed; sustained load routed after {took:.2} s"
        ));
        detections.push(took);
    }
    ensure!(
        guard.routed_total()? == TRIALS as u64,
        "{} routes",
        guard.routed_total()?
    );
    let median = median(&detections).context("no trial")?;
    step(format_args!(
        "detection, median of {TRIALS}: {median:.2} s; false routes: 0 of {TRIALS}"
    ));
    Ok(())
}
