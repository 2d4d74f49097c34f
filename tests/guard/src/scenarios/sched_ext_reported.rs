//! A scheduler that need not heed budgets is reported, and so is its end.

use anyhow::ensure;

use super::{BOTH, Scenario};
use crate::harness::guard::{Guard, QUIET};
use crate::harness::outcome::{Verdict, step};
use crate::harness::root;
use crate::harness::session::Session;
use crate::harness::wait::{PATIENCE, until_true};

pub const SCENARIO: Scenario = Scenario {
    name: "sched-ext-reported",
    tiers: BOTH,
    quick: false,
    full: false,
    exclusive: false,
    timeout_s: 60,
    run,
};

/// What the kernel has there while one is loaded; the guests' kernels have none to load.
const LOADED: &str = "mount -t tmpfs none /sys/kernel && mkdir -p /sys/kernel/sched_ext/root \
    && echo enabled > /sys/kernel/sched_ext/state && echo lavd_1.0 > /sys/kernel/sched_ext/root/ops";

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, QUIET)?;
    let says = |wanted: bool| {
        // The guard looks at each reload, and by itself every half a minute.
        guard.reload()?;
        until_true("the state says so, or no longer", PATIENCE, || {
            let reasons = guard.reasons()?;
            let told = reasons.iter().any(|reason| reason.contains("lavd_1.0 (sched_ext)"));
            ensure!(told == wanted, "{reasons:?}");
            Ok(true)
        })
    };
    says(false)?;
    root::ok(&["sh", "-c", LOADED])?;
    says(true)?;
    ensure!(guard.state()? == "degraded", "{}", guard.state()?);
    step("a loaded scheduler: degraded, with its name");
    root::ok(&["umount", "/sys/kernel"])?;
    says(false)
}
