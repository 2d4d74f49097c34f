//! Pause, exempt and pin from the command line: what they keep, what they leave, and that a restart ends none.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{CONTAINER, Scenario};
use crate::harness::command;
use crate::harness::guard::{FAST, Guard, HEAVY};
use crate::harness::load::{Load, busy, idle, load};
use crate::harness::outcome::{Verdict, step};
use crate::harness::proc;
use crate::harness::session::Session;
use crate::harness::wait::{PATIENCE, hold, until_true};

pub const SCENARIO: Scenario = Scenario {
    name: "holds-of-a-person",
    tiers: CONTAINER,
    quick: true,
    full: false,
    exclusive: false,
    timeout_s: 150,
    run,
};

/// Long against what detection and recovery take with these settings, about a second.
const WINDOW: Duration = Duration::from_secs(3);

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, FAST)?;
    let load = load(&["spin", "--idle"]).start()?;
    pause(&guard, &load)?;
    pin(&guard, &load)?;
    exempt(&guard, &load)?;
    heavy_work_is_refused(&guard, &load)?;
    exempting_the_user_manager_does_not_switch_the_guard_off(&guard)?;
    let pid = load.pid;
    cli(&["exempt", &pid.to_string()])?;
    drop(load);
    until_true("the hold ends with its process", PATIENCE, || Ok(guard.holds()?.is_empty()))?;
    step("a hold ends with the process that was named");
    Ok(())
}

/// Runs the command line; answers the cookie in its answer, if there is one.
fn cli(args: &[&str]) -> Result<String> {
    let mut argv = vec!["workload-guard"];
    argv.extend(args);
    let said = command::ok(&argv)?;
    let cookie = said.strip_prefix("hold ").and_then(|rest| rest.split(';').next());
    Ok(cookie.unwrap_or_default().to_owned())
}

fn stays(what: &str, load: &Load) -> Result<()> {
    let now = load.now_in()?;
    hold(what, WINDOW, || {
        ensure!(load.now_in()? == now, "it is in {}", load.now_in()?);
        Ok(())
    })
}

fn goes_to(load: &Load, heavy: bool) -> Result<()> {
    until_true("it is moved", PATIENCE, || Ok(load.now_in()?.contains(HEAVY) == heavy))
}

fn pause(guard: &Guard, load: &Load) -> Result<()> {
    cli(&["pause", "--for", "1h", "a", "meeting"])?;
    ensure!(guard.state()? == "paused", "state: {}", guard.state()?);
    let reasons = guard.reasons()?;
    ensure!(
        reasons.iter().any(|text| text.contains("paused for 1 h") && text.contains("a meeting")),
        "{reasons:?}"
    );
    busy(load.pid)?;
    stays("paused, nothing is routed", load)?;
    let before = guard.holds()?;
    guard.kill_and_wait_for_the_next()?;
    ensure!(guard.holds()? == before, "before {before:#?}, after {:#?}", guard.holds()?);
    stays("paused, nothing is routed by the next guard either", load)?;
    let words = command::ok(&["workload-guard", "status"])?;
    ensure!(words.contains("a meeting") && words.contains("in 59 min"), "{words}");
    // One's own word still counts.
    let pid = load.pid.to_string();
    cli(&["attach", &pid, "--class", "heavy"])?;
    ensure!(load.now_in()?.contains(HEAVY), "attached, it is in {}", load.now_in()?);
    cli(&["release", &pid])?;
    ensure!(load.now_in()? == load.cgroup, "released, it is in {}", load.now_in()?);
    cli(&["resume"])?;
    ensure!(guard.state()? != "paused", "still paused");
    goes_to(load, true)?;
    step("paused: nothing routed, over a kill -9; resumed: routed");

    cli(&["pause", "--for", "1s"])?;
    until_true("a second is over", PATIENCE, || Ok(guard.state()? != "paused"))?;
    Ok(())
}

fn pin(guard: &Guard, load: &Load) -> Result<()> {
    let cookie = cli(&["pin", &load.pid.to_string(), "until", "it", "is", "done"])?;
    idle(load.pid)?;
    stays("pinned, it does not come back", load)?;
    guard.kill_and_wait_for_the_next()?;
    stays("pinned, it does not come back with the next guard either", load)?;
    let text = command::ok(&["workload-guard", "holds", "--json"])?;
    let rows: Value = serde_json::from_str(&text).with_context(|| text.clone())?;
    ensure!(
        rows[0]["kind"] == "pin"
            && rows[0]["pid"] == load.pid
            && rows[0]["reason"] == "until it is done"
            && rows[0]["id"].as_u64() == cookie.parse().ok(),
        "{text}"
    );
    cli(&["unhold", &cookie])?;
    goes_to(load, false)?;
    step("pinned: not brought back, over a kill -9; unheld: back");
    Ok(())
}

fn exempt(guard: &Guard, load: &Load) -> Result<()> {
    busy(load.pid)?;
    goes_to(load, true)?;
    let cookie = cli(&["exempt", &load.pid.to_string()])?;
    // By way of a scope in between, where its own has ended.
    until_true("it is back", PATIENCE, || Ok(load.now_in()? == load.cgroup))?;
    stays("exempt, it is not routed", load)?;
    guard.kill_and_wait_for_the_next()?;
    stays("exempt, it is not routed by the next guard either", load)?;
    cli(&["unhold", &cookie])?;
    goes_to(load, true)?;
    step("exempt: back at once and not routed again, over a kill -9; unheld: routed");
    Ok(())
}

fn heavy_work_is_refused(guard: &Guard, load: &Load) -> Result<()> {
    let pid = load.pid.to_string();
    for wish in [&["pause"][..], &["exempt", &pid], &["pin", &pid]] {
        let mut argv = vec!["workload-guard", "run", "workload-guard"];
        argv.extend(wish);
        let ended = command::run(&argv)?;
        ensure!(
            ended.status == 77 && ended.stderr.contains("cannot hold the guard back"),
            "{wish:?}: {} {}",
            ended.status,
            ended.said()
        );
    }
    ensure!(guard.holds()?.is_empty(), "{:#?}", guard.holds()?);
    step("heavy work cannot hold the guard back");
    Ok(())
}

/// All that could be routed is below the user manager; nothing would have said why nothing is.
fn exempting_the_user_manager_does_not_switch_the_guard_off(guard: &Guard) -> Result<()> {
    let manager = proc::user_manager()?.to_string();
    let ended = command::run(&["workload-guard", "exempt", &manager])?;
    ensure!(
        ended.status == 77 && ended.stderr.contains("pause"),
        "{} {}",
        ended.status,
        ended.said()
    );
    ensure!(guard.holds()?.is_empty(), "{:#?}", guard.holds()?);
    step("the user manager cannot be exempted");
    Ok(())
}
