//! A watched unit, or the unit of a class, that is no slice is an error that names it.

use anyhow::{bail, ensure};
use workload_guard_dbus::GuardError;

use super::{CONTAINER, Scenario};
use crate::harness::guard::{Guard, QUIET};
use crate::harness::home;
use crate::harness::outcome::{Verdict, step};
use crate::harness::session::Session;

pub const SCENARIO: Scenario = Scenario {
    name: "unit-name-that-is-not-a-slice",
    tiers: CONTAINER,
    quick: true,
    full: false,
    exclusive: false,
    timeout_s: 60,
    run,
};

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, QUIET)?;
    let names = ["frob.service", "frob", "../frob.slice", "a--b.slice", "a b.slice"];
    for unit in names {
        for text in [
            format!("[watch]\nparent_units = [{unit:?}]\n"),
            format!("[classes.frob]\nslice = {unit:?}\n"),
        ] {
            home::write(&home::guard_toml(), &text)?;
            match guard.reload() {
                Err(GuardError::InvalidSettings(text)) => {
                    ensure!(
                        text.contains(unit) && text.contains("slice"),
                        "{unit:?} is not named: {text}"
                    );
                    step(format_args!("{unit:?}: {text}"));
                }
                other => bail!("{unit:?}: {other:?}"),
            }
        }
    }
    ensure!(guard.state()? != "paused", "the guard stopped its work");
    home::write(&home::guard_toml(), "[classes.frob]\nslice = \"frob.slice\"\n")?;
    guard.reload()?;
    let classes = zbus::block_on(guard.proxy().classes())?;
    ensure!(
        classes
            .iter()
            .any(|class| class.name == "frob" && class.slice == "frob.slice"),
        "a good name was not taken: {classes:?}"
    );
    Ok(())
}
