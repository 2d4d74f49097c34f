//! Why boot entries were not looked at or written.

use std::io;

use bench_profile::entries::EntryError;

use super::Loader;
use crate::machine::LoadError;
use crate::root::FileError;

/// What stands in the way, and the way out.
#[derive(Debug, thiserror::Error)]
pub enum EntriesError {
    /// No loader that we know.
    #[error(
        "no boot loader was found that can have entries for the profiles: neither Limine's limine.conf nor systemd-boot's \
         loader/entries nor GRUB's grub.cfg is below /boot, /efi or /boot/efi"
    )]
    NoLoader,
    /// The one that was asked for is not here.
    #[error("{0} is not here: {1} was looked for")]
    Absent(Loader, String),
    /// More than one, and nobody says which boots the machine.
    #[error(
        "files of {0} are here, and the firmware does not tell which of them boots this machine: name one with --loader"
    )]
    Ambiguous(String),
    /// The loader cannot do what was asked.
    #[error("{0}")]
    Unsupported(String),
    /// There is no machine file, or it is wrong.
    #[error(transparent)]
    Machine(#[from] LoadError),
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// What a loader's file holds does not do.
    #[error("{path}: {error}")]
    Entry {
        /// The file or folder.
        path: String,
        /// Why.
        error: EntryError,
    },
    /// There is no entry to boot.
    #[error("{0}")]
    NoEntry(String),
    /// Somebody else writes.
    #[error("{0} is held: something else changes the boot entries; try again when it has ended")]
    Busy(String),
    /// A change would keep Limine from booting.
    #[error(
        "{0} has the configuration's checksum enrolled, and Limine does not boot with another one: `limine-update` \
         makes the entries and enrols them again, once ENABLE_ENROLL_LIMINE_CONFIG=yes is in /etc/default/limine"
    )]
    Enrolled(String),
    /// A file was not written.
    #[error("{path}: {step}: {error}. {left}")]
    Write {
        /// The file.
        path: String,
        /// What was tried.
        step: &'static str,
        /// What the kernel answered.
        error: io::Error,
        /// In which state everything is.
        left: String,
    },
}

impl EntriesError {
    pub(super) fn entry(path: &str, error: EntryError) -> EntriesError {
        EntriesError::Entry {
            path: format!("/{path}"),
            error,
        }
    }

    /// Whether the kernel does not let this user.
    pub fn is_denied(&self) -> bool {
        let error = match self {
            EntriesError::File(error) | EntriesError::Machine(LoadError::File(error)) => {
                &error.error
            }
            EntriesError::Write { error, .. } => error,
            _ => return false,
        };
        error.kind() == io::ErrorKind::PermissionDenied
    }

    /// Nothing in the loader's files matches the machine file.
    pub fn is_unmatched(&self) -> bool {
        matches!(
            self,
            EntriesError::Entry {
                error: EntryError::NoMatch { .. },
                ..
            }
        )
    }
}
