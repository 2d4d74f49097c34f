//! A real suspend and resume: routes are kept, and what was counted before counts no more.

use std::time::Duration;

use anyhow::{Result, ensure};
use nix::time::{ClockId, clock_gettime};

use super::{MACHINE, Scenario};
use crate::harness::guard::{FAST, Guard};
use crate::harness::journal;
use crate::harness::load::load;
use crate::harness::outcome::{Verdict, step};
use crate::harness::root;
use crate::harness::session::Session;
use crate::harness::units;
use crate::harness::wait::{PATIENCE, until_true};

pub const SCENARIO: Scenario = Scenario {
    name: "suspended-and-resumed",
    tiers: MACHINE,
    quick: false,
    full: false,
    exclusive: false,
    timeout_s: 300,
    run,
};

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, FAST)?;
    let its_pid = guard.pid()?;
    let old = load(&["spin", "--idle"]).start()?;
    let routed = guard.routed_by_load(old.pid)?;
    let placed = load(&["spin", "--idle"]).start()?;
    guard.attach(&[placed.pid], "browser", "")?;
    let its_place = placed.now_in()?;

    let before = asleep()?;
    root::ok(&["rtcwake", "--mode", "mem", "--seconds", "8"])?;
    let slept = asleep()? - before;
    ensure!(slept >= Duration::from_secs(2), "it slept for {slept:?}");
    step(format_args!("slept for {:.1} s", slept.as_secs_f64()));

    until_true("the guard tells of it", PATIENCE, || {
        let entries = journal::of_guard(&[])?;
        let mut messages = entries.iter().filter_map(|entry| entry.get("MESSAGE"));
        Ok(messages.any(|message| message.contains("the machine slept for")))
    })?;
    guard.answers()?;
    for (load, cgroup) in [(&old, &routed.destination), (&placed, &its_place)] {
        ensure!(load.now_in()? == *cgroup, "it was moved to {}", load.now_in()?);
        let row = guard.workload_of(load.pid)?;
        ensure!(
            row.as_ref().is_some_and(|row| row.control_group == *cgroup),
            "{cgroup} is listed as {row:?}"
        );
    }
    let new = load(&["spin", "--idle"]).start()?;
    guard.routed_by_load(new.pid)?;
    for load in [&new, &old] {
        let recovered = guard.recovered_when_idle(load.pid)?;
        ensure!(
            recovered.exact && recovered.destination == load.cgroup,
            "{recovered:?}"
        );
    }
    let home = guard.release(placed.pid)?;
    ensure!(home == placed.cgroup, "released to {home}");
    ensure!(guard.pid()? == its_pid, "the guard was started again");
    drop((old, new, placed));
    units::no_scope_of_ours_left(session, PATIENCE)
}

/// How long the machine has slept since boot.
fn asleep() -> Result<Duration> {
    let read = |clock| clock_gettime(clock).map(Duration::from);
    let total = read(ClockId::CLOCK_BOOTTIME)?;
    Ok(total.saturating_sub(read(ClockId::CLOCK_MONOTONIC)?))
}
