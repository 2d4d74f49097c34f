//! Exec events that the kernel had to drop are noticed and counted, and one look at everything makes good for them.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::ensure;
use nix::sys::signal::Signal;

use super::{MACHINE, Scenario};
use crate::harness::guard::{Guard, Settings};
use crate::harness::load::{load, signal};
use crate::harness::outcome::{Verdict, step};
use crate::harness::session::Session;
use crate::harness::wait::PATIENCE;

pub const SCENARIO: Scenario = Scenario {
    name: "lost-events-are-made-good",
    tiers: MACHINE,
    quick: false,
    full: false,
    exclusive: false,
    timeout_s: 120,
    run,
};

/// So long between two samples that none of them can be what sees the program.
const SETTINGS: Settings<'static> = &[("WORKLOAD_GUARD_SAMPLE_SEC", "3000")];
/// More than fit into the receive buffer of the guard, which takes nothing meanwhile.
const PROGRAMS: u32 = 1000;
const LOST_AT_LEAST: u64 = 100;

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, SETTINGS)?;
    ensure!(guard.has_exec_events()?, "no exec events");
    let pid = guard.pid()?;
    signal(pid, Signal::SIGSTOP)?;
    for _ in 0..PROGRAMS {
        ensure!(Command::new("true").status()?.success());
    }
    // The buffer is full: of this one the guard is not told.
    let make = load(&["spin", "--idle"]).named("make").start()?;
    ensure!(make.now_in()? == make.cgroup, "it was moved while the guard stood still");
    let begin = Instant::now();
    signal(pid, Signal::SIGCONT)?;
    let (at, routed) = guard.signals.routed(make.pid, PATIENCE)?;
    let lost = zbus::block_on(guard.proxy().exec_events_lost())?;
    step(format_args!(
        "{lost} of {PROGRAMS} events lost; make routed {:.0} ms after the guard went on: {}",
        Duration::as_secs_f64(&(at - begin)) * 1000.0,
        routed.reason
    ));
    ensure!(lost >= LOST_AT_LEAST, "ExecEventsLost is {lost}");
    ensure!(routed.reason == "known-heavy", "{}", routed.reason);
    Ok(())
}
