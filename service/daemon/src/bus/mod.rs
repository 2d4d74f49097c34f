//! The exported objects. They read the published state and put wishes into the loop's queue; they
//! decide nothing.

mod caller;
mod command;
mod guard;
mod history;
mod holds;
mod options;
mod profile;
mod quota;
mod workload;

pub use caller::Caller;
pub use command::{Answer, Command, Commands, Target};
pub use guard::GuardObject;
pub use history::HistoryObject;
pub use holds::{HoldCommand, HoldTarget};
pub use options::Options;
pub use profile::ProfileObject;
pub use quota::QuotaObject;
pub use workload::WorkloadObject;

use guard_policy::action::Failure;
use workload_guard_dbus::GuardError;

/// A failure under its name on the bus.
pub fn error(failure: Failure) -> GuardError {
    let text = failure.to_string();
    match failure {
        Failure::NoSuchProcess(_) => GuardError::NoSuchProcess(text),
        Failure::NeverMoved(_) => GuardError::NeverMoved(text),
        Failure::OutOfReach(_) => GuardError::OutOfReach(text),
        Failure::UnknownClass(_) => GuardError::UnknownClass(text),
        Failure::NoSuchWorkload(_) => GuardError::NoSuchWorkload(text),
        Failure::NoSuchHold(_) => GuardError::NoSuchHold(text),
        Failure::LimitExceeded(_) => GuardError::LimitExceeded(text),
        Failure::Timeout(_) => GuardError::Timeout(text),
        Failure::SystemdRefused(_) => GuardError::SystemdRefused(text),
    }
}
