//! `explain` about processes of a real session: where they are, what they lack, and why some are never moved.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use zbus::block_on;

use super::{CONTAINER, Scenario};
use crate::harness::command;
use crate::harness::guard::{FAST, Guard};
use crate::harness::load::{busy, load};
use crate::harness::outcome::{Verdict, step};
use crate::harness::proc;
use crate::harness::root;
use crate::harness::session::{Session, this_program};
use crate::harness::units;
use crate::harness::wait::{PATIENCE, until_true};

pub const SCENARIO: Scenario = Scenario {
    name: "explain-tells-why",
    tiers: CONTAINER,
    quick: true,
    full: false,
    exclusive: false,
    timeout_s: 120,
    run,
};

/// The best of so many calls counts, and against a call that only reads a value, in alternation with it: other work
/// runs on this machine, too.
const CALLS: usize = 50;
/// It asks systemd and the kernel, and nothing that grows with the machine.
const TIMES: u32 = 25;

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, FAST)?;

    let work = load(&["spin", "--idle"]).start()?;
    tells(work.pid, "calm", &["No rule names its command", "at or above 5%"])?;
    let cookie = command::ok(&["workload-guard", "pause", "--for", "1h", "a", "meeting"])?;
    tells(work.pid, "held", &["Routing is paused for 1 h", "a meeting", "workload-guard resume"])?;
    ensure!(cookie.starts_with("hold "), "{cookie}");
    busy(work.pid)?;
    until_true("it would be routed", PATIENCE, || {
        Ok(told(work.pid)?["sentences"].to_string().contains("routed into heavy at the next sample"))
    })?;
    tells(work.pid, "held", &["Routing is paused", "Without that", "3 route it"])?;
    command::ok(&["workload-guard", "resume"])?;
    guard.routed_by_load(work.pid)?;
    let routed = tells(work.pid, "routed", &["routed into heavy", "comes back once", "workload-guard release"])?;
    let row = guard.workload_of(work.pid)?.context("no workload")?;
    ensure!(routed["workload"] == row.path.as_str() && routed["samples_needed"] == 2, "{routed}");
    // Its own scope ended when its only process left.
    tells(work.pid, "routed", &["has ended and is made anew"])?;
    step("paused, hot, routed: with hold, counters, rule of return and release");

    let known = load(&["spin", "--idle"]).named("make").start()?;
    until_true("the rule is told", PATIENCE, || {
        let told = told(known.pid)?;
        Ok(told["verdict"] == "routed" && told["sentences"].to_string().contains("rule make"))
    })?;

    let elsewhere = load(&["spin", "--idle"]).slice("app.slice").start()?;
    tells(elsewhere.pid, "not-watched", &["protected-workload.slice", "workload-guard watch"])?;
    tells(1, "out-of-reach", &["runs as user 0"])?;
    tells(guard.pid()?, "never-moved", &["it is the guard itself", "by hand either"])?;
    tells(proc::user_manager()?, "never-moved", &["systemd manager"])?;
    let bus: u32 = units::property("dbus.service", "MainPID")?.parse()?;
    tells(bus, "never-moved", &["message bus"])?;
    never_in_a_service()?;
    realtime()?;
    ensure!(command::run(&["workload-guard", "explain", "4194304"])?.status == 1, "no such process");
    step("why others are never moved");

    let mut took: Vec<(Duration, Duration)> = (0..CALLS)
        .map(|_| {
            let begin = Instant::now();
            block_on(guard.proxy().explain(work.pid))?;
            let explained = begin.elapsed();
            block_on(guard.proxy().routed_total())?;
            Ok((explained, begin.elapsed() - explained))
        })
        .collect::<Result<_>>()?;
    took.sort();
    let plain = took.iter().map(|(_, plain)| *plain).min().unwrap_or_default();
    step(format_args!(
        "{CALLS} calls: {:?} at best, {:?} in the middle; a plain one {plain:?} at best",
        took[0].0,
        took[CALLS / 2].0
    ));
    ensure!(took[0].0 < plain * TIMES, "{took:?}");
    Ok(())
}

fn told(pid: u32) -> Result<Value> {
    let text = command::ok(&["workload-guard", "explain", &pid.to_string(), "--json"])?;
    serde_json::from_str(&text).with_context(|| text.clone())
}

/// Asks, and looks for these words.
fn tells(pid: u32, verdict: &str, words: &[&str]) -> Result<Value> {
    let mut last = Value::Null;
    // A sample may be needed first.
    until_true(&format!("process {pid} is told to be {verdict}"), PATIENCE, || {
        last = told(pid)?;
        let text = last["sentences"].to_string();
        Ok(last["verdict"] == verdict && words.iter().all(|word| text.contains(word)))
    })
    .with_context(|| format!("{last:#}"))?;
    Ok(last)
}

fn never_in_a_service() -> Result<()> {
    let program = this_program()?;
    for (unit, properties, words) in [
        ("told-main.service", &[][..], "main or control process of a service"),
        ("told-notifier.service", &["--property=NotifyAccess=all"][..], "takes status messages"),
    ] {
        let mut argv = vec!["systemd-run", "--user", "--quiet", "--slice=protected-workload.slice"];
        let name = format!("--unit={unit}");
        argv.push(&name);
        argv.extend(properties);
        argv.extend([program.as_str(), "load", "nest", "1"]);
        command::ok(&argv)?;
        let main: u32 = units::property(unit, "MainPID")?.parse()?;
        let mut asked = main;
        if !properties.is_empty() {
            until_true("it has a child", PATIENCE, || {
                asked = proc::children(main)?.first().copied().unwrap_or(main);
                Ok(asked != main)
            })?;
        }
        tells(asked, "never-moved", &[words, "workload-guard attach"])?;
        units::systemctl(&["stop", unit])?;
    }
    Ok(())
}

fn realtime() -> Result<()> {
    let load = load(&["spin", "--idle"]).start()?;
    let pid = load.pid.to_string();
    let made = root::run(&["chrt", "--fifo", "--pid", "1", &pid])?;
    if made.status != 0 {
        step(format_args!("no real-time task can be made here: {}", made.said()));
        return Ok(());
    }
    tells(load.pid, "never-moved", &["real-time", "by hand either"])?;
    Ok(())
}
