//! What the guard set is put back: when it stops, when the settings take the controller away, and after a kill -9.

use anyhow::{Result, ensure};
use workload_guard_dbus::names::GUARD_UNIT;

use super::{BOTH, Scenario};
use crate::harness::guard::{Guard, HEAVY, Settings, write_settings};
use crate::harness::home;
use crate::harness::outcome::{Verdict, step};
use crate::harness::quota::Quota;
use crate::harness::session::Session;
use crate::harness::units;
use crate::harness::wait::{PATIENCE, until_true};

pub const SCENARIO: Scenario = Scenario {
    name: "quota-put-back",
    tiers: BOTH,
    quick: false,
    full: false,
    exclusive: false,
    timeout_s: 240,
    run,
};

/// No interval passes, so that nothing but what is looked at here moves the quota.
const DYNAMIC: Settings<'static> = &[
    ("WORKLOAD_GUARD_DYNAMIC_QUOTA", "true"),
    ("WORKLOAD_GUARD_QUOTA_INTERVAL_SEC", "3600"),
];
const STATIC: Settings<'static> = &[("WORKLOAD_GUARD_QUOTA_INTERVAL_SEC", "3600")];

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, DYNAMIC)?;
    let quota = Quota::connect(session)?;

    set_by_an_earlier_guard("controller", 150)?;
    guard.start()?;
    // Without the cpu controller it lacks telemetry.
    let control = quota.control()?;
    ensure!(quota.now()? == 150.0 && (control == "auto" || control == "frozen"), "{} {control}", quota.now()?);
    guard.kill_and_wait_for_the_next()?;
    ensure!(quota.now()? == 150.0, "after a kill -9 it is {}", quota.now()?);
    stop()?;
    is(400)?;
    step("controller, kill -9, stop: put back");

    set_by_an_earlier_guard("caller", 250)?;
    guard.start()?;
    ensure!(quota.control()? == "set", "{}", quota.control()?);
    guard.kill_and_wait_for_the_next()?;
    ensure!(quota.control()? == "set" && quota.now()? == 250.0, "{}", quota.control()?);
    ensure!(quota.reset()? == 400.0, "{}", quota.now()?);
    is(400)?;
    step("caller, kill -9, ResetQuota: put back");

    stop()?;
    set_by_an_earlier_guard("controller", 150)?;
    guard.start()?;
    ensure!(quota.now()? == 150.0, "{}", quota.now()?);
    // The environment is read at the start of the service; the file at each reload.
    home::write(&home::guard_toml(), "[quota]\nmax = 500\n")?;
    guard.reload()?;
    ensure!(quota.now()? == 150.0, "a reload without cause put it back: {}", quota.now()?);
    write_settings(STATIC)?;
    units::systemctl(&["restart", GUARD_UNIT])?;
    guard.answers()?;
    is(400)?;
    ensure!(quota.control()? == "static", "{}", quota.control()?);
    step("switched off: put back");

    // Somebody else's value since then is theirs.
    stop()?;
    set_by_an_earlier_guard("controller", 150)?;
    units::systemctl(&["set-property", "--runtime", HEAVY, "CPUQuota=333%"])?;
    guard.start()?;
    ensure!(quota.now()? == 333.0, "{}", quota.now()?);
    stop()?;
    is(333)?;
    step("changed by somebody else meanwhile: left alone");
    ensure!(!home::state_dir().join("quota.json").exists(), "the marker is left");
    Ok(())
}

/// As a guard that was killed leaves it: the runtime property, and the marker beside the routes.
fn set_by_an_earlier_guard(by: &str, percent: u64) -> Result<()> {
    stop()?;
    units::systemctl(&["set-property", "--runtime", HEAVY, &format!("CPUQuota={percent}%")])?;
    let marker = serde_json::json!({
        "slice": HEAVY,
        "base": 4_000_000,
        "set": [percent * 10_000],
        "by": by,
    });
    home::write(&home::state_dir().join("quota.json"), &marker.to_string())
}

fn stop() -> Result<()> {
    units::systemctl(&["stop", GUARD_UNIT])?;
    units::becomes(GUARD_UNIT, "inactive", PATIENCE)?;
    // Or systemd refuses: this scenario starts it more often than a service that is well.
    units::systemctl(&["reset-failed", GUARD_UNIT]).map(drop)
}

fn is(percent: u64) -> Result<()> {
    until_true(&format!("systemd says {percent} %"), PATIENCE, || {
        let now = units::property(HEAVY, "CPUQuotaPerSecUSec")?;
        let wanted = [format!("{}s", percent as f64 / 100.0), format!("{}.{:02}0000s", percent / 100, percent % 100)];
        ensure!(wanted.contains(&now), "it is {now}");
        Ok(true)
    })
}
