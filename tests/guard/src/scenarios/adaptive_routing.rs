//! Adaptive routing: a command that is normally idle is routed when it gets hot; what was learned survives a
//! restart, and a file that cannot be used is kept aside.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use workload_guard_dbus::names::GUARD_UNIT;
use workload_guard_dbus::types::StatisticsRow;
use zbus::block_on;

use super::{CONTAINER, Scenario};
use crate::harness::command;
use crate::harness::guard::{FAST, Guard, Settings};
use crate::harness::home;
use crate::harness::journal;
use crate::harness::load::{busy, load};
use crate::harness::outcome::{Verdict, step};
use crate::harness::session::Session;
use crate::harness::units;
use crate::harness::wait::{PATIENCE, hold, until, until_true};

pub const SCENARIO: Scenario = Scenario {
    name: "adaptive-routing",
    tiers: CONTAINER,
    quick: true,
    full: false,
    exclusive: false,
    timeout_s: 180,
    run,
};

/// So much that sustained CPU routes nothing, and so little that a sixth of a CPU is far above idle: guests share
/// two CPUs.
const ADAPTIVE: Settings<'static> = &[
    ("WORKLOAD_GUARD_SUSTAINED_SAMPLES", "1000"),
    ("WORKLOAD_GUARD_ADAPTIVE", "true"),
    ("WORKLOAD_GUARD_ROUTE_THRESHOLD", "0.35"),
    ("WORKLOAD_GUARD_STATS_SAVE_INTERVAL_SEC", "1"),
];
/// Program and first word of the loads here.
const COMMAND: &str = "indexer:load";
const ENOUGH: u64 = 8;

fn run(session: &Session) -> Verdict {
    let settings = [FAST, ADAPTIVE].concat();
    let guard = Guard::install(session, &settings)?;
    let work = load(&["spin", "--idle"]).named("indexer").start()?;
    until_true("the command is known", PATIENCE, || {
        let row = known(&guard)?;
        ensure!(row.samples > ENOUGH, "{row:?}");
        Ok(true)
    })?;
    // A command that nothing is known of is not routed by this.
    let stranger = load(&["spin"]).named("stranger").start()?;
    hold("a new command is not routed at once", Duration::from_millis(500), || {
        let now = stranger.now_in()?;
        ensure!(now == stranger.cgroup, "it is in {now}");
        Ok(())
    })?;
    drop(stranger);

    let routed = guard.routed_by_load(work.pid)?;
    ensure!(routed.reason == "adaptive", "reason: {}", routed.reason);
    let row = guard.workload_of(work.pid)?.context("not listed")?;
    ensure!(row.reason == "adaptive", "{row:?}");
    let entry = until("the journal has the route", PATIENCE, || {
        let fields = [format!("WORKLOAD_PID={}", work.pid), "WORKLOAD_REASON=adaptive".to_owned()];
        let matches: Vec<&str> = fields.iter().map(String::as_str).collect();
        Ok(journal::of_guard(&matches)?.into_iter().next())
    })?;
    step(&entry["MESSAGE"]);
    let score: f64 = entry
        .get("WORKLOAD_SCORE")
        .context("no WORKLOAD_SCORE")?
        .parse()?;
    ensure!(score >= 0.35, "routed at a score of {score}");
    ensure!(
        entry["MESSAGE"].contains(&format!("of={COMMAND}")),
        "the command is not named"
    );
    guard.recovered_when_idle(work.pid)?;

    shown_by_the_command_line()?;
    survives_a_restart(&guard)?;
    a_corrupt_file_is_kept_aside(&guard)
}

fn statistics(guard: &Guard) -> Result<Vec<StatisticsRow>> {
    Ok(block_on(guard.proxy().statistics())?)
}

fn known(guard: &Guard) -> Result<StatisticsRow> {
    let rows = statistics(guard)?;
    let found = rows.iter().find(|row| row.command == COMMAND).cloned();
    found.with_context(|| format!("{COMMAND} is not known: {rows:#?}"))
}

fn shown_by_the_command_line() -> Verdict {
    let text = command::ok(&["workload-guard", "stats", "--json"])?;
    let stats: Value = serde_json::from_str(&text).with_context(|| text.clone())?;
    ensure!(
        stats["enabled"] == true && stats["threshold"] == 0.35,
        "{text}"
    );
    let ours = |row: &&Value| row["command"] == COMMAND;
    let row = stats["commands"]
        .as_array()
        .and_then(|rows| rows.iter().find(ours))
        .with_context(|| text.clone())?;
    ensure!(row["samples"].as_u64() > Some(ENOUGH), "{row}");
    for key in ["mean", "deviation", "score"] {
        ensure!(row[key].is_number(), "{key}: {row}");
    }
    let table = command::ok(&["workload-guard", "stats"])?;
    ensure!(
        table.contains("LAST SCORE") && table.contains(COMMAND),
        "{table}"
    );
    step(table.lines().next().unwrap_or_default());
    Ok(())
}

fn survives_a_restart(guard: &Guard) -> Verdict {
    let before = known(guard)?;
    units::systemctl(&["stop", GUARD_UNIT])?;
    let file = home::kept_state_dir().join("adaptive.json");
    let mode = fs::metadata(&file)
        .with_context(|| file.display().to_string())?
        .permissions()
        .mode();
    ensure!(mode & 0o7777 == 0o600, "{}: {mode:o}", file.display());
    guard.start()?;
    let after = known(guard)?;
    ensure!(
        after.samples >= before.samples,
        "before: {before:?}, after: {after:?}"
    );
    // A process that the new guard has hardly seen.
    let work = load(&["spin", "--idle"]).named("indexer").start()?;
    let mark = guard.signals.mark();
    busy(work.pid)?;
    let (_, routed) = guard.signals.routed_after(mark, work.pid, PATIENCE)?;
    ensure!(routed.reason == "adaptive", "reason: {}", routed.reason);
    step(format_args!(
        "{} samples before the restart, {} after; a new process of the command was routed",
        before.samples, after.samples
    ));
    Ok(())
}

fn a_corrupt_file_is_kept_aside(guard: &Guard) -> Verdict {
    units::systemctl(&["stop", GUARD_UNIT])?;
    let file = home::kept_state_dir().join("adaptive.json");
    home::write(&file, "{\"version\":1,\"commands\":[{")?;
    guard.start()?;
    let aside = home::kept_state_dir().join("adaptive.json.unreadable");
    ensure!(
        fs::read_to_string(&aside)?.ends_with("[{"),
        "{} is not what was there",
        aside.display()
    );
    until_true("the journal warns of it", PATIENCE, || {
        Ok(journal::of_guard(&["PRIORITY=4"])?.iter().any(|entry| {
            entry
                .get("MESSAGE")
                .is_some_and(|text| text.contains("adaptive.json is not used"))
        }))
    })?;
    step("a corrupt file was kept aside, and learning began anew");
    Ok(())
}
