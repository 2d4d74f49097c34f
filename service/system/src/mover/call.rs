//! Calls to systemd: each has a deadline, and its error a meaning.

use std::time::{Duration, Instant};

use guard_policy::action::Failure;
use workload_guard_dbus::systemd1::error_name as name;

use crate::bus;
use crate::units::error_name;

use super::Mover;

/// How long a job may take after the call that made it. The jobs here start no program.
pub const JOB: Duration = Duration::from_secs(10);
/// How long a unit may take to be unloaded after its last process left. The kernel reports an empty
/// control group at most every 10 ms; median 13 ms, never seen above 50.
pub const UNLOAD: Duration = Duration::from_secs(1);
/// How long a manager that re-executes may be away (50 to 100 ms, measured).
pub const REPLACEMENT: Duration = Duration::from_secs(5);
/// How long to wait for a signal before looking again all the same.
pub const LOOK: Duration = Duration::from_millis(25);

/// Runs a call. Its deadline is the connection's; here it gets a name in the error.
pub async fn call<T>(what: &str, method: impl Future<Output = zbus::Result<T>>) -> zbus::Result<T> {
    method.await.map_err(|error| match bus::is_overdue(&error) {
        true => bus::overdue(&format!(
            "{what}: systemd did not answer within {} s",
            bus::CALL.as_secs()
        )),
        false => error,
    })
}

impl Mover {
    /// Makes a call that can be repeated, again as long as the manager is away.
    pub(super) async fn ask<T>(
        &self,
        what: &str,
        method: impl AsyncFn() -> zbus::Result<T>,
    ) -> zbus::Result<T> {
        let began = Instant::now();
        loop {
            match call(what, method()).await {
                Err(error) if meaning(&error) == Meaning::Away && began.elapsed() < REPLACEMENT => {
                    self.signals.anything(LOOK).await;
                }
                other => return other,
            }
        }
    }
}

/// What an error says about the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// A process of the list is gone.
    NoSuchProcess,
    /// A unit of that name is loaded.
    Exists,
    /// An unknown property.
    Unsupported,
    /// The manager was away: carried out or not, nobody knows.
    Away,
    /// The kernel refused one of the processes.
    Denied,
    /// The target does not take processes, whichever they are.
    Target,
    /// Anything else.
    Other,
}

/// Reads the name of an error. Never its text: texts differ between versions.
pub fn meaning(error: &zbus::Error) -> Meaning {
    match error_name(error) {
        Some(name::NO_SUCH_PROCESS) => Meaning::NoSuchProcess,
        Some(name::UNIT_EXISTS) => Meaning::Exists,
        Some(name::PROPERTY_READ_ONLY) => Meaning::Unsupported,
        Some(name::ACCESS_DENIED) => Meaning::Denied,
        Some(name::FILE_NOT_FOUND | name::BUSY | name::NO_SUCH_UNIT | name::INVALID_ARGS) => {
            Meaning::Target
        }
        // What the bus answers while the name has no owner: a re-execution on systemd 262, or a restart.
        Some(
            name::NO_REPLY
            | "org.freedesktop.DBus.Error.ServiceUnknown"
            | "org.freedesktop.DBus.Error.NameHasNoOwner"
            | "org.freedesktop.DBus.Error.Disconnected",
        ) => Meaning::Away,
        Some(other) if other.starts_with("org.freedesktop.DBus.Error.Spawn.") => Meaning::Away,
        _ => Meaning::Other,
    }
}

/// What the caller is told.
pub fn failure(doing: &str, error: &zbus::Error) -> Failure {
    let text = format!("{doing}: {}", text(error));
    match meaning(error) {
        Meaning::NoSuchProcess => Failure::NoSuchProcess(text),
        Meaning::Denied => Failure::OutOfReach(text),
        _ if bus::is_overdue(error) => Failure::Timeout(text),
        _ => Failure::SystemdRefused(text),
    }
}

/// The text of an error without its D-Bus name, on one line.
pub fn text(error: &zbus::Error) -> String {
    let text = match error {
        zbus::Error::MethodError(name, None, _) => name.to_string(),
        zbus::Error::MethodError(_, Some(text), _) => text.clone(),
        other => other.to_string(),
    };
    guard_policy::printable::printable(&text)
}

/// What the caller is told of a file that could not be read.
pub fn unreadable(error: std::io::Error) -> Failure {
    Failure::SystemdRefused(error.to_string())
}
