//! The service ends by itself when nobody has called for a minute, and the next call starts it again: nothing waits
//! beside a measurement.

use std::time::Duration;

use anyhow::ensure;

use super::{CONTAINER, Scenario};
use crate::harness::call::{Order, done};
use crate::harness::outcome::{Verdict, step};
use crate::harness::service::{UNIT, property};
use crate::harness::tree;
use crate::harness::wait;

pub const SCENARIO: Scenario = Scenario {
    name: "bench-service-ends-when-idle",
    tiers: CONTAINER,
    quick: false,
    full: true,
    exclusive: false,
    timeout_s: 240,
    boots: &[run],
};

/// Its minute, on a busy machine.
const IDLE: Duration = Duration::from_secs(150);

fn run() -> Verdict {
    tree::install()?;
    done(0, &Order::apply("multi-core"))?;
    wait::until_true("nobody calls, and it ends", IDLE, || {
        Ok(property(UNIT, "ActiveState")? == "inactive")
    })?;
    let result = property(UNIT, "Result")?;
    let status = property(UNIT, "ExecMainStatus")?;
    ensure!(result == "success" && status == "0", "{result}, {status}");
    step("it has ended in order");
    done(0, &Order::restore())?;
    tree::is_untouched()?;
    step("the next call started it again, and it knew what was there before");
    Ok(())
}
