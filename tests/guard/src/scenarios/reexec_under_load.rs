//! daemon-reexec and daemon-reload at random moments under a load that never settles: nothing and nobody is lost.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::{CONTAINER, Scenario};
use super::killed_40_times::{SETTINGS, nothing_is_lost};
use crate::chaos::churn::Churn;
use crate::harness::dice::Dice;
use crate::harness::guard::Guard;
use crate::harness::outcome::{Verdict, step};
use crate::harness::session::Session;
use crate::harness::units;

pub const SCENARIO: Scenario = Scenario {
    name: "reexec-under-load",
    tiers: CONTAINER,
    quick: true,
    full: false,
    exclusive: false,
    timeout_s: 300,
    run,
};

/// How often the manager is replaced or reloaded.
const TIMES: u32 = 15;
/// Between two of these, at most.
const PAUSE: Duration = Duration::from_millis(1200);

fn run(session: &Session) -> Verdict {
    let mut dice = Dice::cast();
    let guard = Guard::install(session, SETTINGS)?;
    let its_pid = guard.pid()?;
    // A start of a load is a call of the manager like any other, and may be lost with it.
    let mut churn = Churn::new(dice.fork()).whose_starts_may_fail();
    let mut its = dice.fork();
    let replacing = std::thread::spawn(move || -> Result<()> {
        for _ in 0..TIMES {
            std::thread::sleep(its.up_to(PAUSE));
            let verb = its.pick(&["daemon-reexec", "daemon-reexec", "daemon-reload"]);
            units::systemctl(&[verb])?;
        }
        Ok(())
    });
    while !replacing.is_finished() {
        churn.turn()?;
        if dice.one_in(5) {
            churn.wish(&guard);
        }
        churn.nobody_is_lost()?;
    }
    replacing
        .join()
        .map_err(|_| anyhow::anyhow!("who replaces it panicked"))??;
    step(format_args!("{TIMES} times, {} loads, {} of them live", churn.started, churn.len()));
    nothing_is_lost(session, &guard, churn)?;
    ensure!(guard.pid()? == its_pid, "the guard was started again");
    Ok(())
}
