//! A process of another user stays where it is, and the answer says why; also where systemd would move it.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use nix::sys::signal::Signal;
use workload_guard_dbus::GuardError;

use super::{CONTAINER, Scenario};
use crate::harness::cgroup;
use crate::harness::guard::{FAST, Guard};
use crate::harness::load::load;
use crate::harness::outcome::{Verdict, step};
use crate::harness::proc;
use crate::harness::root;
use crate::harness::session::{Session, this_program};
use crate::harness::wait::{PATIENCE, hold, until_true};

pub const SCENARIO: Scenario = Scenario {
    name: "other-users-process-refused",
    tiers: CONTAINER,
    quick: true,
    full: false,
    exclusive: false,
    timeout_s: 60,
    run,
};

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, FAST)?;
    let nest = load(&["nest", "1"]).start()?;

    // As sudo in a terminal: root, below the user's manager. systemd itself would move it (measured).
    let program = this_program()?;
    let procs = cgroup::dir(&nest.cgroup).join("cgroup.procs");
    let procs = procs.display();
    let sudo = root::spawn(&format!("echo 0 > {procs} && exec {program} load spin"))?;
    let in_protected = || -> Result<()> {
        let now = proc::cgroup_of(sudo)?;
        ensure!(now == nest.cgroup, "{sudo} is in {now}");
        Ok(())
    };
    until_true("root's process is in the scope", PATIENCE, || {
        in_protected()?;
        Ok(proc::comm(sudo)?.starts_with("guard-scenario"))
    })?;
    hold("root's busy process is not routed", Duration::from_secs(3), || {
        in_protected()
    })?;
    step("busy as root in the watched slice: not routed");
    out_of_reach("root's process", guard.attach(&[sudo], "heavy", ""))?;
    out_of_reach("root's process, by Route", guard.route(sudo, "heavy"))?;
    // A list that holds a foreign process moves nothing.
    out_of_reach(
        "a list with root's process",
        guard.attach(&[nest.member()?, sudo], "heavy", ""),
    )?;
    ensure!(
        proc::cgroup_of(nest.member()?)? == nest.cgroup,
        "part of a refused list was moved"
    );

    match guard.attach(&[1], "heavy", "") {
        Err(GuardError::NeverMoved(text) | GuardError::OutOfReach(text)) if !text.is_empty() => {
            step(format_args!("PID 1: {text}"));
        }
        other => bail!("PID 1: {other:?}"),
    }

    let foreign = root::spawn(&format!(
        "exec setpriv --reuid=1001 --regid=1001 --clear-groups {program} load spin --idle"
    ))?;
    out_of_reach("another user's process", guard.attach(&[foreign], "heavy", ""))?;

    for pid in [sudo, foreign] {
        root::ok(&["kill", "-s", Signal::SIGKILL.as_str(), &pid.to_string()])?;
    }
    match guard.attach(&[4_000_000], "heavy", "") {
        Err(GuardError::NoSuchProcess(text)) => step(format_args!("no such PID: {text}")),
        other => bail!("a PID that is gone: {other:?}"),
    }
    ensure!(guard.workloads()?.is_empty(), "something was moved");
    Ok(())
}

fn out_of_reach<T: std::fmt::Debug>(what: &str, answer: Result<T, GuardError>) -> Verdict {
    match answer {
        Err(GuardError::OutOfReach(text)) if !text.is_empty() => {
            step(format_args!("{what}: {text}"));
            Ok(())
        }
        other => bail!("{what}: {other:?}"),
    }
}
