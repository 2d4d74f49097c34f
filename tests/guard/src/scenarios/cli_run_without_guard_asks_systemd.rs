//! Without the guard, `run` and `protect` ask systemd itself and warn: the slice bounds the work either way.

use anyhow::ensure;
use workload_guard_dbus::names::GUARD_UNIT;

use super::{CONTAINER, Scenario};
use crate::harness::command;
use crate::harness::guard::{Guard, HEAVY, PROTECTED, QUIET};
use crate::harness::outcome::{Verdict, step};
use crate::harness::session::Session;
use crate::harness::units;
use crate::harness::wait::PATIENCE;

pub const SCENARIO: Scenario = Scenario {
    name: "cli-run-without-guard-asks-systemd",
    tiers: CONTAINER,
    quick: true,
    full: false,
    exclusive: false,
    timeout_s: 90,
    run,
};

fn run(session: &Session) -> Verdict {
    let _guard = Guard::install(session, QUIET)?;
    // Masked at run time: it can neither run nor be activated.
    units::systemctl(&["mask", "--runtime", "--now", GUARD_UNIT])?;
    units::becomes(GUARD_UNIT, "inactive", PATIENCE)?;
    for (verb, slice) in [("run", HEAVY), ("protect", PROTECTED)] {
        let ended = command::run(&[
            "workload-guard", verb, "sh", "-c", "cat /proc/self/cgroup; exit 5",
        ])?;
        step(format_args!("{verb}: status {}: {}", ended.status, ended.said()));
        ensure!(ended.status == 5, "status {}", ended.status);
        ensure!(ended.stdout.contains(slice), "it ran in {}", ended.stdout);
        ensure!(!ended.stderr.trim().is_empty(), "no warning");
    }
    let ended = command::run(&["workload-guard", "status"])?;
    step(format_args!("status: {}: {}", ended.status, ended.said()));
    ensure!(
        ended.status == 69 && ended.stderr.contains(GUARD_UNIT),
        "status without a guard ended with {}: {}",
        ended.status,
        ended.said()
    );
    units::no_scope_of_ours_left(session, PATIENCE)
}
