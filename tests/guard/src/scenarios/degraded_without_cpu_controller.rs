//! Without the cpu controller the guard says that budgets are not enforced, and the way out; with it, all is normal.

use anyhow::ensure;

use super::{BOTH, Scenario};
use crate::harness::cgroup;
use crate::harness::guard::{Guard, QUIET};
use crate::harness::load::load;
use crate::harness::outcome::{Verdict, step};
use crate::harness::session::{Session, UID};
use crate::harness::wait::{PATIENCE, until_true};

pub const SCENARIO: Scenario = Scenario {
    name: "degraded-without-cpu-controller",
    tiers: BOTH,
    quick: true,
    full: false,
    exclusive: false,
    timeout_s: 60,
    run,
};

fn run(session: &Session) -> Verdict {
    let enforced = cgroup::user_manager_has_cpu(UID)?;
    let guard = Guard::install(session, QUIET)?;
    let capabilities = zbus::block_on(guard.proxy().capabilities())?;
    ensure!(
        capabilities.iter().any(|name| name == "cpu-controller") == enforced,
        "the controller is {}; Capabilities: {capabilities:?}",
        if enforced { "there" } else { "missing" }
    );
    if enforced {
        until_true("the state is normal", PATIENCE, || {
            let (state, reasons) = (guard.state()?, guard.reasons()?);
            ensure!(state == "normal" && reasons.is_empty(), "{state}: {reasons:?}");
            Ok(true)
        })?;
        step("the cpu controller is there: normal");
        return Ok(());
    }
    until_true("the state says that budgets are not enforced", PATIENCE, || {
        let (state, reasons) = (guard.state()?, guard.reasons()?);
        ensure!(
            state == "degraded"
                && reasons.iter().any(|reason| {
                    // What is missing, where one sees it, and the drop-in that mends it.
                    reason.contains("cpu controller")
                        && reason.contains("cgroup.controllers")
                        && reason.contains("/etc/systemd/system/user@.service.d/delegate.conf")
                        && reason.contains("Delegate=")
                }),
            "{state}: {reasons:?}"
        );
        Ok(true)
    })?;
    step(format_args!("degraded: {:?}", guard.reasons()?));
    let classes = zbus::block_on(guard.proxy().classes())?;
    ensure!(
        classes.iter().all(|class| class.quota == 0),
        "quotas that no kernel enforces: {classes:?}"
    );
    // What can go on goes on.
    let load = load(&["spin", "--idle"]).start()?;
    guard.attach(&[load.pid], "heavy", "")?;
    ensure!(load.now_in()? != load.cgroup, "it was not moved");
    Ok(())
}
