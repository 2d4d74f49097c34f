//! Boot entries of the profiles: found, compared with what they should be, written.

mod backup;
mod disk;
mod error;
mod limine;
mod loader;
mod lock;
pub mod next;
mod plan;
#[cfg(test)]
mod tests;
mod write;

pub use backup::kept_in;
pub use disk::{Disk, Live};
pub use error::EntriesError;
pub use loader::Loader;
pub use plan::{Change, Plan, plan, printed};
pub use write::{Done, regenerate};

use crate::root::Root;

/// What is to be looked at, and who asks.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// This loader's files; else those of the loader that booted the machine, else of the only one that is there.
    pub loader: Option<Loader>,
    /// The boot partition, below the root; else where it usually is.
    pub boot: Option<String>,
    /// A hook of a loader or of a kernel's installation asks: it holds the loader's own lock, and what has to follow a
    /// change follows.
    pub hook: bool,
}

/// The loader whose entries are kept; none where there is none, or it is not known which.
pub fn loader(root: &Root) -> Option<Loader> {
    loader::choose(root, &Options::default()).ok()
}

/// The largest file of a loader that is read, in bytes.
const LARGEST: u64 = 4 << 20;
