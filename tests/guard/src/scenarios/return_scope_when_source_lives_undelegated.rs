//! The source lives and takes no process back: the work gets a return scope beside it, and that is said.

use anyhow::{Context, ensure};
use workload_guard_dbus::scope::{Origin, ScopeName};

use super::{CONTAINER, Scenario};
use crate::harness::guard::{FAST, Guard, PROTECTED};
use crate::harness::load::load;
use crate::harness::outcome::Verdict;
use crate::harness::session::Session;
use crate::harness::units;
use crate::harness::wait::{PATIENCE, until_true};

pub const SCENARIO: Scenario = Scenario {
    name: "return-scope-when-source-lives-undelegated",
    tiers: CONTAINER,
    quick: false,
    full: false,
    exclusive: false,
    timeout_s: 90,
    run,
};

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, FAST)?;
    let load = load(&["nest", "1"]).property("CPUWeight=222").start()?;
    let child = load.member()?;
    guard.routed_by_load(child)?;
    let recovered = guard.recovered_when_idle(child)?;
    ensure!(!recovered.exact, "told as exact: {recovered:?}");
    ensure!(!recovered.note.is_empty(), "nothing is said: {recovered:?}");
    let (slice, unit) = recovered
        .destination
        .rsplit_once('/')
        .context("a path without a slash")?;
    ensure!(
        slice.ends_with(PROTECTED),
        "the return scope is in {slice}"
    );
    let name: ScopeName = unit
        .parse()
        .map_err(|_| anyhow::anyhow!("{unit} is no scope of the guard"))?;
    ensure!(name.origin == Origin::Returned, "{unit}");
    let weight = units::property(unit, "CPUWeight")?;
    ensure!(
        weight == "222",
        "the return scope's CPUWeight is {weight}, the source's 222"
    );
    ensure!(
        load.now_in()? == load.cgroup,
        "the parent is in {}",
        load.now_in()?
    );
    // A later burst routes it again, and it comes back again.
    let again = guard.routed_by_load(child)?;
    ensure!(
        again.source == recovered.destination,
        "{} instead of {}",
        again.source,
        recovered.destination
    );
    let recovered = guard.recovered_when_idle(child)?;
    ensure!(
        recovered.destination.contains(PROTECTED),
        "{recovered:?}"
    );
    until_true("no workload is listed", PATIENCE, || {
        let left = guard.workloads()?;
        ensure!(left.is_empty(), "{left:?}");
        Ok(true)
    })
}
