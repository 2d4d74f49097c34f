//! Somebody else makes a unit around processes of ours, puts some in, or lets go of a scope: the guard notices.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use zbus::block_on;
use zvariant::Value;

use super::{CONTAINER, Scenario};
use crate::harness::command;
use crate::harness::guard::{FAST, Guard};
use crate::harness::journal;
use crate::harness::load::{idle, load};
use crate::harness::outcome::{Verdict, step};
use crate::harness::proc;
use crate::harness::session::Session;
use crate::harness::units;
use crate::harness::wait::{PATIENCE, until, until_true};

pub const SCENARIO: Scenario = Scenario {
    name: "processes-taken-out",
    tiers: CONTAINER,
    quick: true,
    full: false,
    exclusive: false,
    timeout_s: 120,
    run,
};

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, FAST)?;
    let its_pid = guard.pid()?;

    // All of a workload: it is over, and the journal says where to.
    let alone = load(&["spin", "--idle"]).start()?;
    guard.routed_by_load(alone.pid)?;
    take(session, "thief.scope", alone.pid)?;
    until_true("the workload is gone", PATIENCE, || {
        let rows = guard.workloads()?;
        ensure!(rows.is_empty(), "{rows:?}");
        Ok(true)
    })?;
    let entry = told(alone.pid, "moved ")?;
    ensure!(
        entry
            .get("WORKLOAD_DESTINATION")
            .is_some_and(|cgroup| cgroup.ends_with("/thief.scope")),
        "{entry:?}"
    );
    ensure!(proc::alive(alone.pid), "it was ended");
    drop(alone);
    step("all of a workload taken out: gone, and told");

    // The root alone: the rest goes on, and back home when it is calm.
    let tree = load(&["tree", "2"]).start()?;
    let routed = guard.routed_by_load(tree.pid)?;
    until_true("the whole tree is in", PATIENCE, || {
        Ok(tree
            .members
            .iter()
            .all(|pid| proc::cgroup_of(*pid).is_ok_and(|now| now == routed.destination)))
    })?;
    idle(tree.pid)?;
    take(session, "thief.scope", tree.pid)?;
    told_of(&guard, &tree.members)?;
    told(tree.pid, "taken out ")?;
    until_true("the rest is home", PATIENCE, || {
        for pid in &tree.members {
            let now = proc::cgroup_of(*pid)?;
            ensure!(now == tree.cgroup, "{pid} is in {now}");
        }
        Ok(true)
    })?;
    ensure!(
        proc::cgroup_of(tree.pid)?.ends_with("/thief.scope"),
        "the root was taken back"
    );
    drop(tree);
    step("a root taken out: the rest goes on without it");
    units::no_scope_of_ours_left(session, PATIENCE)?;

    // Into another class, by the guard itself: no end is told.
    let twice = load(&["spin", "--idle"]).start()?;
    guard.route(twice.pid, "heavy")?;
    guard.attach(&[twice.pid], "browser", "")?;
    told(twice.pid, "moved ")?;
    let ends = entries(twice.pid, "ended ")?;
    ensure!(ends.is_empty(), "an end was told: {ends:?}");
    let home = guard.release(twice.pid)?;
    ensure!(home == twice.cgroup, "it came back to {home}");
    drop(twice);
    step("into another class: told as moved");

    // A stranger put in goes where the others go; a scope that was let go of is one all the same.
    let host = load(&["spin", "--idle"]).start()?;
    let stranger = load(&["spin", "--idle"]).start()?;
    let routed = guard.routed_by_load(host.pid)?;
    let scope = routed.destination.rsplit('/').next().context("a scope")?;
    block_on(
        session
            .systemd()?
            .attach_processes_to_unit(scope, "", &[stranger.pid]),
    )?;
    command::ok(&[
        "busctl",
        "--user",
        "call",
        "org.freedesktop.systemd1",
        block_on(session.systemd()?.get_unit(scope))?.as_str(),
        "org.freedesktop.systemd1.Scope",
        "Abandon",
    ])?;
    guard.recovered_when_idle(host.pid)?;
    for pid in [host.pid, stranger.pid] {
        let now = proc::cgroup_of(pid)?;
        ensure!(now == host.cgroup, "{pid} is in {now}");
    }
    step("a stranger in an abandoned scope: home with the others");
    drop((host, stranger));
    units::no_scope_of_ours_left(session, PATIENCE)?;
    ensure!(guard.pid()? == its_pid, "the guard was started again");
    Ok(())
}

/// Makes a scope around a process, as any program of the user may.
fn take(session: &Session, unit: &str, pid: u32) -> Result<()> {
    block_on(session.systemd()?.start_transient_unit(
        unit,
        "fail",
        &[
            ("PIDs", Value::from(vec![pid])),
            ("CollectMode", Value::from("inactive-or-failed")),
        ],
        &[],
    ))?;
    until_true("the thief has it", PATIENCE, || {
        Ok(proc::cgroup_of(pid)?.ends_with(unit))
    })
}

/// Waits until a workload is listed whose root is one of these.
fn told_of(guard: &Guard, pids: &[u32]) -> Result<()> {
    until_true("the rest has another root", PATIENCE, || {
        let rows = guard.workloads()?;
        ensure!(rows.iter().any(|row| pids.contains(&row.pid)), "{rows:?}");
        Ok(true)
    })
}

type Entry = BTreeMap<String, String>;

fn entries(pid: u32, words: &str) -> Result<Vec<Entry>> {
    let found = journal::of_guard(&[&format!("WORKLOAD_PID={pid}")])?;
    Ok(found
        .into_iter()
        .filter(|entry| {
            entry
                .get("MESSAGE")
                .is_some_and(|message| message.starts_with(words))
        })
        .map(|entry| entry.into_iter().collect())
        .collect())
}

/// Waits for an entry of the journal about a process.
fn told(pid: u32, words: &str) -> Result<Entry> {
    until(&format!("the journal says {words:?}"), PATIENCE, || {
        Ok(entries(pid, words)?.pop())
    })
}
