//! Holds: what a client or a person has the guard leave alone, until they let go, leave, or the time is over.
//!
//! A hold is a cookie with an owner, a reason and an end. Those of a client that is bound to its bus name
//! end when that name leaves the bus; the others end when somebody says so, or with their time.
//! An end is a moment of `CLOCK_BOOTTIME`: "for half an hour" includes a lid that was closed meanwhile, and
//! the moment means the same to a guard that was started again.

pub mod timespan;
mod words;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::action::Failure;
use crate::event::Ticket;
use crate::id::ProcId;

/// The most holds at once.
pub const MAX_HOLDS: usize = 256;
/// The most of one bus client; and the most that are bound to none.
pub const MAX_PER_CLIENT: usize = 64;

/// What is held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Kind {
    /// Detection, and bringing back what calmed down, of everything.
    Pause,
    /// Detection leaves a process and its descendants alone.
    Exempt {
        /// The process; the hold ends with it.
        root: ProcId,
    },
    /// A workload stays in its class, however calm it is.
    Pin {
        /// The process that was named; the hold ends with it.
        process: ProcId,
        /// The workload's scope; the hold ends with that, too.
        unit: String,
    },
    /// A placed workload is released when the hold ends.
    Lease {
        /// The workload's scope; the hold ends with it.
        unit: String,
    },
}

/// Who holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The unique bus name that the hold is bound to, if it is.
    pub bus_name: Option<String>,
    /// PID of the caller, as the bus knows it; 0 when it does not.
    pub pid: u32,
    /// Its command line when it called, printable.
    pub command: String,
}

/// When a hold ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadline {
    /// Time since boot, suspended or not.
    pub boot: Duration,
    /// The same moment for people, in microseconds since 1970, as the clock was when the hold began.
    pub wall: u64,
}

/// Everything about a hold but what it holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// Whose it is.
    pub owner: Owner,
    /// Why, printable; may be empty.
    pub reason: String,
    /// Command line of what is held, printable; empty for a pause.
    pub subject: String,
    /// Since when, in microseconds since 1970.
    pub since: u64,
    /// When it ends, if by itself.
    pub until: Option<Deadline>,
}

/// A hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// Its cookie: never 0, never used twice.
    pub id: u64,
    /// What is held.
    #[serde(flatten)]
    pub kind: Kind,
    /// By whom, why and how long.
    #[serde(flatten)]
    pub terms: Terms,
}

/// What a caller wants held. A lease comes with a placement instead ([`crate::event::Request::lease`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// See [`Kind::Pause`].
    Pause,
    /// See [`Kind::Exempt`].
    Exempt(ProcId),
    /// See [`Kind::Pin`].
    Pin {
        /// The process that was named.
        process: ProcId,
        /// The workload that it is in, if any.
        unit: Option<String>,
    },
}

/// What happens to holds.
#[derive(Clone, Debug)]
pub enum HoldEvent {
    /// A caller wants one. Answered by `Action::Held` or `Action::Refuse`.
    Wanted {
        /// Names the call.
        ticket: Ticket,
        /// What.
        wish: Wish,
        /// By whom, why and how long.
        terms: Terms,
        /// The workload that the caller is in, if any: heavy work cannot exempt itself.
        caller_unit: Option<String>,
    },
    /// A caller lets go of one. Answered by `Action::Unheld` or `Action::Refuse`.
    LetGo {
        /// Names the call.
        ticket: Ticket,
        /// The cookie.
        id: u64,
    },
    /// A caller ends every pause. Answered by `Action::Unheld`.
    Resume {
        /// Names the call.
        ticket: Ticket,
    },
    /// One that an earlier guard saved.
    Restored(Hold),
    /// So much time has passed since boot.
    Elapsed(Duration),
    /// A unique name has left the bus.
    OwnerLeft(String),
    /// A process that a hold names has ended.
    TreeEnded(ProcId),
    /// A routed workload holds an exempt process: it was in one already, or a move took it along.
    Carried {
        /// The workload's scope.
        unit: String,
    },
}

/// Every hold there is.
#[derive(Clone, Debug, Default)]
pub struct Holds {
    by_id: BTreeMap<u64, Hold>,
    last_id: u64,
}

impl Holds {
    /// A hold by its cookie.
    pub fn get(&self, id: u64) -> Option<&Hold> {
        self.by_id.get(&id)
    }

    /// Every hold, the oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Hold> {
        self.by_id.values()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// The last cookie that was given out: a later guard goes on from there.
    pub fn last_id(&self) -> u64 {
        self.last_id
    }

    /// Gives no cookie up to this one again.
    pub fn skip_to(&mut self, id: u64) {
        self.last_id = self.last_id.max(id);
    }

    /// Whether routing is held as a whole.
    pub fn is_paused(&self) -> bool {
        self.iter().any(|hold| hold.kind == Kind::Pause)
    }

    /// Whether a workload stays where it is, however calm.
    pub fn is_pinned(&self, scope: &str) -> bool {
        self.iter()
            .any(|hold| matches!(&hold.kind, Kind::Pin { unit, .. } if unit == scope))
    }

    /// The roots of the trees that detection leaves alone.
    pub fn exempt_roots(&self) -> impl Iterator<Item = ProcId> {
        self.iter().filter_map(|hold| match hold.kind {
            Kind::Exempt { root } => Some(root),
            _ => None,
        })
    }

    /// The unique bus names that holds are bound to; not those of leases that are over already.
    pub fn bus_names(&self) -> impl Iterator<Item = &str> {
        self.iter()
            .filter(|hold| hold.terms.until.is_none_or(|until| !until.boot.is_zero()))
            .filter_map(|hold| hold.terms.owner.bus_name.as_deref())
    }

    /// The processes that holds end with.
    pub fn processes(&self) -> impl Iterator<Item = ProcId> {
        self.iter().filter_map(|hold| match hold.kind {
            Kind::Exempt { root } => Some(root),
            Kind::Pin { process, .. } => Some(process),
            Kind::Pause | Kind::Lease { .. } => None,
        })
    }

    /// The next moment at which one ends by itself, as time since boot. A lease that is over already has
    /// none.
    pub fn next_end(&self) -> Option<Duration> {
        self.iter()
            .filter_map(|hold| Some(hold.terms.until?.boot))
            .filter(|boot| !boot.is_zero())
            .min()
    }

    /// Whether there is room for one more of this owner, when `coming` are on their way to be held.
    ///
    /// # Errors
    ///
    /// Names the limit.
    pub fn room(&self, owner: &Owner, coming: &[&Owner]) -> Result<(), Failure> {
        let all = || {
            self.iter()
                .map(|hold| &hold.terms.owner)
                .chain(coming.iter().copied())
        };
        if all().count() >= MAX_HOLDS {
            return Err(Failure::LimitExceeded(format!(
                "there are {MAX_HOLDS} holds already; `workload-guard holds` lists them"
            )));
        }
        let of_client = all()
            .filter(|other| other.bus_name == owner.bus_name)
            .count();
        if of_client >= MAX_PER_CLIENT {
            return Err(Failure::LimitExceeded(match &owner.bus_name {
                Some(name) => format!("the bus client {name} has {MAX_PER_CLIENT} holds already"),
                None => format!(
                    "there are {MAX_PER_CLIENT} holds that no bus client is bound to; `workload-guard holds` lists them"
                ),
            }));
        }
        Ok(())
    }

    /// Takes one more. There is [`Holds::room`] for it.
    pub(crate) fn add(&mut self, kind: Kind, terms: Terms) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.by_id.insert(id, Hold { id, kind, terms });
        id
    }

    /// Takes one back that an earlier guard saved.
    pub(crate) fn restore(&mut self, hold: Hold) {
        if self.len() < MAX_HOLDS && hold.id != 0 {
            self.skip_to(hold.id);
            self.by_id.insert(hold.id, hold);
        }
    }

    /// Ends holds. A lease stays, as one that is over, until its workload is released: a guard that is
    /// killed in between has it to do again.
    pub(crate) fn end(&mut self, which: impl Fn(&Hold) -> bool) -> u32 {
        let mut ended = 0;
        self.by_id.retain(|_, hold| {
            if !which(hold) {
                return true;
            }
            ended += 1;
            let is_lease = matches!(hold.kind, Kind::Lease { .. });
            if is_lease {
                hold.terms.until = Some(Deadline {
                    boot: Duration::ZERO,
                    wall: hold
                        .terms
                        .until
                        .map_or(hold.terms.since, |until| until.wall),
                });
            }
            is_lease
        });
        ended
    }

    /// Workloads whose lease is over at this time since boot.
    pub(crate) fn over(&self, boot: Duration) -> Vec<String> {
        let over = |hold: &&Hold| hold.terms.until.is_some_and(|until| until.boot <= boot);
        self.iter()
            .filter(over)
            .filter_map(|hold| match &hold.kind {
                Kind::Lease { unit } => Some(unit.clone()),
                _ => None,
            })
            .collect()
    }

    /// The workload in a scope is gone, and the holds on it with it.
    pub(crate) fn workload_ended(&mut self, scope: &str) {
        self.by_id.retain(|_, hold| match &hold.kind {
            Kind::Pin { unit, .. } | Kind::Lease { unit } => unit != scope,
            Kind::Pause | Kind::Exempt { .. } => true,
        });
    }
}
