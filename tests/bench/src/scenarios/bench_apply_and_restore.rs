//! A real kernel is brought into the state of each profile and back, over the bus: what was asked for is there, what
//! is left alone is left alone, and Restore brings back every byte.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{MACHINE, Scenario};
use crate::harness::command::{self, Ended};
use crate::harness::kernel;
use crate::harness::outcome::{Verdict, step};
use crate::harness::prepared;
use crate::harness::product::{CLI, bench, ended_with, said};
use crate::harness::service;
use crate::harness::wait;

pub const SCENARIO: Scenario = Scenario {
    name: "bench-apply-and-restore",
    tiers: MACHINE,
    quick: false,
    full: false,
    exclusive: true,
    timeout_s: 300,
    boots: &[run],
};

/// The patience with a busy host.
const CANARY: Duration = Duration::from_secs(100);
/// Whether a check of `bench status` concerns the boot, which no Apply changes.
const OF_THE_BOOT: [&str; 4] = ["profile", "command-line", "isolated", "nohz_full"];

fn run() -> Verdict {
    service::install()?;
    kernel::plan(CLI)?;
    kernel::swap_on()?;
    let before = kernel::changed()?;
    let alone = kernel::left_alone()?;

    let prepared = wait::until("the canary passes", CANARY, || {
        let ended = multi_core("--json")?;
        Ok((ended.status == 0).then_some(ended))
    })?;
    let answer: Value = serde_json::from_str(&prepared.stdout)?;
    ensure!(answer["applied"] == "multi-core", "{answer}");
    knobs_of_a_virtual_machine(&answer)?;
    is_prepared("multi-core", true)?;
    step("multi-core is applied, with a passed canary");

    multi_core("--keep-housekeeping-cores")?;
    is_prepared("multi-core", false)?;
    step("with --keep-housekeeping-cores nothing is parked");

    ended_with(&bench(&["apply", "single-core"])?, 0, "apply single-core")?;
    is_prepared("single-core", false)?;
    kernel::is_same(&alone, &kernel::left_alone()?)?;
    step("single-core is applied in its place");

    let restored = bench(&["restore"])?;
    ended_with(&restored, 0, "restore")?;
    said(&restored, "put back: ")?;
    kernel::is_same(&before, &kernel::changed()?)?;
    kernel::is_same(&alone, &kernel::left_alone()?)?;
    said(&bench(&["restore"])?, "nothing was applied")?;
    step("every byte is back");

    let refused = bench(&["apply"])?;
    ended_with(&refused, 1, "apply without a profile on a normal boot")?;
    said(&refused, "this boot is in no profile")?;
    ended_with(&bench(&["apply", "turbo"])?, 2, "an unknown profile")?;
    let score = command::ok(&["systemd-analyze", "security", "--no-pager", service::UNIT])?;
    step(score.lines().last().unwrap_or_default());
    Ok(())
}

/// Brings it into multi-core. Everything is set before the canary runs, which may fail: the host's two CPUs are this
/// machine's eight, and others may use them.
fn multi_core(option: &str) -> Result<Ended> {
    let ended = bench(&["apply", "multi-core", option])?;
    if ended.status == 1 && ended.stderr.contains("CANARY FAILED") {
        step(ended.said());
        return Ok(ended);
    }
    ended_with(&ended, 0, "apply multi-core")?;
    Ok(ended)
}

/// Each has a verdict, and what no emulator has is no failure.
fn knobs_of_a_virtual_machine(answer: &Value) -> Result<()> {
    let knobs = answer["knobs"].as_array().context("no knobs")?;
    let verdict = |id: &str| {
        let knob = knobs.iter().find(|knob| knob["id"] == id);
        knob.and_then(|knob| knob["verdict"].as_str())
            .unwrap_or("absent")
    };
    for (id, expected) in [
        ("swap", "ok"),
        ("smt", "ok"),
        ("sysctl:vm.stat_interval", "ok"),
        ("irq:default", "ok"),
        ("governor", "unsupported"),
        ("boost", "unsupported"),
    ] {
        ensure!(
            verdict(id) == expected,
            "{id} is {}, not {expected}, in {answer}",
            verdict(id)
        );
    }
    Ok(())
}

/// As the kernel itself shows it, and as `bench status` judges it.
fn is_prepared(profile: &str, parked: bool) -> Result<()> {
    prepared::isolating(parked)?;
    let status = bench(&["status", "--json", "--expect", profile])?;
    ended_with(&status, 1, "the assertion on a normal boot")?;
    let status: Value = serde_json::from_str(&status.stdout)?;
    for check in status["checks"].as_array().context("no checks")? {
        let of_the_boot = OF_THE_BOOT.iter().any(|id| check["id"] == *id);
        ensure!(of_the_boot || check["level"] != "differs", "{check}");
    }
    Ok(())
}
