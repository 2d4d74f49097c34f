//! Four busy processes under a quota of 100 % use one CPU.

use std::time::Duration;

use anyhow::{Context, ensure};

use super::{MACHINE, Scenario};
use crate::harness::cgroup::{self, Meter};
use crate::harness::guard::{Guard, HEAVY, QUIET};
use crate::harness::load::{busy, load};
use crate::harness::outcome::{Verdict, step};
use crate::harness::proc;
use crate::harness::session::Session;
use crate::harness::stats::median;
use crate::harness::units;
use crate::harness::wait::{PATIENCE, hold, until_true};

pub const SCENARIO: Scenario = Scenario {
    name: "quota-enforced",
    tiers: MACHINE,
    quick: false,
    full: false,
    exclusive: true,
    timeout_s: 240,
    run,
};

const WINDOW: Duration = Duration::from_secs(10);

fn run(session: &Session) -> Verdict {
    let _guard = Guard::install(session, QUIET)?;
    let nest = load(&["nest", "4"]).slice(HEAVY).start()?;
    units::systemctl(&["set-property", "--runtime", HEAVY, "CPUQuota=100%"])?;
    let group = units::property(HEAVY, "ControlGroup")?;
    until_true("the kernel has the quota", PATIENCE, || {
        let quota = cgroup::quota_percent(&group)?;
        ensure!(quota == Some(100.0), "{quota:?}");
        Ok(true)
    })?;
    for pid in &nest.members {
        busy(*pid)?;
    }
    let mut runs = Vec::new();
    for run in 1..=3 {
        let meter = Meter::start(&group)?;
        hold("the load lives", WINDOW, || {
            ensure!(proc::alive(nest.pid), "it has ended");
            Ok(())
        })?;
        let percent = meter.percent()?;
        step(format_args!("run {run}: {percent:.1} % of a CPU"));
        runs.push(percent);
    }
    let middle = median(&runs).context("no run")?;
    step(format_args!("median {middle:.1} %, wanted 95 to 105"));
    ensure!((95.0..=105.0).contains(&middle), "median {middle:.1} %");
    let throttled = cgroup::keyed(&group, "cpu.stat", "nr_throttled")?;
    ensure!(throttled > 0, "the kernel throttled nothing");
    Ok(())
}
