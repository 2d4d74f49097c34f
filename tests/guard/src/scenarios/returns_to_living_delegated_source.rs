//! The source lives and is delegated: the work comes back to where it was, sub-cgroup included.

use anyhow::ensure;

use super::{CONTAINER, Scenario};
use crate::harness::guard::{FAST, Guard};
use crate::harness::load::load;
use crate::harness::outcome::{Verdict, step};
use crate::harness::proc;
use crate::harness::session::Session;
use crate::harness::units;
use crate::harness::wait::PATIENCE;

pub const SCENARIO: Scenario = Scenario {
    name: "returns-to-living-delegated-source",
    tiers: CONTAINER,
    quick: false,
    full: false,
    exclusive: false,
    timeout_s: 90,
    run,
};

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, FAST)?;
    for words in [&["nest", "1"][..], &["nest", "1", "--into", "inner"]] {
        let load = load(words).property("Delegate=yes").start()?;
        let child = load.member()?;
        let home = proc::cgroup_of(child)?;
        let routed = guard.routed_by_load(child)?;
        ensure!(routed.source == home, "source: {routed:?}");
        ensure!(
            load.now_in()? == load.cgroup,
            "the idle parent was moved to {}",
            load.now_in()?
        );
        let recovered = guard.recovered_when_idle(child)?;
        ensure!(
            recovered.exact && recovered.destination == home,
            "{recovered:?}, came from {home}"
        );
        units::no_scope_of_ours_left(session, PATIENCE)?;
        step(format_args!("back in {home}"));
    }
    Ok(())
}
