//! Where multi-core is booted with isolcpus=domain, as an older tool's entry had it, work piles up on one CPU: the
//! canary fails, bench-prep.service with it, and both name the cause.

use std::path::Path;

use anyhow::{Context, ensure};

use super::{LOADER, Scenario};
use crate::harness::boots::{self, ENTRIES, PREP};
use crate::harness::command;
use crate::harness::outcome::{Verdict, step};
use crate::harness::product::{bench, ended_with, said};
use crate::harness::service::property;
use crate::harness::wait;

pub const SCENARIO: Scenario = Scenario {
    name: "bench-boot-canary-names-the-cause",
    tiers: LOADER,
    quick: false,
    full: true,
    exclusive: false,
    timeout_s: 600,
    boots: &[prepare, with_the_wrong_line],
};

/// What both say.
const CAUSE: [&str; 2] = [
    "CANARY FAILED: the benchmark CPUs are not dispatching work in parallel.",
    "the kernel cmdline carries isolcpus=domain over",
];

fn prepare() -> Verdict {
    boots::set_up()?;
    boots::regenerate()?;
    let entries = boots::entries()?;
    let name = entries.keys().find(|name| name.ends_with("-bench-multi-core.conf"));
    let entry = Path::new(ENTRIES).join(name.context("no entry for multi-core")?);
    boots::edit(&entry, |text| {
        text.replace("isolcpus=managed_irq,", "isolcpus=domain,managed_irq,")
    })?;
    boots::restart_into("multi-core")
}

fn with_the_wrong_line() -> Verdict {
    wait::until_true("the boot has come to its end", boots::PATIENCE, || {
        Ok(property("multi-user.target", "ActiveState")? == "active")
    })?;
    let state = property(PREP, "ActiveState")?;
    ensure!(state == "failed", "{PREP} is {state}, not failed");
    let journal = command::ok(&["journalctl", "--boot", "--unit", PREP, "--output", "cat"])?;
    for words in CAUSE {
        ensure!(journal.contains(words), "{words:?} is not in {journal}");
    }
    step(format_args!("{PREP} failed: {journal}"));

    let canary = bench(&["canary"])?;
    step(format_args!("{}", canary.said()));
    ended_with(&canary, 1, "the canary")?;
    for words in CAUSE {
        said(&canary, words)?;
    }
    let status = bench(&["status", "--expect", "multi-core"])?;
    ended_with(&status, 1, "the assertion")?;
    said(&status, "which multi-core rules out")?;
    said(&status, "expected: none, or a thread pool stays on one CPU")?;
    step("the assertion names it too");
    Ok(())
}
