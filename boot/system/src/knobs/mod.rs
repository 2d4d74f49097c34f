//! What a profile asks of this machine, as an ordered list of entries. Pure: from what was asked for and
//! what the machine offers.

mod frequency;
mod judge;
mod meets;
mod steering;
mod switches;

use bench_profile::requested::Requested;

pub use judge::judge;
pub use meets::Meets;

use crate::snapshot::Snapshot;

/// One knob and what is to be done about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// A stable, short name.
    pub id: String,
    /// What is to be done.
    pub action: Action,
}

/// What is to be done about a knob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// The file gets the value, where it does not hold it already.
    Write {
        /// Below the root.
        path: String,
        /// What is written.
        value: String,
        /// What the kernel then shows.
        meets: Meets,
    },
    /// The file is looked at, and never written.
    Look {
        /// Below the root.
        path: String,
        /// What it should show.
        meets: Meets,
    },
    /// Another write changes the file in passing; it is saved, and put back if need be.
    Keep {
        /// Below the root.
        path: String,
    },
    /// All swap areas go out of use.
    SwapOff,
    /// The unit stops.
    Stop {
        /// Its name.
        unit: String,
    },
    /// This machine does not offer it, and why.
    Unsupported(String),
}

impl Entry {
    fn write(id: impl Into<String>, path: impl Into<String>, value: &str, meets: Meets) -> Self {
        Entry {
            id: id.into(),
            action: Action::Write {
                path: path.into(),
                value: value.to_owned(),
                meets,
            },
        }
    }

    fn keep(id: impl Into<String>, path: String) -> Self {
        Entry {
            id: id.into(),
            action: Action::Keep { path },
        }
    }

    fn unsupported(id: impl Into<String>, why: impl Into<String>) -> Self {
        Entry {
            id: id.into(),
            action: Action::Unsupported(why.into()),
        }
    }

    /// The file that it is about.
    pub fn path(&self) -> Option<&str> {
        match &self.action {
            Action::Write { path, .. } | Action::Look { path, .. } | Action::Keep { path } => {
                Some(path)
            }
            _ => None,
        }
    }
}

/// What comes first: swap, since it alone can fail with nothing else done; what would undo the rest; and
/// SMT, which decides what else there is.
pub fn first(requested: &Requested, snapshot: &Snapshot) -> Vec<Entry> {
    let mut entries = switches::swap(snapshot);
    entries.extend(switches::units(requested));
    entries.push(switches::smt(requested, snapshot));
    entries
}

/// Everything else, in the order in which it is written. Energy preferences go before governors, which
/// lock them; governors before boost, which they can reset; parking last, when nothing is left on the
/// CPUs that go.
pub fn rest(requested: &Requested, snapshot: &Snapshot) -> Vec<Entry> {
    let mut entries = frequency::entries(requested, snapshot);
    entries.extend(switches::sysctls(snapshot));
    entries.extend(steering::entries(requested, snapshot));
    entries.extend(switches::parking(requested, snapshot));
    entries.extend(switches::others(requested, snapshot));
    entries
}

/// Both.
pub fn all(requested: &Requested, snapshot: &Snapshot) -> Vec<Entry> {
    let mut entries = first(requested, snapshot);
    entries.extend(rest(requested, snapshot));
    entries
}
