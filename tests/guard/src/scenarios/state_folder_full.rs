//! No space for the routes: routing goes on, and the state says what that means.

use std::fs;
use std::io::Write;

use anyhow::{Context, ensure};
use workload_guard_dbus::names::GUARD_UNIT;

use super::{CONTAINER, Scenario};
use crate::harness::guard::{FAST, Guard};
use crate::harness::home;
use crate::harness::load::load;
use crate::harness::outcome::{Verdict, step};
use crate::harness::root;
use crate::harness::session::Session;
use crate::harness::units;
use crate::harness::wait::{PATIENCE, until_true};

pub const SCENARIO: Scenario = Scenario {
    name: "state-folder-full",
    tiers: CONTAINER,
    quick: false,
    full: false,
    exclusive: false,
    timeout_s: 90,
    run,
};

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, FAST)?;
    units::systemctl(&["stop", GUARD_UNIT])?;
    let folder = home::state_dir();
    fs::create_dir_all(&folder)?;
    let folder = folder.to_string_lossy().into_owned();
    root::ok(&[
        "mount", "-t", "tmpfs", "-o", "size=8k,uid=1000,gid=1000,mode=700", "tmpfs", &folder,
    ])?;
    let filler = home::state_dir().join("filler");
    let mut file = fs::File::create(&filler)?;
    while file.write_all(&[0; 512]).is_ok() {}
    drop(file);
    guard.start()?;

    let names_the_folder = |reasons: &[String]| {
        reasons
            .iter()
            .any(|reason| reason.contains(&folder))
    };
    let load = load(&["spin", "--idle"]).start()?;
    guard.routed_by_load(load.pid)?;
    until_true("the state says that routes cannot be saved", PATIENCE, || {
        let (state, reasons) = (guard.state()?, guard.reasons()?);
        ensure!(
            state == "degraded" && names_the_folder(&reasons),
            "{state}: {reasons:?}"
        );
        Ok(true)
    })?;
    step(format_args!("routed, and: {:?}", guard.reasons()?));
    let recovered = guard.recovered_when_idle(load.pid)?;
    ensure!(recovered.exact, "{recovered:?}");

    fs::remove_file(&filler).context("the filler")?;
    guard.routed_by_load(load.pid)?;
    until_true("the state says so no longer", PATIENCE, || {
        let reasons = guard.reasons()?;
        ensure!(!names_the_folder(&reasons), "{reasons:?}");
        Ok(true)
    })?;
    step("space again: the routes are saved");
    Ok(())
}
