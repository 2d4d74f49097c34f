//! Whoever stops a unit stops the work that was moved out of it too, whether the unit still lives or not.

use anyhow::ensure;

use super::{CONTAINER, Scenario};
use crate::harness::guard::{FAST, Guard};
use crate::harness::load::load;
use crate::harness::outcome::{Verdict, step};
use crate::harness::proc;
use crate::harness::session::Session;
use crate::harness::units;
use crate::harness::wait::{PATIENCE, until_true};

pub const SCENARIO: Scenario = Scenario {
    name: "stopping-source-stops-the-work",
    tiers: CONTAINER,
    quick: true,
    full: false,
    exclusive: false,
    timeout_s: 90,
    run,
};

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, FAST)?;

    let nest = load(&["nest", "1"]).start()?;
    let child = nest.member()?;
    guard.routed_by_load(child)?;
    units::systemctl(&["stop", &nest.unit])?;
    until_true("the work of a living source ends", PATIENCE, || {
        ensure!(!proc::alive(child), "{child} lives in {}", proc::cgroup_of(child)?);
        Ok(true)
    })?;
    step("a living source: stopped with it");

    let mut alone = load(&["spin", "--idle"]).start()?;
    guard.routed_by_load(alone.pid)?;
    units::becomes(&alone.unit, "inactive", PATIENCE)?;
    units::systemctl(&["stop", &alone.unit])?;
    until_true("the work of an emptied source ends", PATIENCE, || {
        alone.ended()
    })?;
    step("an emptied source: stopped with it");

    until_true("no workload is listed", PATIENCE, || {
        let left = guard.workloads()?;
        ensure!(left.is_empty(), "{left:?}");
        Ok(true)
    })?;
    units::no_scope_of_ours_left(session, PATIENCE)
}
