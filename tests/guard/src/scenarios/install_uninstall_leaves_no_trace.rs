//! Uninstalling leaves the home as it was before, but for what the person wrote; installing twice changes nothing.

use std::fs;
use std::path::Path;

use anyhow::ensure;
use workload_guard_dbus::names::GUARD_UNIT;

use super::{CONTAINER, Scenario};
use crate::harness::guard::{Guard, HEAVY, PROTECTED, install_product, uninstall_product};
use crate::harness::home;
use crate::harness::load::load;
use crate::harness::outcome::{Verdict, step};
use crate::harness::proc;
use crate::harness::session::{HOME, Session};
use crate::harness::units;
use crate::harness::wait::{PATIENCE, until_true};

pub const SCENARIO: Scenario = Scenario {
    name: "install-uninstall-leaves-no-trace",
    tiers: CONTAINER,
    quick: true,
    full: false,
    exclusive: false,
    timeout_s: 120,
    run,
};

fn run(session: &Session) -> Verdict {
    let home = Path::new(HOME);
    // The person's own words, older than the product and younger than it.
    home::write(&home::guard_toml(), "[routing]\ncpu_threshold = 55\n")?;
    fs::create_dir_all(home.join(".local/bin"))?;
    home::write(&home.join(".local/bin/mine"), "#!/bin/sh\n")?;
    let before = home::listing(home)?;

    step(install_product()?);
    let installed = home::listing(home)?;
    let new = home::difference(&before, &installed);
    ensure!(
        new.iter().all(|line| line.starts_with('+')),
        "the install changed what was there: {new:#?}"
    );
    let guard = Guard::connect(session)?;
    guard.start()?;
    for program in ["workload-guard", "workload-guardd"] {
        ensure!(
            new.iter().any(|line| line.ends_with(&format!("/{program}"))),
            "{program} is not among what was installed: {new:#?}"
        );
    }
    ensure!(
        fs::read_to_string(home::guard_toml())?.contains("55"),
        "the person's settings were overwritten"
    );

    install_product()?;
    let again = home::difference(&installed, &home::listing(home)?);
    ensure!(again.is_empty(), "a second install changed: {again:#?}");
    guard.start()?;
    step("installed twice: the same files");

    // With a workload, which must not be lost.
    let load = load(&["spin", "--idle"]).slice("app.slice").start()?;
    guard.attach(&[load.pid], "heavy", "")?;
    // Enabled by hand, as its unit says.
    units::systemctl(&["enable", "--now", "workload-guard-metrics.timer"])?;
    step(uninstall_product(&[])?);
    ensure!(proc::alive(load.pid), "the uninstall ended the user's work");
    drop(load);
    let left = home::difference(&before, &home::listing(home)?);
    ensure!(left.is_empty(), "left behind: {left:#?}");
    until_true("no unit of ours is loaded", PATIENCE, || {
        for unit in [GUARD_UNIT, "workload-router.service"] {
            let state = units::property(unit, "LoadState")?;
            ensure!(state == "not-found", "{unit} is {state}");
        }
        for slice in [PROTECTED, HEAVY] {
            let file = units::property(slice, "FragmentPath")?;
            ensure!(file.is_empty(), "{slice} comes from {file}");
        }
        Ok(true)
    })?;
    units::no_scope_of_ours_left(session, PATIENCE)?;
    step("uninstalled: nothing is left but the person's own");

    install_product()?;
    step(uninstall_product(&["--purge"])?);
    let left = home::difference(&before, &home::listing(home)?);
    ensure!(
        left.iter()
            .all(|line| line.starts_with("- ") && line.contains(".config/linux-workload-guard")),
        "a purge takes the settings and nothing else: {left:#?}"
    );
    ensure!(
        !home::config_dir().exists() && !home::state_dir().exists(),
        "a purge left settings or routes"
    );
    Ok(())
}
