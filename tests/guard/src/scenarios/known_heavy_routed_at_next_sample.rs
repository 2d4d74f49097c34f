//! A command that a rule names is routed at the next sample, however little CPU it uses.

use std::time::{Duration, Instant};

use anyhow::ensure;

use super::{BOTH, Scenario};
use crate::harness::guard::{Guard, HEAVY, Settings};
use crate::harness::load::load;
use crate::harness::outcome::{Verdict, step};
use crate::harness::session::Session;
use crate::harness::wait::PATIENCE;

pub const SCENARIO: Scenario = Scenario {
    name: "known-heavy-routed-at-next-sample",
    tiers: BOTH,
    quick: true,
    full: false,
    exclusive: false,
    timeout_s: 60,
    run,
};

const INTERVAL: Duration = Duration::from_secs(2);
/// For starting the load and for the move; emulation is slow.
const MARGIN: Duration = Duration::from_millis(1500);
/// Never by CPU use: what is routed here is routed by its name.
const SETTINGS: Settings<'static> = &[
    ("WORKLOAD_GUARD_SAMPLE_SEC", "2"),
    ("WORKLOAD_GUARD_SUSTAINED_SAMPLES", "1000"),
];

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, SETTINGS)?;
    let other = load(&["spin", "--idle"]).start()?;
    let begin = Instant::now();
    let make = load(&["spin", "--idle"]).named("make").start()?;
    let (at, routed) = guard.signals.routed(make.pid, PATIENCE)?;
    let took = at - begin;
    step(format_args!(
        "make ({}) routed after {:.2} s: {routed:?}",
        make.pid,
        took.as_secs_f64()
    ));
    ensure!(
        took <= INTERVAL + MARGIN,
        "took {took:?}, more than one interval of {INTERVAL:?} and {MARGIN:?}"
    );
    ensure!(routed.reason == "known-heavy", "reason: {}", routed.reason);
    ensure!(routed.class == "heavy", "class: {}", routed.class);
    ensure!(
        routed.source.ends_with(&make.unit),
        "source: {}",
        routed.source
    );
    let now = make.now_in()?;
    ensure!(
        now == routed.destination && now.contains(HEAVY),
        "it is in {now}, the signal says {}",
        routed.destination
    );
    ensure!(routed.command.contains("make"), "{}", routed.command);
    let row = guard.workload_of(make.pid)?;
    ensure!(
        row.as_ref().is_some_and(|row| row.control_group == now),
        "ListWorkloads has {row:?}"
    );
    let object = guard.workload(&routed.workload)?;
    let pids = zbus::block_on(object.pids())?;
    ensure!(pids == [make.pid], "PIDs of its object: {pids:?}");
    ensure!(
        other.now_in()? == other.cgroup,
        "the other load was moved too"
    );
    Ok(())
}
