//! kill -9 of the guard at random moments under a load that never settles: nothing and nobody is lost.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::ensure;
use workload_guard_dbus::names::GUARD_UNIT;

use super::{CONTAINER, Scenario};
use crate::chaos::churn::Churn;
use crate::chaos::held::Held;
use crate::chaos::killer::{Killer, start_limits_off};
use crate::harness::dice::Dice;
use crate::harness::guard::{Guard, Settings};
use crate::harness::journal;
use crate::harness::outcome::{Verdict, step};
use crate::harness::session::Session;
use crate::harness::units;
use crate::harness::wait::until_true;

pub const SCENARIO: Scenario = Scenario {
    name: "killed-40-times",
    tiers: CONTAINER,
    quick: true,
    full: false,
    exclusive: false,
    timeout_s: 300,
    run: |session| strike_down(session, 40),
};

/// Short intervals, so that there is nearly always a move to be struck in.
pub(super) const SETTINGS: Settings<'static> = &[
    ("WORKLOAD_GUARD_SAMPLE_SEC", "0.1"),
    ("WORKLOAD_GUARD_CPU_THRESHOLD", "5"),
    ("WORKLOAD_GUARD_SUSTAINED_SAMPLES", "2"),
    ("WORKLOAD_GUARD_RECOVERY_CPU_THRESHOLD", "3"),
    ("WORKLOAD_GUARD_RECOVERY_SAMPLES", "2"),
    ("WORKLOAD_GUARD_RECOVERY_DWELL_SEC", "0.2"),
    ("WORKLOAD_GUARD_COOLDOWN_SEC", "0.3"),
];

/// Of a caller whose guard may die over the call.
const HASTE: Duration = Duration::from_secs(2);
/// For what must be true once nobody is killed any more.
const PATIENCE: Duration = Duration::from_secs(60);

/// Kills the guard that often and looks at what is left.
pub(super) fn strike_down(session: &Session, kills: u32) -> Verdict {
    let mut dice = Dice::cast();
    let guard = Guard::install(session, SETTINGS)?;
    start_limits_off()?;
    let held = Held::take(&guard)?;
    let mut churn = Churn::new(dice.fork());
    let mut killer = Killer::new(dice.fork())?;
    let killing = std::thread::spawn(move || -> anyhow::Result<u32> {
        while killer.kills < kills {
            killer.strike()?;
        }
        Ok(killer.kills)
    });
    let hasty = Guard::connect(&Session::with_patience(HASTE)?)?;
    while !killing.is_finished() {
        churn.turn()?;
        if dice.one_in(5) {
            churn.wish(&hasty);
        }
        churn.nobody_is_lost()?;
        held.keep()?;
    }
    let kills = killing
        .join()
        .map_err(|_| anyhow::anyhow!("the killer panicked"))??;
    guard.answers()?;
    step(format_args!(
        "{kills} kills, {} loads, {} of them live",
        churn.started,
        churn.len()
    ));

    let restarts: u32 = units::property(GUARD_UNIT, "NRestarts")?.parse()?;
    ensure!(
        restarts == kills,
        "{kills} kills and {restarts} restarts: the guard ended by itself"
    );
    held.are_there_and_end(&guard)?;
    nothing_is_lost(session, &guard, churn)
}

/// What must be true once nobody disturbs the guard any more: no process is lost, no route, no scope, and
/// no unit has failed.
pub(super) fn nothing_is_lost(session: &Session, guard: &Guard, mut churn: Churn) -> Verdict {
    churn.nobody_is_lost()?;
    until_true("everybody is listed or home", PATIENCE, || {
        churn.everybody_is_listed_or_home(guard).map(|()| true)
    })?;
    churn.calm_down()?;
    until_true("everybody is home", PATIENCE, || {
        churn.everybody_is_home().map(|()| true)
    })?;
    until_true("no workload is listed", PATIENCE, || {
        let rows = guard.workloads()?;
        ensure!(rows.is_empty(), "{rows:#?}");
        Ok(true)
    })?;
    churn.nobody_is_lost()?;
    let scopes = units::our_scopes(session)?;
    step(format_args!(
        "all {} home, {} of them in return scopes",
        churn.len(),
        scopes.len()
    ));
    drop(churn);
    units::no_scope_of_ours_left(session, PATIENCE)?;
    units::none_failed()?;
    tell_the_journal()
}

/// Warnings of the guard, each kind once, for who reads the run.
fn tell_the_journal() -> Verdict {
    let mut kinds: BTreeMap<String, u32> = BTreeMap::new();
    for entry in journal::of_guard(&["PRIORITY=3", "PRIORITY=4"])? {
        let message = entry.get("MESSAGE").cloned().unwrap_or_default();
        let kind: String = message
            .chars()
            .map(|c| if c.is_ascii_digit() { '#' } else { c })
            .collect();
        *kinds.entry(kind).or_default() += 1;
    }
    for (kind, count) in kinds {
        step(format_args!("{count} times: {kind}"));
    }
    Ok(())
}
