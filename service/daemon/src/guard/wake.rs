//! What the loop waits for, and who waits for the loop.

use futures::StreamExt;
use futures::channel::mpsc::UnboundedReceiver;
use guard_policy::action::Failure;
use guard_system::watch::{ManagerEvent, ManagerEvents};
use zvariant::OwnedObjectPath;

use super::moves::Finished;
use crate::bus::{Answer, Command};
use crate::signals::Signals;

/// What the loop waits for.
pub enum Wake {
    /// A sample, a health check or a watchdog ping is due.
    Timer,
    /// A caller wants something.
    Command(Command),
    /// A move or a recovery has ended.
    Finished(Finished),
    /// systemd said something.
    Manager(ManagerEvent),
    /// The kernel told of new programs, or cannot any more.
    Programs(std::io::Result<guard_system::exec_events::Batch>),
    /// A client that a hold is bound to has left the bus.
    OwnerLeft(String),
    /// Somebody may have changed the heavy slice's quota.
    DropIns,
    /// The bus connection is gone.
    Disconnected,
    /// SIGTERM or SIGINT.
    Stop,
}

/// Who waits for the outcome of a wish.
pub enum Waiting {
    Placed(Answer<OwnedObjectPath>),
    Released(Answer<String>),
    Held(Answer<u64>),
    Unheld(Answer<u32>),
}

impl Waiting {
    /// Tells whoever waits that it cannot be.
    pub fn refuse(self, failure: Failure) {
        let error = crate::bus::error(failure);
        // The caller may have left; then nobody waits.
        match self {
            Waiting::Placed(answer) => drop(answer.send(Err(error))),
            Waiting::Released(answer) => drop(answer.send(Err(error))),
            Waiting::Held(answer) => drop(answer.send(Err(error))),
            Waiting::Unheld(answer) => drop(answer.send(Err(error))),
        }
    }
}

/// A signal that ends the loop.
pub async fn stop(signals: &Signals) -> Wake {
    if let Err(error) = signals.wait().await {
        log::error!("signals cannot be read: {error}");
    }
    Wake::Stop
}

/// The next wish of a caller.
pub async fn command(commands: &mut UnboundedReceiver<Command>) -> Wake {
    match commands.next().await {
        Some(command) => Wake::Command(command),
        None => Wake::Disconnected,
    }
}

/// The next word of systemd.
pub async fn manager(manager: &mut ManagerEvents) -> Wake {
    match manager.next().await {
        Some(event) => Wake::Manager(event),
        None => Wake::Disconnected,
    }
}
