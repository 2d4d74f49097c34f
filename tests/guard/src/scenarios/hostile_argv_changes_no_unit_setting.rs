//! systemd writes a description raw into a unit file: a command line must not become unit settings.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use anyhow::ensure;
use zbus::block_on;
use zvariant::Value;

use super::{CONTAINER, Scenario};
use crate::harness::guard::{FAST, Guard};
use crate::harness::load::load;
use crate::harness::outcome::{Verdict, step};
use crate::harness::session::Session;
use crate::harness::units;
use crate::harness::wait::{PATIENCE, until_true};

pub const SCENARIO: Scenario = Scenario {
    name: "hostile-argv-changes-no-unit-setting",
    tiers: CONTAINER,
    quick: true,
    full: false,
    exclusive: false,
    timeout_s: 120,
    run,
};

/// What an injected line or a swallowed one could change.
const SETTINGS: &[&str] = &[
    "Slice",
    "Description",
    "CPUWeight",
    "CPUQuotaPerSecUSec",
    "KillMode",
    "PartOf",
    "StopPropagatedFrom",
    "Delegate",
    "SendSIGHUP",
    "SendSIGKILL",
    "TimeoutStopUSec",
    "CollectMode",
    "OOMPolicy",
    "RuntimeMaxUSec",
    "Transient",
];

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, FAST)?;
    let huge = "A\n[Scope]\nKillMode=none\n".repeat(64 * 1024 / 25);
    let hostile: [(&str, &[u8]); 7] = [
        ("newline", b"x\n[Scope]\nKillMode=none\nCPUWeight=3\nSendSIGKILL=no"),
        ("trailing backslash", b"x\\"),
        ("backslash and newline", b"x\\\n\\\n"),
        ("control characters", b"\x01\x02\x1b[31m\r\n[Unit]\rPartOf=\x7f\x0b\x0c"),
        ("specifiers and quotes", b"%n %% %H $HOME ${X} \"' ;#"),
        ("no text at all", b"\xff\xfe\n[Scope]\nKillMode=none"),
        ("64 KiB", huge.as_bytes()),
    ];
    for (what, bytes) in hostile {
        let load = load(&["spin", "--idle"])
            .further(&[OsStr::from_bytes(bytes)])
            .start()?;
        let routed = guard.routed_by_load(load.pid)?;
        let unit = routed.destination.rsplit('/').next().unwrap_or_default();
        ensure!(
            !routed.command.chars().any(char::is_control),
            "{what}: control characters in the signal: {:?}",
            routed.command
        );
        let before = units::properties(unit, SETTINGS)?;
        ensure!(
            before["KillMode"] == "control-group" && before["Delegate"] == "yes",
            "{what}: {before:#?}"
        );
        ensure!(
            before["PartOf"].contains(&load.unit),
            "{what}: no tie to the source: {before:#?}"
        );
        units::systemctl(&["daemon-reload"])?;
        let after = units::properties(unit, SETTINGS)?;
        ensure!(
            before == after,
            "{what}: before the reload {before:#?}, after it {after:#?}"
        );
        let recovered = guard.recovered_when_idle(load.pid)?;
        ensure!(
            recovered.exact && recovered.destination == load.cgroup,
            "{what}: {recovered:?}"
        );
        step(format_args!("{what}: no setting changed"));
    }

    // The description of a source is copied to the scope that is made in its place.
    let load = load(&["spin", "--idle"]).start()?;
    let unit = "hostile.scope";
    let words = "x\n[Scope]\nKillMode=none\nCPUWeight=3";
    block_on(session.systemd()?.start_transient_unit(
        unit,
        "fail",
        &[
            ("Description", Value::from(words)),
            ("Slice", Value::from("protected-workload.slice")),
            ("PIDs", Value::from(vec![load.pid])),
        ],
        &[],
    ))?;
    until_true("the load is in the hostile scope", PATIENCE, || {
        Ok(load.now_in()?.ends_with(unit))
    })?;
    guard.routed_by_load(load.pid)?;
    let recovered = guard.recovered_when_idle(load.pid)?;
    ensure!(recovered.exact, "{recovered:?}");
    let before = units::properties(unit, SETTINGS)?;
    units::systemctl(&["daemon-reload"])?;
    let after = units::properties(unit, SETTINGS)?;
    ensure!(
        before == after && after["KillMode"] == "control-group",
        "a source with a hostile description: before {before:#?}, after {after:#?}"
    );
    step("a source with a hostile description: no setting changed");
    Ok(())
}
