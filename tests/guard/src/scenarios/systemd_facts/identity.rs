//! Whom systemd moves, and whom it takes for whom.

use anyhow::ensure;
use workload_guard_dbus::systemd1::error_name;

use super::Fact;
use super::lab::{Lab, fails_as};
use crate::harness::cgroup;
use crate::harness::load::load;
use crate::harness::outcome::Verdict;
use crate::harness::proc;
use crate::harness::root;
use crate::harness::units;
use crate::harness::wait::{PATIENCE, until_true};

pub const FACTS: &[Fact] = &[
    (
        "a zombie is accepted, is not moved, and its scope stays active and empty until it is stopped",
        zombie,
    ),
    ("PID 0 is the caller", pid_zero),
    (
        "root's process below the user manager is moved by it",
        foreign_below_the_manager,
    ),
    ("managers are refused", managers),
];

fn zombie(lab: &Lab) -> Verdict {
    let nest = load(&["zombie"]).start()?;
    lab.moved("undead.scope", &[nest.member()?], &[])?;
    ensure!(
        units::active_state("undead.scope")? == "active",
        "the scope is {}",
        units::active_state("undead.scope")?
    );
    let group = units::property("undead.scope", "ControlGroup")?;
    let populated = cgroup::keyed(&group, "cgroup.events", "populated")?;
    ensure!(populated == 0, "populated is {populated}");
    units::systemctl(&["stop", "undead.scope"])?;
    lab.unloaded("undead.scope")
}

fn pid_zero(lab: &Lab) -> Verdict {
    let before = proc::cgroup_of(std::process::id())?;
    lab.moved("caller.scope", &[0], &[])?;
    let after = proc::cgroup_of(std::process::id())?;
    ensure!(
        after != before && after.ends_with("caller.scope"),
        "we were in {before} and are in {after}"
    );
    Ok(())
}

fn foreign_below_the_manager(lab: &Lab) -> Verdict {
    let nest = load(&["spin", "--idle"]).start()?;
    let procs = cgroup::dir(&nest.cgroup).join("cgroup.procs");
    let foreign = root::spawn(&format!(
        "echo 0 > {} && exec sleep infinity",
        procs.display()
    ))?;
    until_true("root's process is below the manager", PATIENCE, || {
        Ok(proc::cgroup_of(foreign)? == nest.cgroup)
    })?;
    lab.moved("foreign.scope", &[foreign], &[])?;
    let now = proc::cgroup_of(foreign)?;
    root::ok(&["kill", "-KILL", &foreign.to_string()])?;
    ensure!(now.ends_with("foreign.scope"), "it is in {now}");
    Ok(())
}

fn managers(lab: &Lab) -> Verdict {
    let manager = proc::user_manager()?;
    for pid in [1, manager] {
        fails_as(
            lab.scope("managed.scope", &[pid], &[]),
            error_name::INVALID_ARGS,
        )?;
    }
    Ok(())
}
