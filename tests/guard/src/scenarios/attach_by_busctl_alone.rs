//! busctl is all that a person needs to put work into a class and take it out again.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use workload_guard_dbus::GuardError;
use workload_guard_dbus::names::workload_path;

use super::{CONTAINER, Scenario};
use crate::harness::command::{self, Ended};
use crate::harness::guard::{Guard, HEAVY, PROTECTED, QUIET};
use crate::harness::load::{load, signal};
use crate::harness::outcome::{Verdict, step};
use crate::harness::proc;
use crate::harness::session::{Session, this_program};
use crate::harness::units;
use crate::harness::wait::{PATIENCE, hold, until_true};

pub const SCENARIO: Scenario = Scenario {
    name: "attach-by-busctl-alone",
    tiers: CONTAINER,
    quick: true,
    full: false,
    exclusive: false,
    timeout_s: 90,
    run,
};

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, QUIET)?;

    // A PID, by its number.
    let load = load(&["spin", "--idle"]).slice("app.slice").start()?;
    let pid = load.pid.to_string();
    let path = object(&call(&["Attach", "ausa{sv}", "1", &pid, "heavy", "1", "reason", "s", "by hand"])?)?;
    let now = load.now_in()?;
    let unit = now.rsplit('/').next().unwrap_or_default();
    ensure!(now.contains(HEAVY), "after Attach it is in {now}");
    ensure!(
        path == workload_path(unit).as_str(),
        "busctl was told {path}, it is in {unit}"
    );
    let row = guard
        .workload_of(load.pid)?
        .context("it is not listed")?;
    ensure!(row.reason == "placed", "reason: {}", row.reason);
    let why = command::ok(&[
        "busctl", "--user", "get-property", "org.workloadguard.Guard1", &path,
        "org.workloadguard.Workload1", "ReasonText",
    ])?;
    ensure!(why.contains("by hand"), "ReasonText: {why}");
    hold("what is placed stays, though idle", Duration::from_secs(2), || {
        ensure!(load.now_in()? == now, "it is in {}", load.now_in()?);
        Ok(())
    })?;
    let back = call(&["Release", "u", &pid])?;
    ensure!(
        back.stdout.contains(&load.cgroup) && load.now_in()? == load.cgroup,
        "Release said {}, it is in {}, it came from {}",
        back.said(),
        load.now_in()?,
        load.cgroup
    );
    step("a PID: attached, kept, released to where it came from");

    // Into the protected class, likewise.
    call(&["Attach", "ausa{sv}", "1", &pid, "protected", "0"])?;
    ensure!(load.now_in()?.contains(PROTECTED), "it is in {}", load.now_in()?);
    call(&["Release", "u", &pid])?;

    // PID 0 is the caller: busctl itself, which then ends.
    object(&call(&["Attach", "ausa{sv}", "1", "0", "heavy", "0"])?)?;
    units::no_scope_of_ours_left(session, PATIENCE)?;
    until_true("the ended caller is no longer listed", PATIENCE, || {
        Ok(guard.workloads()?.is_empty())
    })?;
    step("PID 0, a caller that ends: attached, nothing left behind");

    // PID 0 of a caller that stays.
    let mut client = Command::new(this_program()?)
        .args(["attach-self", "heavy"])
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    BufReader::new(client.stdout.take().context("no pipe")?).read_line(&mut line)?;
    let its = proc::cgroup_of(client.id())?;
    ensure!(
        its.contains(HEAVY),
        "the client was told {line:?} and is in {its}"
    );
    ensure!(
        !proc::cgroup_of(guard.pid()?)?.contains(HEAVY),
        "the guard moved itself"
    );
    signal(client.id(), nix::sys::signal::Signal::SIGKILL)?;
    client.wait()?;
    units::no_scope_of_ours_left(session, PATIENCE)?;
    step("PID 0, a caller that stays: attached");

    // What is refused says why; busctl shows the text, the name is for programs.
    for words in [
        &["Attach", "ausa{sv}", "1", &pid, "frob", "0"][..],
        &["Attach", "ausa{sv}", "0", "heavy", "0"],
        &["Attach", "ausa{sv}", "1", &pid, "heavy", "1", "frob", "s", "x"],
        &["Attach", "ausa{sv}", "1", "4000000", "heavy", "0"],
        &["Release", "u", &pid],
    ] {
        let ended = try_call(words)?;
        ensure!(ended.status != 0, "{words:?} was accepted: {}", ended.said());
        ensure!(
            ended.stderr.trim().len() > "Call failed:".len(),
            "{words:?} was refused without a word: {}",
            ended.said()
        );
        step(ended.said());
    }
    refused(guard.attach(&[load.pid], "frob", ""), |error| {
        matches!(error, GuardError::UnknownClass(_))
    })?;
    refused(guard.attach(&[], "heavy", ""), |error| {
        matches!(error, GuardError::NoSuchProcess(_))
    })?;
    refused(guard.attach(&[load.pid; 257], "heavy", ""), |error| {
        matches!(error, GuardError::LimitExceeded(_))
    })?;
    refused(guard.attach(&[load.pid], "heavy", &"x".repeat(201)), |error| {
        matches!(error, GuardError::LimitExceeded(_) | GuardError::InvalidSettings(_))
    })?;
    refused(guard.release(load.pid), |error| {
        matches!(error, GuardError::NoSuchWorkload(_))
    })?;
    ensure!(load.now_in()? == load.cgroup, "a refused call moved it");
    Ok(())
}

fn refused<T: std::fmt::Debug>(
    answer: Result<T, GuardError>,
    as_expected: impl Fn(&GuardError) -> bool,
) -> Verdict {
    match answer {
        Err(error) if as_expected(&error) => Ok(()),
        other => bail!("another answer than expected: {other:?}"),
    }
}

const DESTINATION: &[&str] = &[
    "org.workloadguard.Guard1",
    "/org/workloadguard/Guard1",
    "org.workloadguard.Guard1",
];

fn try_call(words: &[&str]) -> Result<Ended> {
    let mut argv = vec!["busctl", "--user", "call"];
    argv.extend(DESTINATION);
    argv.extend(words);
    command::run(&argv)
}

fn call(words: &[&str]) -> Result<Ended> {
    let ended = try_call(words)?;
    ensure!(
        ended.status == 0,
        "busctl call … {words:?} ended with {}: {}",
        ended.status,
        ended.said()
    );
    Ok(ended)
}

/// The object path in what busctl prints: `o "/org/…"`.
fn object(ended: &Ended) -> Result<String> {
    Ok(ended
        .stdout
        .trim()
        .strip_prefix("o \"")
        .and_then(|rest| rest.strip_suffix('"'))
        .with_context(|| format!("busctl printed {:?}", ended.stdout))?
        .to_owned())
}
