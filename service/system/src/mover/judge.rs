//! Whether a process may be moved: its facts, and the verdict of the policy.

use guard_policy::action::Failure;
use guard_policy::eligibility::{Facts, Intent, NeverMoved, never_moved};
use guard_policy::id::ProcId;

use crate::facts;
use crate::units::{self, UnitView};

use super::Mover;
use super::call::{self, unreadable};
use super::hold::gone;
use super::place::place;

/// Judges processes of one control group.
pub(super) struct Judge<'a> {
    mover: &'a Mover,
    intent: Intent,
    view: Option<&'a UnitView>,
}

impl<'a> Judge<'a> {
    /// For the processes of the unit `view`.
    pub fn new(mover: &'a Mover, intent: Intent, view: Option<&'a UnitView>) -> Judge<'a> {
        Judge {
            mover,
            intent,
            view,
        }
    }

    /// `Ok` when the process may be moved.
    pub fn permits(&self, id: ProcId) -> Result<(), Failure> {
        self.permits_known(id, self.mover.known_of(id)?)
    }

    /// As [`Judge::permits`], for a process whose facts were read already.
    pub fn permits_known(&self, id: ProcId, mut facts: Facts) -> Result<(), Failure> {
        if let Some(view) = self.view {
            set_role(&mut facts, id, view);
        }
        match never_moved(&facts, self.intent) {
            None => Ok(()),
            Some(NeverMoved::ForeignUser) => Err(Failure::OutOfReach(format!(
                "process {id} runs as user {}; the guard moves its own user's processes alone",
                facts.foreign_uid.unwrap_or_default()
            ))),
            Some(why) => Err(Failure::NeverMoved(why)),
        }
    }
}

fn set_role(facts: &mut Facts, id: ProcId, view: &UnitView) {
    // By what the manager says, not by the innermost name: a container has units of its own.
    view.name().clone_into(&mut facts.unit.name);
    facts::set_role(facts, view.tracked(id.pid), view.hears_children());
}

/// A process as a move would find it.
#[derive(Clone, Debug)]
pub struct Found {
    /// Who.
    pub id: ProcId,
    /// Its control group.
    pub cgroup: String,
    /// What decides whether it may be moved.
    pub facts: Facts,
}

impl Mover {
    /// Looks at the process that has this PID as a move of it would.
    pub async fn look_at(&self, pid: u32) -> Result<Found, Failure> {
        let id = self.proc.identify(pid).map_err(unreadable)?;
        let id =
            id.ok_or_else(|| Failure::NoSuchProcess(format!("process {pid} does not exist")))?;
        let cgroup = self.cgroup(id)?;
        let mut facts = self.known_of(id)?;
        if let Some(unit) = place(&self.root, &cgroup).and_then(|place| place.unit) {
            let view = call::call("GetAll", units::view(&self.conn, &unit))
                .await
                .map_err(|error| call::failure(&format!("reading {unit}"), &error))?;
            set_role(&mut facts, id, &view);
        }
        Ok(Found { id, cgroup, facts })
    }

    /// What `/proc` says of a process.
    pub(super) fn known_of(&self, id: ProcId) -> Result<Facts, Failure> {
        facts::gather(&self.proc, id, &self.guard)
            .map_err(unreadable)?
            .ok_or_else(|| gone(id))
    }
}
