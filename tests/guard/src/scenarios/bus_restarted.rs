//! The user's bus is restarted: the guard is there again by itself, with every route.

use anyhow::ensure;
use workload_guard_dbus::names::GUARD_UNIT;

use super::{CONTAINER, Scenario};
use crate::harness::guard::{FAST, Guard};
use crate::harness::load::load;
use crate::harness::outcome::{Verdict, step};
use crate::harness::session::Session;
use crate::harness::units;
use crate::harness::wait::{PATIENCE, until, until_true};

pub const SCENARIO: Scenario = Scenario {
    name: "bus-restarted",
    tiers: CONTAINER,
    quick: true,
    full: false,
    exclusive: false,
    timeout_s: 180,
    run,
};

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, FAST)?;
    let old = load(&["spin", "--idle"]).start()?;
    let routed = guard.routed_by_load(old.pid)?;
    let placed = load(&["spin", "--idle"]).start()?;
    guard.attach(&[placed.pid], "browser", "")?;
    let its_place = placed.now_in()?;

    for round in 1..=3 {
        let before = units::property(GUARD_UNIT, "InvocationID")?;
        units::systemctl(&["restart", "dbus.service"])?;
        // Nobody calls it yet: that alone would start it.
        until_true("systemd starts the guard again", PATIENCE, || {
            let now = units::property(GUARD_UNIT, "InvocationID")?;
            ensure!(now != before, "still the one before");
            ensure!(units::active_state(GUARD_UNIT)? == "active", "not active");
            Ok(true)
        })?;
        let session = until("the next bus", PATIENCE, || Ok(Some(Session::open()?)))?;
        let guard = Guard::connect(&session)?;
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
        let recovered = guard.recovered_when_idle(new.pid)?;
        ensure!(
            recovered.exact && recovered.destination == new.cgroup,
            "{recovered:?}"
        );
        step(format_args!("restart {round}: both routes kept, routes and brings back"));
    }
    let session = Session::open()?;
    let guard = Guard::connect(&session)?;
    let recovered = guard.recovered_when_idle(old.pid)?;
    ensure!(
        recovered.exact && recovered.destination == old.cgroup,
        "{recovered:?}"
    );
    let home = guard.release(placed.pid)?;
    ensure!(home == placed.cgroup, "released to {home}");
    drop((old, placed));
    units::no_scope_of_ours_left(&session, PATIENCE)?;
    units::none_failed()
}
