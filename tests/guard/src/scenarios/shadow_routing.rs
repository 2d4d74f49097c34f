//! The original's `shadow-routing.sh`: beside what is done, the journal tells what the shadow policy would do. And
//! the shadow alone moves nothing, and a mistake in its settings leaves routing on.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use workload_guard_dbus::names::GUARD_UNIT;

use super::{CONTAINER, Scenario};
use crate::harness::guard::{self, ACCELERATED, Guard, KEPT};
use crate::harness::home;
use crate::harness::journal::{self, Entry};
use crate::harness::load::{Load, burst, busy, idle, load};
use crate::harness::outcome::{Verdict, step};
use crate::harness::session::Session;
use crate::harness::stats::median;
use crate::harness::units;
use crate::harness::wait::{PATIENCE, hold, until, until_true};

pub const SCENARIO: Scenario = Scenario {
    name: "shadow-routing",
    tiers: CONTAINER,
    quick: false,
    full: false,
    exclusive: true,
    timeout_s: 240,
    run,
};

const TRIALS: usize = 2;
/// More than the samples that either policy takes to route.
const WINDOW: Duration = Duration::from_millis(2000);
/// A burst decays below the threshold before six samples are over, also when one of them is short; load that gets a
/// tenth of a CPU on a crowded machine does not.
const SHADOW: guard::Settings<'static> = &[
    ("WORKLOAD_GUARD_SHADOW", "true"),
    ("WORKLOAD_GUARD_SHADOW_ROUTE_THRESHOLD", "10"),
    ("WORKLOAD_GUARD_SHADOW_CLEAR_THRESHOLD", "5"),
    ("WORKLOAD_GUARD_SHADOW_SUSTAINED_SAMPLES", "6"),
    ("WORKLOAD_GUARD_SHADOW_RECOVERY_SAMPLES", "2"),
    ("WORKLOAD_GUARD_SHADOW_RECOVERY_DWELL_SEC", "1"),
];

fn run(session: &Session) -> Verdict {
    let settings = [ACCELERATED, KEPT, SHADOW].concat();
    let guard = Guard::install(session, &settings)?;
    let mut routes = Vec::new();
    let mut returns = Vec::new();
    for trial in 1..=TRIALS {
        let work = load(&["spin", "--idle"]).start()?;
        burst(work.pid)?;
        hold("the burst is not routed", WINDOW, || stays(&work))?;
        ensure!(
            candidates(work.pid)?.is_empty(),
            "the shadow would route a burst: {:#?}",
            candidates(work.pid)?
        );

        let mark = guard.signals.mark();
        let begin = Instant::now();
        busy(work.pid)?;
        let (at, routed) = guard.signals.routed_after(mark, work.pid, PATIENCE)?;
        let route = (at - begin).as_secs_f64();
        let candidate = candidate(work.pid, "route")?;
        ensure!(
            work.now_in()? == routed.destination,
            "it left {}",
            routed.destination
        );
        complete(&candidate)?;

        let mark = guard.signals.mark();
        let begin = Instant::now();
        idle(work.pid)?;
        let (_, recovered) = guard.signals.recovered_after(mark, work.pid, PATIENCE)?;
        ensure!(recovered.exact, "{recovered:?}");
        complete(&self::candidate(work.pid, "recover")?)?;
        let back = begin.elapsed().as_secs_f64();
        step(format_args!(
            "trial {trial}: burst routed by neither; real route after {route:.2} s; both recoveries {back:.2} s after idle"
        ));
        step(candidate.get("MESSAGE").map_or("", String::as_str));
        routes.push(route);
        returns.push(back);
    }
    step(format_args!(
        "medians of {TRIALS}: route {:.2} s, both recoveries {:.2} s",
        median(&routes).context("no trial")?,
        median(&returns).context("no trial")?
    ));
    ensure!(guard.routed_total()? == TRIALS as u64, "more was routed");

    alone_it_moves_nothing(&guard)?;
    a_mistake_turns_it_off_alone(&guard)
}

/// With a policy in force that never routes, the shadow would: and the work stays.
fn alone_it_moves_nothing(guard: &Guard) -> Verdict {
    let mut settings = [ACCELERATED, KEPT, SHADOW].concat();
    settings.push(("WORKLOAD_GUARD_SUSTAINED_SAMPLES", "1000"));
    guard::write_settings(&settings)?;
    units::systemctl(&["restart", GUARD_UNIT])?;
    guard.answers()?;
    let work = load(&["spin", "--idle"]).start()?;
    busy(work.pid)?;
    candidate(work.pid, "route")?;
    hold("it stays", WINDOW, || stays(&work))?;
    ensure!(guard.routed_total()? == 0, "something was routed");
    step("the shadow alone would have routed, and nothing was moved");
    Ok(())
}

/// Also on reload.
fn a_mistake_turns_it_off_alone(guard: &Guard) -> Verdict {
    guard::write_settings(&[ACCELERATED, KEPT, SHADOW].concat())?;
    units::systemctl(&["restart", GUARD_UNIT])?;
    guard.answers()?;
    home::write(
        &home::guard_toml(),
        "[routing]\nexclude_patterns = [\"x-y-z\"]\n[shadow]\newma_alpha = 1.5\n",
    )?;
    guard.reload()?;
    until_true("the state says that the shadow is off", PATIENCE, || {
        let reasons = guard.reasons()?;
        let told = |reason: &String| {
            reason.contains("the shadow policy is off") && reason.contains("shadow.ewma_alpha")
        };
        ensure!(reasons.iter().any(told), "{reasons:?}");
        Ok(true)
    })?;
    let work = load(&["spin", "--idle"]).start()?;
    guard.routed_by_load(work.pid)?;
    hold("the shadow says nothing", WINDOW, || {
        ensure!(candidates(work.pid)?.is_empty(), "it is on");
        Ok(())
    })?;
    let told = journal::of_guard(&["PRIORITY=3"])?.into_iter().any(|entry| {
        entry
            .get("MESSAGE")
            .is_some_and(|text| text.contains("the shadow policy is off"))
    });
    ensure!(told, "no error in the journal");
    step("a mistake in [shadow] turned the shadow off, and routing went on");
    Ok(())
}

fn stays(load: &Load) -> Result<()> {
    let now = load.now_in()?;
    ensure!(now == load.cgroup, "it is in {now}");
    Ok(())
}

/// What the shadow said of a process.
fn candidates(pid: u32) -> Result<Vec<Entry>> {
    let mut said = journal::of_guard(&[&format!("WORKLOAD_PID={pid}")])?;
    said.retain(|entry| entry.contains_key("WORKLOAD_SHADOW"));
    Ok(said)
}

/// Waits until it said this.
fn candidate(pid: u32, decision: &str) -> Result<Entry> {
    until(
        &format!("shadow decision={decision} of {pid}"),
        PATIENCE,
        || {
            Ok(candidates(pid)?
                .into_iter()
                .find(|entry| entry.get("WORKLOAD_SHADOW").is_some_and(|said| said == decision)))
        },
    )
}

/// Words and fields of an entry.
fn complete(entry: &Entry) -> Result<()> {
    let text = entry.get("MESSAGE").context("no MESSAGE")?;
    ensure!(text.starts_with("shadow decision="), "{text}");
    for field in [
        "WORKLOAD_CPU",
        "WORKLOAD_EWMA",
        "WORKLOAD_THRESHOLD",
        "WORKLOAD_SAMPLES",
        "WORKLOAD_SOURCE",
        "WORKLOAD_COMMAND",
    ] {
        ensure!(entry.contains_key(field), "no {field}: {entry:#?}");
    }
    Ok(())
}
