//! An app attaches its own processes by descriptor: no PID can be mistaken for its successor.

use std::os::fd::OwnedFd;

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use workload_guard_dbus::GuardError;

use super::{CONTAINER, Scenario};
use crate::harness::guard::{Guard, HEAVY, QUIET};
use crate::harness::load::load;
use crate::harness::outcome::{Verdict, step};
use crate::harness::proc;
use crate::harness::session::Session;
use crate::harness::units;
use crate::harness::wait::PATIENCE;

pub const SCENARIO: Scenario = Scenario {
    name: "attach-by-pidfd",
    tiers: CONTAINER,
    quick: true,
    exclusive: false,
    timeout_s: 60,
    run,
};

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, QUIET)?;
    let tree = load(&["tree", "2"]).slice("app.slice").start()?;
    let path = guard.attach_fds(vec![pidfd(tree.pid)?.into()], "heavy", "by descriptor")?;
    let its = tree.now_in()?;
    ensure!(its.contains(HEAVY), "it is in {its}");
    for pid in &tree.members {
        let now = proc::cgroup_of(*pid)?;
        ensure!(now == its, "its descendant {pid} is in {now}");
    }
    let object = guard.workload(&path)?;
    let back = zbus::block_on(object.release())?;
    ensure!(
        back == tree.cgroup && tree.now_in()? == tree.cgroup,
        "released to {back}, it is in {}, it came from {}",
        tree.now_in()?,
        tree.cgroup
    );
    step("a tree by its root's descriptor: attached and released through its object");

    let short = load(&["spin", "--idle"]).start()?;
    let fd = pidfd(short.pid)?;
    let pid = short.pid;
    drop(short);
    ensure!(!proc::alive(pid), "{pid} lives");
    match guard.attach_fds(vec![fd.into()], "heavy", "") {
        Err(GuardError::NoSuchProcess(text)) => step(format_args!("an ended process: {text}")),
        other => bail!("an ended process: {other:?}"),
    }

    let file = OwnedFd::from(std::fs::File::open("/dev/null")?);
    match guard.attach_fds(vec![file.into()], "heavy", "") {
        Err(GuardError::ZBus(error)) => bail!("no pidfd at all: {error}"),
        Err(error) => step(format_args!("no pidfd at all: {}", error.text())),
        Ok(path) => bail!("no pidfd at all: attached as {path}"),
    }

    let first = load(&["spin", "--idle"]).start()?;
    let other = load(&["spin", "--idle"]).start()?;
    guard.attach_fds(
        vec![pidfd(first.pid)?.into(), pidfd(other.pid)?.into()],
        "heavy",
        "",
    )?;
    let its = first.now_in()?;
    ensure!(
        its.contains(HEAVY) && other.now_in()? == its,
        "two in one call are in {its} and in {}",
        other.now_in()?
    );
    step("two in one call: one workload");
    drop(first);
    drop(other);
    units::no_scope_of_ours_left(session, PATIENCE)
}

fn pidfd(pid: u32) -> Result<OwnedFd> {
    let pid = Pid::from_raw(i32::try_from(pid)?).context("PID 0")?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}
