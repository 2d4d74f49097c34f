//! Whether a process may be moved: its facts, and the verdict of the policy.

use guard_policy::action::Failure;
use guard_policy::eligibility::{Facts, Intent, NeverMoved, never_moved};
use guard_policy::id::ProcId;

use crate::facts;
use crate::units::UnitView;

use super::Mover;
use super::call::unreadable;
use super::hold::gone;

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
            // By what the manager says, not by the innermost name: a container has units of its own.
            view.name().clone_into(&mut facts.unit.name);
            facts::set_role(&mut facts, view.tracked(id.pid), view.hears_children());
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

impl Mover {
    /// What `/proc` says of a process.
    pub(super) fn known_of(&self, id: ProcId) -> Result<Facts, Failure> {
        facts::gather(&self.proc, id, &self.guard)
            .map_err(unreadable)?
            .ok_or_else(|| gone(id))
    }
}
