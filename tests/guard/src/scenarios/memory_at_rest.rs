//! The guard is resident on every desktop: its memory at rest, and with a thousand watched processes.

use anyhow::ensure;

use super::{CONTAINER, Scenario};
use crate::harness::guard::{Guard, PROTECTED, Settings};
use crate::harness::load::load;
use crate::harness::outcome::{Verdict, step};
use crate::harness::proc;
use crate::harness::session::Session;
use crate::harness::wait::{PATIENCE, until_true};

pub const SCENARIO: Scenario = Scenario {
    name: "memory-at-rest",
    tiers: CONTAINER,
    quick: false,
    full: false,
    exclusive: true,
    timeout_s: 120,
    run,
};

/// The defaults, but a sample every quarter of a second: what a sample leaves behind shows sooner.
const SETTINGS: Settings<'static> = &[("WORKLOAD_GUARD_SAMPLE_SEC", "0.25")];
const AT_REST_KB: u64 = 8 * 1024;
const WITH_A_THOUSAND_KB: u64 = 10 * 1024;
const PROCESSES: u32 = 1000;
/// Samples after which memory is read.
const SAMPLES: u32 = 20;

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, SETTINGS)?;
    let watched = || -> anyhow::Result<u32> {
        Ok(zbus::block_on(guard.proxy().watched())?
            .iter()
            .filter(|row| row.unit == PROTECTED)
            .map(|row| row.processes)
            .sum())
    };
    settle(&guard)?;
    let rest = proc::resident_kb(guard.pid()?)?;
    step(format_args!("at rest: VmRSS {rest} kB (at most {AT_REST_KB})"));

    let many = load(&["many", &PROCESSES.to_string()]).start()?;
    until_true("all are watched", PATIENCE, || {
        let now = watched()?;
        ensure!(now == PROCESSES + 1, "{now}");
        Ok(true)
    })?;
    settle(&guard)?;
    let full = proc::resident_kb(guard.pid()?)?;
    step(format_args!(
        "{PROCESSES} idle processes: VmRSS {full} kB (at most {WITH_A_THOUSAND_KB})"
    ));
    ensure!(many.now_in()? == many.cgroup, "they were moved");
    ensure!(rest <= AT_REST_KB, "at rest: {rest} kB");
    ensure!(full <= WITH_A_THOUSAND_KB, "with {PROCESSES}: {full} kB");
    Ok(())
}

/// Waits for so many samples, by the count of processes that each one publishes: a short-lived extra process is
/// seen by one sample and gone at the next.
fn settle(guard: &Guard) -> anyhow::Result<()> {
    let count = || -> anyhow::Result<u32> {
        Ok(zbus::block_on(guard.proxy().watched())?
            .iter()
            .map(|row| row.processes)
            .sum())
    };
    for _ in 0..SAMPLES / 2 {
        let before = count()?;
        let extra = load(&["spin", "--idle"]).start()?;
        until_true("a sample sees a new process", PATIENCE, || Ok(count()? == before + 1))?;
        drop(extra);
        until_true("a sample misses it", PATIENCE, || Ok(count()? == before))?;
    }
    Ok(())
}
