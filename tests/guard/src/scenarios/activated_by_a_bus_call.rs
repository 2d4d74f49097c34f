//! A call to the guard's name starts it.

use anyhow::ensure;
use workload_guard_dbus::names::GUARD_UNIT;

use super::{CONTAINER, Scenario};
use crate::harness::command;
use crate::harness::guard::{Guard, QUIET};
use crate::harness::outcome::{Verdict, step};
use crate::harness::session::Session;
use crate::harness::units;
use crate::harness::wait::PATIENCE;

pub const SCENARIO: Scenario = Scenario {
    name: "activated-by-a-bus-call",
    tiers: CONTAINER,
    quick: true,
    full: false,
    exclusive: false,
    timeout_s: 60,
    run,
};

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, QUIET)?;
    units::systemctl(&["stop", GUARD_UNIT])?;
    units::becomes(GUARD_UNIT, "inactive", PATIENCE)?;
    let said = command::ok(&[
        "busctl",
        "--user",
        "get-property",
        "org.workloadguard.Guard1",
        "/org/workloadguard/Guard1",
        "org.workloadguard.Guard1",
        "Version",
    ])?;
    step(format_args!("busctl: {said}"));
    ensure!(said.starts_with("s \""), "busctl said {said:?}");
    let state = units::active_state(GUARD_UNIT)?;
    ensure!(state == "active", "{GUARD_UNIT} is {state}");
    // And through a method, as the first call after a stop.
    units::systemctl(&["stop", GUARD_UNIT])?;
    units::becomes(GUARD_UNIT, "inactive", PATIENCE)?;
    ensure!(guard.workloads()?.is_empty(), "it lists workloads");
    units::becomes(GUARD_UNIT, "active", PATIENCE)?;
    // The alias of the Python original leads to it.
    let alias = units::property("workload-router.service", "Id")?;
    ensure!(alias == GUARD_UNIT, "workload-router.service is {alias}");
    Ok(())
}
