//! The original's `recovery-routing.sh`: routed work that goes idle comes back to where it came from; prints how
//! soon. A later burst of load routes it again.

use std::time::Instant;

use anyhow::{Context, ensure};

use super::{CONTAINER, Scenario};
use crate::harness::guard::{ACCELERATED, Guard, KEPT};
use crate::harness::load::{idle, load};
use crate::harness::outcome::{Verdict, step};
use crate::harness::session::Session;
use crate::harness::stats::median;
use crate::harness::wait::PATIENCE;

pub const SCENARIO: Scenario = Scenario {
    name: "recovery-routing",
    tiers: CONTAINER,
    quick: false,
    full: false,
    exclusive: true,
    timeout_s: 180,
    run,
};

const TRIALS: usize = 3;

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, &[ACCELERATED, KEPT].concat())?;
    let work = load(&["spin", "--idle"]).start()?;
    let mut recoveries = Vec::new();
    for trial in 1..=TRIALS {
        let routed = guard.routed_by_load(work.pid)?;
        ensure!(routed.source == work.cgroup, "{routed:?}");
        let mark = guard.signals.mark();
        let begin = Instant::now();
        idle(work.pid)?;
        let (at, recovered) = guard.signals.recovered_after(mark, work.pid, PATIENCE)?;
        ensure!(
            recovered.exact && recovered.destination == work.cgroup,
            "{recovered:?}"
        );
        ensure!(work.now_in()? == work.cgroup, "{recovered:?}");
        let took = (at - begin).as_secs_f64();
        step(format_args!(
            "trial {trial}: back in its source {took:.2} s after it went idle"
        ));
        recoveries.push(took);
    }
    let median = median(&recoveries).context("no trial")?;
    step(format_args!("recovery, median of {TRIALS}: {median:.2} s"));
    Ok(())
}
