//! The user manager is restarted, or killed: every process below it ends, and the next guard starts from nothing.

use anyhow::{Result, ensure};
use workload_guard_dbus::names::GUARD_UNIT;

use super::{CONTAINER, Scenario};
use crate::harness::guard::{FAST, Guard};
use crate::harness::load::load;
use crate::harness::outcome::{Verdict, step};
use crate::harness::root;
use crate::harness::session::{Session, UID};
use crate::harness::units;
use crate::harness::wait::{PATIENCE, until, until_true};

pub const SCENARIO: Scenario = Scenario {
    name: "user-manager-restarted",
    tiers: CONTAINER,
    quick: true,
    full: false,
    exclusive: false,
    timeout_s: 180,
    run,
};

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, FAST)?;
    let reasons = guard.reasons()?;
    drop(guard);
    let manager = format!("user@{UID}.service");
    restarted("restarted", &reasons, || {
        root::ok(&["systemctl", "restart", &manager]).map(|_| ())
    })?;
    restarted("killed", &reasons, || {
        root::ok(&["systemctl", "kill", "--kill-who=main", "--signal=KILL", &manager])?;
        until_true("its unit has ended", PATIENCE, || {
            let state = root::run(&["systemctl", "is-active", &manager])?.stdout;
            ensure!(["failed", "inactive"].contains(&state.trim()), "{state}");
            Ok(true)
        })?;
        root::ok(&["systemctl", "start", &manager]).map(|_| ())
    })
}

/// Work is routed and placed, then the user manager ends and starts again.
fn restarted(what: &str, reasons: &[String], fault: impl FnOnce() -> Result<()>) -> Result<()> {
    let guard = Guard::connect(&Session::open()?)?;
    guard.answers()?;
    let its_pid = guard.pid()?;
    let mut routed = load(&["spin", "--idle"]).start()?;
    guard.routed_by_load(routed.pid)?;
    let mut placed = load(&["spin", "--idle"]).start()?;
    guard.attach(&[placed.pid], "browser", "")?;

    fault()?;
    until_true("the work has ended with its manager", PATIENCE, || {
        Ok(routed.ended()? && placed.ended()?)
    })?;
    // Started by the manager, as it is enabled: nothing has called it yet.
    until_true("the next guard runs", PATIENCE, || {
        ensure!(units::active_state(GUARD_UNIT)? == "active", "not active");
        Ok(true)
    })?;
    let session = until("the next bus", PATIENCE, || Ok(Some(Session::open()?)))?;
    let guard = Guard::connect(&session)?;
    guard.answers()?;
    ensure!(guard.pid()? != its_pid, "the guard was not started again");
    let rows = guard.workloads()?;
    ensure!(rows.is_empty(), "workloads of the manager before: {rows:?}");
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
    drop(next);
    units::no_scope_of_ours_left(&session, PATIENCE)?;
    units::none_failed()?;
    step(format_args!("{what}: the next guard knows of no work, and routes"));
    Ok(())
}
