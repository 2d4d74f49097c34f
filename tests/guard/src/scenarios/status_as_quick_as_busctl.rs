//! `workload-guard status` as a whole process takes at most twice what `busctl --user status` takes.

use super::{CONTAINER, Scenario};
use crate::harness::command;
use crate::harness::guard::{Guard, QUIET};
use crate::harness::load::load;
use crate::harness::outcome::{Verdict, step};
use crate::harness::session::{Session, payload};

pub const SCENARIO: Scenario = Scenario {
    name: "status-as-quick-as-busctl",
    tiers: CONTAINER,
    quick: false,
    full: true,
    exclusive: true,
    timeout_s: 120,
    run,
};

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, QUIET)?;
    let load = load(&["spin", "--idle"]).slice("app.slice").start()?;
    guard.attach(&[load.pid], "heavy", "")?;
    let program = payload("guard-benchmarks");
    let table = command::ok(&[&program.to_string_lossy(), "status-time", "--at-most", "2"])?;
    table.lines().for_each(step);
    Ok(())
}
