//! Somebody stops the slice, or a scope: systemd ends the work in it. The guard says so and goes on.

use anyhow::ensure;

use super::{CONTAINER, Scenario};
use crate::harness::guard::{FAST, Guard, HEAVY, PROTECTED};
use crate::harness::journal;
use crate::harness::load::load;
use crate::harness::outcome::{Verdict, step};
use crate::harness::session::Session;
use crate::harness::units;
use crate::harness::wait::{PATIENCE, until_true};

pub const SCENARIO: Scenario = Scenario {
    name: "slice-stopped-under-us",
    tiers: CONTAINER,
    quick: true,
    full: false,
    exclusive: false,
    timeout_s: 120,
    run,
};

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, FAST)?;
    let its_pid = guard.pid()?;
    let reasons = guard.reasons()?;
    for what in [HEAVY, "heavy.slice", PROTECTED, "the scope"] {
        let mut doomed = load(&["spin", "--idle"]).start()?;
        let routed = guard.routed_by_load(doomed.pid)?;
        let scope = routed.destination.rsplit('/').next().unwrap_or_default();
        let unit = if what == "the scope" { scope } else { what };
        units::systemctl(&["stop", unit])?;
        if what == PROTECTED {
            // Its own unit was there, which has ended; the work is in the other slice, and stays.
            ensure!(
                doomed.exit()?.is_none() && doomed.now_in()? == routed.destination,
                "work in another slice was ended or moved"
            );
            units::systemctl(&["stop", scope])?;
        }
        until_true("the work has ended", PATIENCE, || doomed.ended())?;
        until_true("the workload is gone", PATIENCE, || {
            let rows = guard.workloads()?;
            ensure!(rows.is_empty(), "{rows:?}");
            Ok(true)
        })?;
        let pid = format!("WORKLOAD_PID={}", doomed.pid);
        until_true("the journal tells its end", PATIENCE, || {
            let entries = journal::of_guard(&[&pid])?;
            let mut messages = entries.iter().filter_map(|entry| entry.get("MESSAGE"));
            Ok(messages.any(|message| message.starts_with("ended ")))
        })?;
        for slice in [HEAVY, PROTECTED] {
            units::becomes(slice, "active", PATIENCE)?;
        }
        until_true("the state is as before", PATIENCE, || {
            let now = guard.reasons()?;
            ensure!(now == reasons, "before: {reasons:?}, now: {now:?}");
            Ok(true)
        })?;
        let next = load(&["spin", "--idle"]).start()?;
        guard.routed_by_load(next.pid)?;
        let recovered = guard.recovered_when_idle(next.pid)?;
        ensure!(
            recovered.exact && recovered.destination == next.cgroup,
            "{recovered:?}"
        );
        step(format_args!("{what} stopped: told, and the next one is routed and comes back"));
    }
    ensure!(guard.pid()? == its_pid, "the guard was started again");
    units::no_scope_of_ours_left(session, PATIENCE)
}
