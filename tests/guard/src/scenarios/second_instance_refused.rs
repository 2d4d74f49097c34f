//! A second guard refuses to start and names the first; the first is not disturbed.

use anyhow::{Context, ensure};
use workload_guard_dbus::names::GUARD_UNIT;

use super::{CONTAINER, Scenario};
use crate::harness::command;
use crate::harness::guard::{Guard, QUIET};
use crate::harness::outcome::{Verdict, step};
use crate::harness::session::Session;
use crate::harness::units;

pub const SCENARIO: Scenario = Scenario {
    name: "second-instance-refused",
    tiers: CONTAINER,
    quick: true,
    full: false,
    exclusive: false,
    timeout_s: 60,
    run,
};

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, QUIET)?;
    let first = guard.pid()?;
    let exec = units::property(GUARD_UNIT, "ExecStart")?;
    let program = exec
        .split_whitespace()
        .find_map(|word| word.strip_prefix("path="))
        .with_context(|| format!("no path in ExecStart: {exec}"))?;
    let ended = command::run(&["timeout", "30", program])?;
    step(format_args!("it ended with {}: {}", ended.status, ended.said()));
    ensure!(
        ended.status != 0 && ended.status != 124,
        "the second instance ended with {}",
        ended.status
    );
    ensure!(
        ended.stderr.contains(&first.to_string()),
        "it does not name the first, {first}: {}",
        ended.stderr
    );
    ensure!(guard.pid()? == first, "the first was replaced");
    guard.state().context("the first no longer answers")?;
    Ok(())
}
