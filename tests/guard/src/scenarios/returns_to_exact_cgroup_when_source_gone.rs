//! The source ended with the move of its only process: the work comes back to the very same path, and the unit
//! that is made there again has the settings of the old one.

use anyhow::ensure;

use super::{BOTH, Scenario};
use crate::harness::guard::{FAST, Guard};
use crate::harness::load::load;
use crate::harness::outcome::{Verdict, step};
use crate::harness::session::Session;
use crate::harness::units;
use crate::harness::wait::PATIENCE;

pub const SCENARIO: Scenario = Scenario {
    name: "returns-to-exact-cgroup-when-source-gone",
    tiers: BOTH,
    quick: true,
    full: false,
    exclusive: false,
    timeout_s: 90,
    run,
};

/// What a person may have set on the source.
const SETTINGS: &[&str] = &[
    "Slice",
    "Description",
    "CPUWeight",
    "TasksMax",
    "KillMode",
    "SendSIGHUP",
    "TimeoutStopUSec",
];

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, FAST)?;
    let load = load(&["spin", "--idle"])
        .description("a person's own words: 50% & more")
        .property("CPUWeight=321")
        .property("TasksMax=777")
        .property("KillMode=process")
        .property("SendSIGHUP=yes")
        .property("TimeoutStopSec=7")
        .start()?;
    let before = units::properties(&load.unit, SETTINGS)?;
    for round in 1..=3 {
        guard.routed_by_load(load.pid)?;
        let state = units::active_state(&load.unit)?;
        ensure!(state == "inactive", "the emptied source is {state}");
        let recovered = guard.recovered_when_idle(load.pid)?;
        ensure!(
            recovered.exact && recovered.destination == load.cgroup,
            "round {round}: {recovered:?}, came from {}",
            load.cgroup
        );
        let after = units::properties(&load.unit, SETTINGS)?;
        ensure!(
            before == after,
            "round {round}: the settings of {} were {before:#?} and are {after:#?}",
            load.unit
        );
        units::no_scope_of_ours_left(session, PATIENCE)?;
        step(format_args!("round {round}: same path, same settings"));
    }
    Ok(())
}
