//! `status --format`: a line for a status bar. And a first word while the guard is being started.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use workload_guard_dbus::names::GUARD_UNIT;

use super::{CONTAINER, Scenario};
use crate::harness::command;
use crate::harness::guard::{Guard, QUIET};
use crate::harness::home;
use crate::harness::load::load;
use crate::harness::outcome::{Verdict, step};
use crate::harness::session::Session;
use crate::harness::units;

pub const SCENARIO: Scenario = Scenario {
    name: "status-line",
    tiers: CONTAINER,
    quick: true,
    full: false,
    exclusive: false,
    timeout_s: 120,
    run,
};

const FORMAT: &str = "{workloads.heavy} of {workloads} heavy, {state}";

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, QUIET)?;
    let state = guard.state()?;
    let line = command::ok(&["workload-guard", "status", "--format", FORMAT])?;
    ensure!(line == format!("0 of 0 heavy, {state}"), "{line}");
    let wrong = command::run(&["workload-guard", "status", "--format", "{stat}"])?;
    ensure!(wrong.status == 2 && wrong.stderr.contains("state, reasons"), "{wrong:?}");
    let no_class = command::run(&["workload-guard", "status", "--format", "{cpu.frob}"])?;
    ensure!(no_class.status == 1 && no_class.stderr.contains("heavy"), "{no_class:?}");

    let mut bar = Command::new("workload-guard")
        .args(["status", "--follow", "--format", FORMAT])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut lines = BufReader::new(bar.stdout.take().context("no pipe")?).lines();
    let mut shows = |wanted: String| -> Result<()> {
        let line = lines.next().context("it ended")??;
        ensure!(line == wanted, "{line:?}, not {wanted:?}");
        step(line);
        Ok(())
    };
    shows(format!("0 of 0 heavy, {state}"))?;
    let load = load(&["spin", "--idle"]).slice("app.slice").start()?;
    guard.attach(&[load.pid], "heavy", "")?;
    shows(format!("1 of 1 heavy, {state}"))?;
    guard.release(load.pid)?;
    shows(format!("0 of 0 heavy, {state}"))?;
    units::systemctl(&["stop", GUARD_UNIT])?;
    shows("0 of 0 heavy, stopped".to_owned())?;
    bar.kill()?;
    bar.wait()?;

    // It starts slowly: the first word comes long before it does.
    let drop_in = home::unit_dir().join(format!("{GUARD_UNIT}.d/slow.conf"));
    home::write(&drop_in, "[Service]\nExecStartPre=/bin/sleep 4\n")?;
    units::systemctl(&["daemon-reload"])?;
    let mut asking = Command::new("workload-guard")
        .args(["status", "--format", "{state}"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut words = BufReader::new(asking.stderr.take().context("no pipe")?).lines();
    let first = words.next().context("it said nothing")??;
    let meanwhile = units::active_state(GUARD_UNIT)?;
    step(format_args!("{first} ({meanwhile})"));
    ensure!(first.contains(GUARD_UNIT), "{first}");
    ensure!(meanwhile == "activating", "the first word came when the guard was {meanwhile}");
    let mut answer = BufReader::new(asking.stdout.take().context("no pipe")?).lines();
    let answer = answer.next().context("no answer")??;
    ensure!(answer == state && asking.wait()?.success(), "{answer}");
    Ok(())
}
