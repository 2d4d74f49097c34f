//! Wishes of callers, on their way to the loop.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::channel::{mpsc, oneshot};
use guard_policy::action::Placement;

use super::caller::Caller;
use super::holds::HoldCommand;
use super::options::Options;
use guard_system::mover::Found;
use workload_guard_dbus::GuardError;
use workload_guard_dbus::types::Explained;
use zvariant::{OwnedFd, OwnedObjectPath};

/// Calls that may wait at once; more are refused, so that a caller cannot grow the daemon.
const MAX_WAITING: usize = 256;

/// Where an answer goes.
pub type Answer<T> = oneshot::Sender<Result<T, GuardError>>;

/// A process as a caller named it.
pub enum Target {
    /// By number, which says only who has that number now.
    Pid(u32),
    /// By descriptor, which cannot be mistaken.
    Fd(OwnedFd),
}

impl Target {
    /// With the caller in the place of PID 0, which systemd would take for us.
    pub fn of_caller(self, caller: &Caller) -> Result<Target, GuardError> {
        match (self, caller.pid) {
            (Target::Pid(0), Some(pid)) => Ok(Target::Pid(pid)),
            (Target::Pid(0), None) => Err(GuardError::NoSuchProcess(
                "PID 0 means the caller, and the bus does not tell who that is".into(),
            )),
            (target, _) => Ok(target),
        }
    }
}

/// One wish.
pub enum Command {
    /// Put processes into a class.
    Place {
        /// Who wants it, as the bus knows them.
        caller: Caller,
        /// Root first.
        targets: Vec<Target>,
        /// The class's name.
        class: String,
        /// Routed or placed.
        placement: Placement,
        /// The reason, and when the placement ends.
        options: Options,
        /// The workload's object.
        answer: Answer<OwnedObjectPath>,
    },
    /// End the workload that a process is in.
    ReleaseProcess {
        /// Any process of it.
        pid: u32,
        /// Where its processes are then.
        answer: Answer<String>,
    },
    /// End a workload.
    ReleaseUnit {
        /// Its scope.
        unit: String,
        /// Where its processes are then.
        answer: Answer<String>,
    },
    /// Watch more slices, or these no longer.
    Watch {
        /// Slices.
        units: Vec<String>,
        /// More, or no longer.
        add: bool,
        /// What is watched then.
        answer: Answer<Vec<String>>,
    },
    /// Tell why a process is where it is.
    Explain {
        /// The process.
        found: Found,
        /// Why.
        answer: Answer<Explained>,
    },
    /// Hold something, or let go.
    Hold(HoldCommand),
    /// Set the heavy class's quota.
    SetQuota {
        /// PID of the caller, as the bus knows it.
        caller: Option<u32>,
        /// Percent of one logical CPU.
        percent: u32,
        /// What the caller said, printable.
        reason: String,
        /// The quota in force.
        answer: Answer<f64>,
    },
    /// Take back what was set.
    ResetQuota {
        /// As of [`Command::SetQuota`].
        caller: Option<u32>,
        /// The quota in force; 0 for no limit.
        answer: Answer<f64>,
    },
    /// Read the settings again.
    Reload {
        /// Done, or what is wrong with them.
        answer: Answer<()>,
    },
}

/// The objects' end of the queue.
#[derive(Clone)]
pub struct Commands {
    queue: mpsc::UnboundedSender<Command>,
    waiting: Arc<AtomicUsize>,
}

impl Commands {
    /// Both ends of a new queue.
    pub fn new() -> (Commands, mpsc::UnboundedReceiver<Command>) {
        let (queue, receiver) = mpsc::unbounded();
        (
            Commands {
                queue,
                waiting: Arc::default(),
            },
            receiver,
        )
    }

    /// Queues what `make` builds around the answer's sender, and waits for the answer.
    pub async fn ask<T>(&self, make: impl FnOnce(Answer<T>) -> Command) -> Result<T, GuardError> {
        let _place = Place::take(&self.waiting)?;
        let (answer, wait) = oneshot::channel();
        let ended = || GuardError::SystemdRefused("the guard is stopping".into());
        self.queue
            .unbounded_send(make(answer))
            .map_err(|_| ended())?;
        wait.await.unwrap_or_else(|_| Err(ended()))
    }
}

/// One of the [`MAX_WAITING`] places, given back when the call ends in any way.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(waiting: &Arc<AtomicUsize>) -> Result<Place, GuardError> {
        let place = Place(waiting.clone());
        if waiting.fetch_add(1, Ordering::Relaxed) >= MAX_WAITING {
            return Err(GuardError::LimitExceeded(format!(
                "{MAX_WAITING} calls wait for the guard already; try again when one has ended"
            )));
        }
        Ok(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_calls_is_refused_and_leaves_no_place_taken() {
        let (commands, queue) = Commands::new();
        let held: Vec<_> = (0..MAX_WAITING)
            .map(|_| Place::take(&commands.waiting).expect("a place"))
            .collect();
        assert!(matches!(
            Place::take(&commands.waiting),
            Err(GuardError::LimitExceeded(_))
        ));
        drop(held);
        assert_eq!(commands.waiting.load(Ordering::Relaxed), 0);
        drop(queue);
        let ended = async_io::block_on(commands.ask(|answer| Command::Reload { answer }));
        assert!(matches!(ended, Err(GuardError::SystemdRefused(_))));
    }
}
