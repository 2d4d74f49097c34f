//! A tree that forks all through its move: nobody is left behind.

use anyhow::ensure;

use super::{CONTAINER, Scenario};
use crate::harness::guard::{Guard, QUIET};
use crate::harness::load::load;
use crate::harness::outcome::{Verdict, step};
use crate::harness::proc;
use crate::harness::session::Session;
use crate::harness::units;
use crate::harness::wait::{PATIENCE, until_true};

pub const SCENARIO: Scenario = Scenario {
    name: "forks-during-a-move",
    tiers: CONTAINER,
    quick: true,
    full: false,
    exclusive: false,
    timeout_s: 180,
    run,
};

/// Descendants in the end. They are all forked within a few hundred milliseconds, the move's among them.
const DESCENDANTS: usize = 150;

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, QUIET)?;
    let mut during = 0;
    for round in 1..=3 {
        let tree = load(&["grower", &DESCENDANTS.to_string()]).start()?;
        let before = proc::tree(tree.pid)?.len();
        guard.attach(&[tree.pid], "heavy", "")?;
        let after = proc::tree(tree.pid)?.len();
        until_true("the tree has grown", PATIENCE, || {
            Ok(proc::tree(tree.pid)?.len() > DESCENDANTS)
        })?;
        let destination = tree.now_in()?;
        ensure!(destination != tree.cgroup, "the root was not moved");
        for pid in proc::tree(tree.pid)? {
            let now = proc::cgroup_of(pid)?;
            ensure!(now == destination, "round {round}: {pid} is in {now}");
        }
        let home = guard.release(tree.pid)?;
        ensure!(home == tree.cgroup, "released to {home}");
        for pid in proc::tree(tree.pid)? {
            let now = proc::cgroup_of(pid)?;
            ensure!(now == home, "round {round}: {pid} stayed in {now}");
        }
        step(format_args!(
            "{before} processes before the move, {after} after it, all of {DESCENDANTS} moved and brought back"
        ));
        during += after - before;
    }
    ensure!(during > 0, "nobody was forked during a move");
    units::no_scope_of_ours_left(session, PATIENCE)
}
