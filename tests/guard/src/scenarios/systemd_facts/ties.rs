//! Relations of a scope to the one that its processes came from.

use anyhow::{Result, ensure};
use workload_guard_dbus::systemd1::error_name;

use super::Fact;
use super::lab::{Lab, fails_as, lives_in, units};
use crate::harness::load::{Load, load};
use crate::harness::outcome::Verdict;
use crate::harness::units as unit;
use crate::harness::wait::{PATIENCE, until_true};
use zbus::block_on;

pub const FACTS: &[Fact] = &[
    (
        "PartOf: an emptied source leaves the work alive, its name stays taken, stopping it stops the work",
        part_of,
    ),
    (
        "PartOf: the way back takes two steps through a scope without a tie",
        two_steps,
    ),
    (
        "StopPropagatedFrom: an emptied source kills the work",
        stop_propagated_from,
    ),
    ("BindsTo: an emptied source kills the work", binds_to),
    (
        "ties cannot be set on a scope that runs",
        ties_are_for_creation,
    ),
];

fn part_of(lab: &Lab) -> Verdict {
    let mut work = load(&["spin", "--idle"]).start()?;
    let source = work.unit.clone();
    lab.moved("tied.scope", &[work.pid], &[("PartOf", units(&source))])?;
    unit::becomes(&source, "inactive", PATIENCE)?;
    lives_in(&work, "tied.scope")?;
    fails_as(
        lab.scope(&source, &[work.pid], &[]),
        error_name::UNIT_EXISTS,
    )?;
    lives_in(&work, "tied.scope")?;
    unit::systemctl(&["stop", &source])?;
    until_true("the work is stopped", PATIENCE, || work.ended())
}

fn two_steps(lab: &Lab) -> Verdict {
    let work = load(&["spin", "--idle"]).start()?;
    let source = work.unit.clone();
    lab.moved(
        "there.scope",
        &[work.pid],
        &[("PartOf", units(&source)), ("Slice", "protected-workload.slice".into())],
    )?;
    unit::becomes(&source, "inactive", PATIENCE)?;
    lab.moved("between.scope", &[work.pid], &[])?;
    lab.unloaded("there.scope")?;
    lab.unloaded(&source)?;
    lab.moved(
        &source,
        &[work.pid],
        &[("Slice", "protected-workload.slice".into())],
    )?;
    ensure!(
        work.now_in()? == work.cgroup,
        "it is in {}, it came from {}",
        work.now_in()?,
        work.cgroup
    );
    lives_in(&work, &source)
}

fn stop_propagated_from(lab: &Lab) -> Verdict {
    killed_when_its_source_empties(lab, "StopPropagatedFrom", "propagated.scope")
}

fn binds_to(lab: &Lab) -> Verdict {
    killed_when_its_source_empties(lab, "BindsTo", "bound.scope")
}

fn killed_when_its_source_empties(lab: &Lab, tie: &str, name: &str) -> Verdict {
    let mut work: Load = load(&["spin", "--idle"]).start()?;
    lab.moved(name, &[work.pid], &[(tie, units(&work.unit))])?;
    until_true("the work is killed", PATIENCE, || work.ended())
}

fn ties_are_for_creation(lab: &Lab) -> Result<()> {
    let work = load(&["spin", "--idle"]).start()?;
    for tie in ["PartOf", "StopPropagatedFrom"] {
        fails_as(
            block_on(lab.systemd.set_unit_properties(
                &work.unit,
                true,
                &[(tie, units("app.slice"))],
            )),
            error_name::PROPERTY_READ_ONLY,
        )?;
    }
    Ok(())
}
