//! A process is routed with all its descendants, and comes back with them.

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
    name: "tree-routed-whole",
    tiers: CONTAINER,
    quick: true,
    full: false,
    exclusive: false,
    timeout_s: 90,
    run,
};

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, FAST)?;
    let load = load(&["tree", "8"]).start()?;
    ensure!(load.members.len() == 16, "members: {:?}", load.members);
    let mut all = load.members.clone();
    all.push(load.pid);
    all.sort_unstable();
    let all_in = |cgroup: &str| {
        all.iter().try_for_each(|pid| {
            let now = proc::cgroup_of(*pid)?;
            ensure!(now == cgroup, "{pid} is in {now}, not in {cgroup}");
            Ok(())
        })
    };

    let routed = guard.routed_by_load(load.pid)?;
    all_in(&routed.destination)?;
    step(format_args!("all {} processes moved", all.len()));
    let object = guard.workload(&routed.workload)?;
    until_true("the object has every PID", PATIENCE, || {
        let mut pids = zbus::block_on(object.pids())?;
        pids.sort_unstable();
        ensure!(pids == all, "{pids:?}");
        Ok(true)
    })?;

    let recovered = guard.recovered_when_idle(load.pid)?;
    ensure!(
        recovered.exact && recovered.destination == load.cgroup,
        "{recovered:?}"
    );
    all_in(&load.cgroup)?;
    units::no_scope_of_ours_left(session, PATIENCE)
}
