//! Every member of every object is called with anything: the guard lives, does not grow, and answers in words.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;
use zbus::block_on;

use super::{CONTAINER, Scenario};
use crate::fuzz::{Report, Task};
use crate::harness::dice::Dice;
use crate::harness::guard::{FAST, Guard, HEAVY, PROTECTED};
use crate::harness::journal;
use crate::harness::load::{Load, load, signal};
use crate::harness::outcome::{Verdict, step};
use crate::harness::proc;
use crate::harness::root;
use crate::harness::session::{Session, this_program};
use crate::harness::units;
use crate::harness::wait::{PATIENCE, until_true};

pub const SCENARIO: Scenario = Scenario {
    name: "bus-fuzz",
    tiers: CONTAINER,
    quick: true,
    full: false,
    exclusive: false,
    timeout_s: 300,
    run: |session| fuzz(session, 2_000),
};

/// Clients at the same time, each with a connection of its own.
const CLIENTS: u64 = 4;
/// What the daemon may grow by while it answers all of them. An answer to a large call is as large.
const MAY_GROW_KB: u64 = 8 * 1024;
/// For clients that are slowed down by others.
const LONG: Duration = Duration::from_secs(60);

/// What an injected line could change in a slice of ours.
const SETTINGS: &[&str] = &[
    "Slice",
    "Description",
    "CPUWeight",
    "CPUQuotaPerSecUSec",
    "KillMode",
    "PartOf",
    "DropInPaths",
    "FragmentPath",
    "TasksMax",
];

/// Calls that often in all, and looks at what is left.
pub(super) fn fuzz(session: &Session, calls: u64) -> Verdict {
    let mut dice = Dice::cast();
    let guard = Guard::install(session, FAST)?;
    let its_pid = guard.pid()?;
    let decoys = decoys()?;
    let settings = settings()?;
    let services = running_services()?;

    // The first round fills every cache and pool.
    let warm = round(&mut dice, calls / 4, &decoys)?;
    let (memory, files) = (proc::resident_kb(its_pid)?, descriptors(its_pid)?);
    let mut report = round(&mut dice, calls - calls / 4, &decoys)?;
    merge(&mut report, warm);
    let grown = proc::resident_kb(its_pid)?.saturating_sub(memory);
    step(format_args!(
        "{} calls of {} members; VmRSS {memory} kB and {grown} more, {files} descriptors and now {}",
        report.answered,
        report.members.len(),
        descriptors(its_pid)?
    ));
    for (answer, count) in &report.answers {
        step(format_args!("{count:7} {answer}"));
    }
    ensure!(
        report.strange.is_empty(),
        "answers that say nothing: {:#?}",
        report.strange
    );
    // Objects of workloads come and go between a look and a call, but most calls must reach a member.
    let astray = ["UnknownInterface", "UnknownObject"]
        .iter()
        .filter_map(|name| report.answers.get(&format!("org.freedesktop.DBus.Error.{name}")))
        .sum::<u64>();
    ensure!(astray < calls / 4, "{astray} of {calls} calls met nothing");
    ensure!(report.answered == calls, "{} answers", report.answered);
    ensure!(guard.pid()? == its_pid, "the guard was started again");
    ensure!(grown <= MAY_GROW_KB, "it has grown by {grown} kB");

    no_setting_was_injected(session, &settings)?;
    ensure!(
        running_services()? == services,
        "other services run than before: {services:?}"
    );
    drop(decoys);
    until_true("no workload is left", LONG, || {
        let rows = guard.workloads()?;
        ensure!(rows.is_empty(), "{rows:#?}");
        Ok(true)
    })?;
    units::no_scope_of_ours_left(session, LONG)?;
    until_true("its descriptors are as few as before", PATIENCE, || {
        let now = descriptors(its_pid)?;
        ensure!(now <= files, "{now}, before {files}");
        Ok(true)
    })?;
    // A pause without a lease outlives its caller, and one of the calls may have been that.
    let paused = block_on(guard.proxy().resume())?;
    step(format_args!("{paused} pauses were left"));
    let load = load(&["spin", "--idle"]).start()?;
    guard.routed_by_load(load.pid)?;
    let recovered = guard.recovered_when_idle(load.pid)?;
    ensure!(
        recovered.exact && recovered.destination == load.cgroup,
        "{recovered:?}"
    );
    for entry in journal::of_guard(&[])? {
        let message = entry.get("MESSAGE").cloned().unwrap_or_default();
        ensure!(!message.contains("panicked"), "{message}");
    }
    ensure!(guard.pid()? == its_pid, "the guard was started again");
    Ok(())
}

/// Processes that may be moved about.
fn decoys() -> Result<Vec<Load>> {
    let mut decoys = Vec::new();
    for words in [
        &["spin", "--idle"][..],
        &["spin", "--idle"],
        &["spin"],
        &["nest", "3"],
        &["tree", "2"],
        &["forker"],
    ] {
        decoys.push(load(words).start()?);
    }
    decoys.push(load(&["nest", "2"]).property("Delegate=yes").start()?);
    Ok(decoys)
}

/// One round of all clients.
fn round(dice: &mut Dice, calls: u64, decoys: &[Load]) -> Result<Report> {
    let mut gone = load(&["spin", "--idle"]).start()?;
    signal(gone.pid, Signal::SIGKILL)?;
    until_true("a process has ended", PATIENCE, || gone.ended())?;
    let threads = std::fs::read_dir(format!("/proc/{}/task", decoys[0].pid))?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|thread| *thread != decoys[0].pid);
    let mut others: Vec<u32> = threads.collect();
    others.extend([
        gone.pid,
        root::spawn("exec sleep 600")?,
        proc::user_manager()?,
        proc::parent(proc::user_manager()?)?,
        units::property("workload-guard.service", "MainPID")?.parse()?,
        units::property("dbus.service", "MainPID")?.parse()?,
    ]);
    let roots = decoys.iter().map(|load| load.pid);
    let members = decoys.iter().flat_map(|load| load.members.iter().copied());
    let decoys: Vec<u32> = roots.chain(members).collect();
    let clients = (0..CLIENTS)
        .map(|client| {
            let task = Task {
                seed: dice.number(),
                calls: calls / CLIENTS + u64::from(client < calls % CLIENTS),
                decoys: decoys.clone(),
                others: others.clone(),
            };
            // PID 0 means the caller: each client is one that may be moved about itself.
            Command::new("systemd-run")
                .args(["--user", "--scope", "--quiet", "--collect"])
                .arg(format!("--slice={PROTECTED}"))
                .arg("--")
                .args([this_program()?, "fuzz".to_owned(), serde_json::to_string(&task)?])
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .context("cannot start a client")
        })
        .collect::<Result<Vec<_>>>()?;
    let mut all = Report::default();
    for client in clients {
        let output = client.wait_with_output()?;
        ensure!(
            output.status.success(),
            "a client failed: {}, {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        merge(&mut all, serde_json::from_slice(&output.stdout)?);
    }
    Ok(all)
}

fn merge(all: &mut Report, one: Report) {
    all.answered += one.answered;
    all.strange.extend(one.strange);
    for (from, to) in [
        (one.members, &mut all.members),
        (one.answers, &mut all.answers),
    ] {
        for (name, count) in from {
            *to.entry(name).or_default() += count;
        }
    }
}

/// The settings of the slices.
fn settings() -> Result<Vec<BTreeMap<String, String>>> {
    [HEAVY, PROTECTED, "heavy.slice", "protected.slice", "session.slice"]
        .iter()
        .map(|unit| units::properties(unit, SETTINGS))
        .collect()
}

/// After a reload, which reads what was written.
fn no_setting_was_injected(
    session: &Session,
    before: &[BTreeMap<String, String>],
) -> Result<()> {
    units::systemctl(&["daemon-reload"])?;
    let after = settings()?;
    ensure!(before == after, "before {before:#?}, after {after:#?}");
    for (unit, _) in units::our_scopes(session)? {
        // One that is gone by now has no settings.
        let now = units::properties(&unit, &["KillMode", "SendSIGKILL", "LoadState"])?;
        ensure!(
            now["LoadState"] == "not-found"
                || now["KillMode"] == "control-group" && now["SendSIGKILL"] == "yes",
            "{unit}: {now:?}"
        );
    }
    Ok(())
}

/// Services of the user that run.
fn running_services() -> Result<BTreeSet<String>> {
    let list = units::systemctl(&[
        "list-units",
        "--type=service",
        "--state=running",
        "--plain",
        "--no-legend",
    ])?;
    Ok(list
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect())
}

fn descriptors(pid: u32) -> Result<usize> {
    let listed = root::ok(&["ls", &format!("/proc/{pid}/fd")])?;
    Ok(listed.lines().count())
}
