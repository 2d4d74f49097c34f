//! What the guard remembers of one workload.

use guard_system::mover::Route;
use serde::{Deserialize, Serialize};
use workload_guard_dbus::types::Reason;

/// A move that was carried out, and why it was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The reason's name on the bus and in the journal.
    pub reason: Reason,
    /// Where the work is and where it came from.
    #[serde(flatten)]
    pub route: Route,
}
