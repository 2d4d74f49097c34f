//! `systemd-analyze verify` has nothing to say about any installed unit.

use std::fs;

use anyhow::{Context, ensure};

use super::{CONTAINER, Scenario};
use crate::harness::command;
use crate::harness::guard::{Guard, QUIET};
use crate::harness::outcome::{Verdict, step};
use crate::harness::session::{Session, payload};
use crate::harness::units;

pub const SCENARIO: Scenario = Scenario {
    name: "units-verify-clean",
    tiers: CONTAINER,
    quick: true,
    full: false,
    exclusive: false,
    timeout_s: 60,
    run,
};

fn run(session: &Session) -> Verdict {
    let _guard = Guard::install(session, QUIET)?;
    let mut shipped = Vec::new();
    for entry in fs::read_dir(payload("units").join("user"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if [".service", ".slice", ".timer", ".socket", ".path"]
            .iter()
            .any(|kind| name.ends_with(kind))
        {
            shipped.push(name);
        }
    }
    shipped.sort();
    ensure!(shipped.len() >= 7, "shipped units: {shipped:?}");
    for unit in &shipped {
        let file = units::property(unit, "FragmentPath")?;
        ensure!(!file.is_empty(), "{unit} is not installed");
        let ended = command::run(&["systemd-analyze", "--user", "verify", "--man=no", &file])
            .context("systemd-analyze")?;
        ensure!(
            ended.status == 0 && ended.said().is_empty(),
            "{file}: status {}, {}",
            ended.status,
            ended.said()
        );
        let ours = units::property(unit, "LoadError")?;
        ensure!(ours.trim_matches(['"', ' ']).is_empty(), "{unit}: {ours}");
        step(format_args!("{file}: clean"));
    }
    Ok(())
}
