//! kill -9 of the guard loses no process and no route; the next one brings the work back.

use anyhow::ensure;

use super::{CONTAINER, Scenario};
use crate::harness::guard::{FAST, Guard};
use crate::harness::load::{busy, load};
use crate::harness::outcome::{Verdict, step};
use crate::harness::proc;
use crate::harness::session::Session;
use crate::harness::units;
use crate::harness::wait::{PATIENCE, until_true};

pub const SCENARIO: Scenario = Scenario {
    name: "routes-survive-kill-9",
    tiers: CONTAINER,
    quick: true,
    full: false,
    exclusive: false,
    timeout_s: 120,
    run,
};

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, FAST)?;
    let alone = load(&["spin", "--idle"])
        .description("the one that was alone")
        .start()?;
    let nest = load(&["nest", "1"]).property("Delegate=yes").start()?;
    let child = nest.member()?;
    let first = guard.routed_by_load(alone.pid)?;
    let second = guard.routed_by_load(child)?;
    let placed = load(&["spin", "--idle"]).start()?;
    let third = guard.attach(&[placed.pid], "heavy", "to see it kept")?;
    let place = placed.now_in()?;

    for round in 1..=2 {
        let before = guard.workloads()?;
        let took = guard.kill_and_wait_for_the_next()?;
        for (pid, cgroup) in [
            (alone.pid, &first.destination),
            (child, &second.destination),
            (placed.pid, &place),
        ] {
            let now = proc::cgroup_of(pid)?;
            ensure!(now == *cgroup, "{pid} was in {cgroup} and is in {now}");
        }
        // CPU is a figure of the moment; everything else of a row must be as before.
        let told = |mut rows: Vec<workload_guard_dbus::types::WorkloadRow>| {
            rows.sort_by_key(|row| row.pid);
            for row in &mut rows {
                row.cpu = 0.0;
            }
            rows
        };
        let before = told(before);
        until_true("the next guard knows all three", PATIENCE, || {
            let after = told(guard.workloads()?);
            ensure!(after == before, "before: {before:#?}, after: {after:#?}");
            Ok(true)
        })?;
        step(format_args!(
            "kill -9, round {round}: {:.2} s until the next one answered; three workloads kept",
            took.as_secs_f64()
        ));
    }

    let recovered = guard.recovered_when_idle(alone.pid)?;
    ensure!(
        recovered.exact && recovered.destination == alone.cgroup,
        "{recovered:?}, came from {}",
        alone.cgroup
    );
    let words = units::property(&alone.unit, "Description")?;
    ensure!(
        words == "the one that was alone",
        "the unit made again is described as {words:?}"
    );
    let recovered = guard.recovered_when_idle(child)?;
    ensure!(recovered.exact, "{recovered:?}");
    ensure!(
        guard.workload_of(placed.pid)?.is_some_and(|row| row.path == third),
        "the placed one is no longer listed"
    );

    // In the middle of a move: whatever was done by then, the next guard finds the processes and a home for them.
    let loads = (0..4)
        .map(|_| load(&["spin", "--idle"]).start())
        .collect::<anyhow::Result<Vec<_>>>()?;
    for load in &loads {
        busy(load.pid)?;
    }
    until_true("the first of four is routed", PATIENCE, || {
        Ok(loads
            .iter()
            .any(|load| load.now_in().is_ok_and(|now| now != load.cgroup)))
    })?;
    guard.kill_and_wait_for_the_next()?;
    until_true("all four are routed and listed", PATIENCE, || {
        for load in &loads {
            ensure!(proc::alive(load.pid), "{} has ended", load.pid);
            let row = guard.workload_of(load.pid)?;
            ensure!(row.is_some(), "{} is not listed", load.pid);
        }
        Ok(true)
    })?;
    step("kill -9 in the middle of four moves: all four live and are routed");
    for load in &loads {
        let recovered = guard.recovered_when_idle(load.pid)?;
        ensure!(
            recovered.destination == load.cgroup,
            "{recovered:?}, came from {}",
            load.cgroup
        );
    }
    Ok(())
}
