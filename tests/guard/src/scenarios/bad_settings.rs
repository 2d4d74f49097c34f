//! A mistake in the settings is told with file, line, key and the nearest key; what was in force stays in force.

use anyhow::{Context, Result, bail, ensure};
use workload_guard_dbus::GuardError;
use workload_guard_dbus::names::GUARD_UNIT;

use super::{CONTAINER, Scenario};
use crate::harness::command;
use crate::harness::guard::{Guard, QUIET};
use crate::harness::home;
use crate::harness::outcome::{Verdict, step};
use crate::harness::session::Session;
use crate::harness::units;
use crate::harness::wait::{PATIENCE, until_true};

pub const SCENARIO: Scenario = Scenario {
    name: "bad-settings",
    tiers: CONTAINER,
    quick: true,
    full: false,
    exclusive: false,
    timeout_s: 90,
    run,
};

/// A settings file, the line of its mistake, and what the answer has to say.
const MISTAKES: &[(&str, u32, &[&str])] = &[
    // An unknown key.
    (
        "# a comment\n[routing]\ncpu_treshold = 50\n",
        3,
        &["routing.cpu_treshold", "routing.cpu_threshold"],
    ),
    // An unknown section.
    ("[rooting]\ncpu_threshold = 50\n", 1, &["rooting", "routing"]),
    // A key in the wrong section.
    (
        "[recovery]\nsustained_samples = 5\n",
        2,
        &["recovery.sustained_samples", "routing.sustained_samples"],
    ),
    // Wrong types.
    ("[routing]\ncpu_threshold = \"fifty\"\n", 2, &["routing.cpu_threshold"]),
    ("[watch]\nparent_units = 5\n", 2, &["watch.parent_units"]),
    // Impossible values.
    ("[routing]\n\ncpu_threshold = -5\n", 3, &["routing.cpu_threshold"]),
    ("[sampling]\ninterval_sec = 0\n", 2, &["sampling.interval_sec"]),
    ("[recovery]\nsamples = 0\n", 2, &["recovery.samples"]),
    // No TOML at all.
    ("[routing]\ncpu_threshold = \n", 2, &[]),
];

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, QUIET)?;
    let file = home::guard_toml();
    let name = file.to_string_lossy().into_owned();

    home::write(&file, "[routing]\ncpu_threshold = 42\n")?;
    guard.reload()?;
    ensure!(threshold(&guard)?.0 == "42", "42 was not taken: {:?}", threshold(&guard)?);
    let good = threshold(&guard)?;
    ensure!(
        good.1.contains(&name) && good.1.ends_with(":2"),
        "its origin is {:?}, not line 2 of {name}",
        good.1
    );

    for (text, line, words) in MISTAKES {
        home::write(&file, text)?;
        let said = match guard.reload() {
            Err(GuardError::InvalidSettings(said)) => said,
            other => bail!("{text:?}: {other:?}"),
        };
        ensure!(
            said.contains(&format!("{name}:{line}")),
            "{text:?}: {name}:{line} is not named: {said}"
        );
        for word in *words {
            ensure!(said.contains(word), "{text:?}: {word} is not named: {said}");
        }
        ensure!(
            threshold(&guard)? == good,
            "{text:?}: the old value is gone: {:?}",
            threshold(&guard)?
        );
        step(said);
    }

    // A reload through systemd fails likewise, and the unit stays.
    let reload = command::run(&["systemctl", "--user", "reload", GUARD_UNIT])?;
    ensure!(reload.status != 0, "systemctl reload succeeded");
    ensure!(
        units::active_state(GUARD_UNIT)? == "active",
        "the unit went away with the reload"
    );

    // At start there is nothing old to keep: the guard works on its built-in settings and says so.
    home::write(&file, "[routing]\ncpu_treshold = 50\n")?;
    units::systemctl(&["restart", GUARD_UNIT])?;
    guard.answers()?;
    until_true("the guard says that it runs on defaults", PATIENCE, || {
        let (state, reasons) = (guard.state()?, guard.reasons()?);
        ensure!(
            state == "degraded"
                && reasons
                    .iter()
                    .any(|reason| reason.contains(&format!("{name}:2"))),
            "{state}: {reasons:?}"
        );
        Ok(true)
    })?;
    ensure!(
        threshold(&guard)?.0 == "70",
        "not the default: {:?}",
        threshold(&guard)?
    );
    step("at start: defaults, and the state says why");

    // Mended, it is well again without a restart.
    home::write(&file, "[routing]\ncpu_threshold = 43\n")?;
    units::systemctl(&["reload", GUARD_UNIT])?;
    ensure!(threshold(&guard)?.0 == "43", "{:?}", threshold(&guard)?);
    let reasons = guard.reasons()?;
    ensure!(
        !reasons.iter().any(|reason| reason.contains(&name)),
        "still told: {reasons:?}"
    );
    Ok(())
}

/// Effective value and origin of the CPU threshold.
fn threshold(guard: &Guard) -> Result<(String, String)> {
    zbus::block_on(guard.proxy().settings())?
        .into_iter()
        .find(|row| row.key == "routing.cpu_threshold")
        .map(|row| (row.value, row.origin))
        .context("Settings lacks routing.cpu_threshold")
}
