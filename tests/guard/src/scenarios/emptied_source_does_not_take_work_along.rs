//! A scope that ends because its last process was moved out of it does not end the moved work.

use std::time::Duration;

use anyhow::ensure;

use super::{CONTAINER, Scenario};
use crate::harness::guard::{FAST, Guard};
use crate::harness::load::load;
use crate::harness::outcome::Verdict;
use crate::harness::proc;
use crate::harness::session::Session;
use crate::harness::units;
use crate::harness::wait::{PATIENCE, hold};

pub const SCENARIO: Scenario = Scenario {
    name: "emptied-source-does-not-take-work-along",
    tiers: CONTAINER,
    quick: true,
    full: false,
    exclusive: false,
    timeout_s: 60,
    run,
};

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, FAST)?;
    let load = load(&["spin", "--idle"]).start()?;
    let routed = guard.routed_by_load(load.pid)?;
    units::becomes(&load.unit, "inactive", PATIENCE)?;
    hold("the work lives", Duration::from_secs(3), || {
        ensure!(proc::alive(load.pid), "{} has ended", load.pid);
        ensure!(load.now_in()? == routed.destination, "it was moved");
        Ok(())
    })
}
