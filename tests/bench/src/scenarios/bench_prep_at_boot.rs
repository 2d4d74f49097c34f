//! bench-prep.service applies the booted profile over the bus before multi-user.target; on a normal boot it does
//! nothing, and where the machine cannot be brought into the state it fails visibly.

use std::path::Path;

use anyhow::{Result, ensure};

use super::{CONTAINER, Scenario};
use crate::harness::command;
use crate::harness::outcome::{Verdict, step};
use crate::harness::service::{UNIT, property};
use crate::harness::tree;

pub const SCENARIO: Scenario = Scenario {
    name: "bench-prep-at-boot",
    tiers: CONTAINER,
    quick: false,
    full: false,
    exclusive: false,
    timeout_s: 120,
    boots: &[run],
};

const PREP: &str = "bench-prep.service";
const DROP_IN: &str = "/etc/systemd/system/bench-prep.service.d/scenario.conf";

fn run() -> Verdict {
    tree::install()?;
    // As in early boot: nobody is there to ask.
    command::ok(&["systemctl", "mask", "--runtime", "--now", "polkit.service"])?;
    command::ok(&["systemctl", "enable", PREP])?;
    for unit in [PREP, UNIT] {
        // The manual page is not part of this installation.
        let said = command::ok(&["systemd-analyze", "verify", "--man=no", unit])?;
        ensure!(said.is_empty(), "{unit}: {said}");
    }
    let before = property(PREP, "Before")?;
    ensure!(
        before.split(' ').any(|unit| unit == "multi-user.target"),
        "{before}"
    );

    command::ok(&["systemctl", "start", PREP])?;
    ensure!(
        states()? == ("no".into(), "inactive".into(), "inactive".into()),
        "a normal boot: {:?}",
        states()?
    );
    tree::is_untouched()?;
    step("a normal boot is left alone, and the service is not even started");

    // A container has no kernel command line of its own; the tree has one.
    std::fs::create_dir_all(Path::new(DROP_IN).parent().expect("a folder"))?;
    std::fs::write(DROP_IN, "[Unit]\nConditionKernelCommandLine=\n")?;
    command::ok(&["systemctl", "daemon-reload"])?;
    let failed = command::run(&["systemctl", "start", PREP])?;
    ensure!(failed.status != 0, "it did not fail: {}", failed.said());
    ensure!(property(PREP, "ActiveState")? == "failed", "it is not failed");
    journal_says("this boot is in no profile")?;
    step("where the state cannot be reached it fails and says why");

    tree::write("proc/cmdline", "root=/dev/x bench_profile=multi-core\n")?;
    // The booted profile is read once: a boot does not change it.
    command::ok(&["systemctl", "stop", UNIT])?;
    command::ok(&["systemctl", "start", PREP])?;
    ensure!(
        property(PREP, "ActiveState")? == "active",
        "it does not stay active"
    );
    tree::is_prepared()?;
    journal_says("multi-core: ")?;
    step("the booted profile is applied, without polkitd");
    Ok(())
}

/// Whether the condition held, and the states of both units.
fn states() -> Result<(String, String, String)> {
    Ok((
        property(PREP, "ConditionResult")?,
        property(PREP, "ActiveState")?,
        property(UNIT, "ActiveState")?,
    ))
}

fn journal_says(words: &str) -> Result<()> {
    command::ok(&["journalctl", "--sync"])?;
    let said = command::ok(&["journalctl", "--unit", PREP, "--output", "cat"])?;
    ensure!(said.contains(words), "{words:?} is not in {said}");
    Ok(())
}
