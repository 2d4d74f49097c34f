//! A burst of 120 ms is no sustained load.

use std::time::Duration;

use anyhow::ensure;

use super::{CONTAINER, Scenario};
use crate::harness::guard::{FAST, Guard};
use crate::harness::load::{burst, load};
use crate::harness::outcome::{Verdict, step};
use crate::harness::session::Session;
use crate::harness::wait::hold;

pub const SCENARIO: Scenario = Scenario {
    name: "burst-of-120ms-not-routed",
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
    for round in 1..=5 {
        burst(load.pid)?;
        hold("it is not routed", Duration::from_secs(1), || {
            ensure!(load.now_in()? == load.cgroup, "it is in {}", load.now_in()?);
            Ok(())
        })?;
        step(format_args!("burst {round}: not routed"));
    }
    ensure!(guard.routed_total()? == 0, "RoutedTotal is not 0");
    Ok(())
}
