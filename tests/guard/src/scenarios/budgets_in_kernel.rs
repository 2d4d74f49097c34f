//! Budgets and weights are in the kernel's files: also for slices that were active before the install, and after a
//! daemon-reload.

use anyhow::{Result, ensure};

use super::{MACHINE, Scenario};
use crate::harness::cgroup;
use crate::harness::guard::{Guard, QUIET};
use crate::harness::load::load;
use crate::harness::outcome::{Verdict, step};
use crate::harness::session::Session;
use crate::harness::units;
use crate::harness::wait::{PATIENCE, until_true};

pub const SCENARIO: Scenario = Scenario {
    name: "budgets-in-kernel",
    tiers: MACHINE,
    quick: false,
    full: false,
    exclusive: false,
    timeout_s: 180,
    run,
};

/// A slice, its weight, and its quota in percent of one CPU.
const BUDGETS: &[(&str, u64, Option<f64>)] = &[
    ("protected.slice", 1000, None),
    ("protected.slice/protected-workload.slice", 1000, Some(150.0)),
    ("heavy.slice", 100, None),
    ("heavy.slice/heavy-workload.slice", 100, Some(400.0)),
    ("browser.slice", 100, None),
    ("browser.slice/browser-automation.slice", 100, Some(200.0)),
];

fn run(session: &Session) -> Verdict {
    let _loads = ["protected-workload.slice", "heavy-workload.slice", "browser-automation.slice"]
        .iter()
        .map(|slice| load(&["spin", "--idle"]).slice(slice).start())
        .collect::<Result<Vec<_>>>()?;
    let manager = "/user.slice/user-1000.slice/user@1000.service";
    let in_kernel = || -> Result<bool> {
        for (slice, weight, quota) in BUDGETS {
            let group = format!("{manager}/{slice}");
            let found = cgroup::read(&group, "cpu.weight")?;
            ensure!(found == weight.to_string(), "cpu.weight of {slice} is {found}");
            let found = cgroup::quota_percent(&group)?;
            ensure!(found == *quota, "cpu.max of {slice} is {found:?} %");
        }
        Ok(true)
    };
    ensure!(in_kernel().is_err(), "the budgets were there before the install");

    let guard = Guard::install(session, QUIET)?;
    until_true("the budgets are in the kernel after the install", PATIENCE, in_kernel)?;
    step("slices active before the install: all budgets in the kernel");
    for round in 1..=2 {
        units::systemctl(&["daemon-reload"])?;
        until_true("the budgets are in the kernel after a reload", PATIENCE, in_kernel)?;
        step(format_args!("daemon-reload {round}: all budgets in the kernel"));
    }
    until_true("the state is normal", PATIENCE, || {
        let (state, reasons) = (guard.state()?, guard.reasons()?);
        ensure!(state == "normal", "{state}: {reasons:?}");
        Ok(true)
    })?;
    let classes = zbus::block_on(guard.proxy().classes())?;
    for (class, quota, weight) in [("protected", 150, 1000), ("heavy", 400, 100), ("browser", 200, 100)] {
        ensure!(
            classes
                .iter()
                .any(|row| row.name == class && row.quota == quota && row.weight == weight),
            "Classes does not say {class} {quota} % {weight}: {classes:?}"
        );
    }
    Ok(())
}
