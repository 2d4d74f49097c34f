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
    full: false,
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

    let nest = load(&["nest", "2"]).start()?;
    let (one, two) = (nest.members[0], nest.members[1]);
    guard.attach_fds(vec![pidfd(one)?.into(), pidfd(two)?.into()], "heavy", "")?;
    let its = proc::cgroup_of(one)?;
    ensure!(
        its.contains(HEAVY) && proc::cgroup_of(two)? == its,
        "two in one call are in {its} and in {}",
        proc::cgroup_of(two)?
    );
    // Each workload goes back to one place.
    let elsewhere = load(&["spin", "--idle"]).start()?;
    let far = vec![pidfd(nest.pid)?.into(), pidfd(elsewhere.pid)?.into()];
    match guard.attach_fds(far, "heavy", "") {
        Err(error @ GuardError::OutOfReach(_)) => {
            step(format_args!("two from different units: {}", error.text()));
        }
        other => bail!("two from different units: {other:?}"),
    }
    ensure!(
        nest.now_in()? == nest.cgroup && elsewhere.now_in()? == elsewhere.cgroup,
        "a refused call moved something"
    );
    step("two of one unit in one call: one workload");
    drop(nest);
    units::no_scope_of_ours_left(session, PATIENCE)
}

fn pidfd(pid: u32) -> Result<OwnedFd> {
    let pid = Pid::from_raw(i32::try_from(pid)?).context("PID 0")?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}
