//! What the machine was before the first Apply, kept in a file that outlives a crash.

use std::fs::File;
use std::io::{self, Write};

use bench_profile::requested::Requested;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::knobs::{Action, Entry};
use crate::root::{FileError, Root};
use crate::snapshot::{self, SWAPS, Snapshot};
use crate::swap;

/// The file, below the root. `/run` is empty after a boot, and so are the knobs.
pub const FILE: &str = "run/bench-profile/originals.json";
const FOLDER: &str = "run/bench-profile";
const NAME: &str = "originals.json";
const FRESH: &str = "originals.json.new";

/// What was there, in the order in which it is changed. It is also the journal: whatever Apply intends
/// to change is in it before the first change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Originals {
    /// What was applied, as the machine file had it then.
    pub requested: Requested,
    /// Each thing that was or will be changed.
    pub saved: Vec<Saved>,
}

/// One thing as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Saved {
    /// A file's exact bytes.
    File {
        /// Its knob.
        id: String,
        /// Below the root.
        path: String,
        /// What it held.
        before: String,
        /// Whether it changes only in passing.
        kept: bool,
    },
    /// A swap area that was in use.
    Swap {
        /// The device or file.
        device: String,
        /// Its priority.
        priority: i32,
    },
    /// A unit that ran.
    Unit {
        /// Its name.
        unit: String,
    },
}

/// The file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OriginalsError {
    /// It cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// It holds something else.
    #[error(
        "{path}: this does not tell what the machine was before: {error}. A reboot puts everything back; then it is gone"
    )]
    Unreadable {
        /// The file.
        path: String,
        /// What is wrong with it.
        error: serde_json::Error,
    },
    /// It names a file that Apply never changes.
    #[error(
        "{path}: Apply never wrote {what:?}, so nothing is restored from this file; a reboot puts everything back"
    )]
    Foreign {
        /// The file.
        path: String,
        /// What it names.
        what: String,
    },
}

impl Originals {
    /// None yet, for what is asked.
    pub fn new(requested: &Requested) -> Self {
        Originals {
            requested: requested.clone(),
            saved: Vec::new(),
        }
    }

    /// Whether they were saved for just this request. The same profile of another machine file is another one: what
    /// only the older asked for, such as a parked CPU, has to go back.
    pub fn are_of(&self, requested: &Requested) -> bool {
        self.requested == *requested
    }

    /// Adds what `entries` may change. What is saved already stays as it is: the first value is the
    /// machine's own.
    pub fn merge(&mut self, entries: &[Entry], snapshot: &Snapshot) {
        for entry in entries {
            match &entry.action {
                Action::Write { path, .. } => self.file(&entry.id, path, false, snapshot),
                Action::Keep { path } | Action::Look { path, .. } => {
                    self.file(&entry.id, path, true, snapshot);
                }
                Action::SwapOff => {
                    for area in swap::areas(snapshot.text(SWAPS).unwrap_or_default()) {
                        let known = |saved: &Saved| matches!(saved, Saved::Swap { device, .. } if *device == area.device);
                        if !self.saved.iter().any(known) {
                            self.saved.push(Saved::Swap {
                                device: area.device,
                                priority: area.priority,
                            });
                        }
                    }
                }
                Action::Stop { unit } if snapshot.unit(unit) == Some(true) => {
                    let saved = Saved::Unit { unit: unit.clone() };
                    if !self.saved.contains(&saved) {
                        self.saved.push(saved);
                    }
                }
                Action::Stop { .. } | Action::Unsupported(_) => {}
            }
        }
    }

    fn file(&mut self, id: &str, path: &str, kept: bool, snapshot: &Snapshot) {
        if self.before(path).is_some() {
            return;
        }
        if let Some(before) = snapshot.text(path) {
            self.saved.push(Saved::File {
                id: id.to_owned(),
                path: path.to_owned(),
                before: before.to_owned(),
                kept,
            });
        }
    }

    /// What a file held.
    pub fn before(&self, of: &str) -> Option<&str> {
        self.saved.iter().find_map(|saved| match saved {
            Saved::File { path, before, .. } if path == of => Some(before.as_str()),
            _ => None,
        })
    }
}

/// The originals, where something was applied and not restored.
///
/// # Errors
///
/// The file is there and cannot be read or believed.
pub fn load(root: &Root) -> Result<Option<Originals>, OriginalsError> {
    let Some(text) = root.read_own(FILE)? else {
        return Ok(None);
    };
    let path = || root.path(FILE).display().to_string();
    let originals: Originals =
        serde_json::from_str(&text).map_err(|error| OriginalsError::Unreadable {
            path: path(),
            error,
        })?;
    for saved in &originals.saved {
        if let Saved::File { path: what, .. } = saved
            && !snapshot::is_known(what)
        {
            let what = what.clone();
            return Err(OriginalsError::Foreign { path: path(), what });
        }
    }
    Ok(Some(originals))
}

/// Writes them for root alone, in one step: whenever the process dies, the file is the one before or this one.
///
/// # Errors
///
/// The file cannot be written; nothing was changed then.
pub fn save(root: &Root, originals: &Originals) -> Result<(), OriginalsError> {
    let json = serde_json::to_vec(originals).map_err(|error| OriginalsError::Unreadable {
        path: root.path(FILE).display().to_string(),
        error,
    })?;
    replace(root, &json).map_err(|error| root.error(FILE, error))?;
    Ok(())
}

fn replace(root: &Root, bytes: &[u8]) -> io::Result<()> {
    let folder = root.folder(FOLDER)?;
    // Of a save that was cut off.
    remove(&folder, FRESH)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let fresh = rustix::fs::openat(&folder, FRESH, flags, Mode::from_raw_mode(0o600))?;
    File::from(fresh).write_all(bytes)?;
    // No fsync(2): /run is memory, and what ends it puts the knobs back as well.
    Ok(rustix::fs::renameat(&folder, FRESH, &folder, NAME)?)
}

fn remove(folder: impl std::os::fd::AsFd, name: &str) -> io::Result<()> {
    match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Forgets them: the machine is as it was.
///
/// # Errors
///
/// The file cannot be removed.
pub fn forget(root: &Root) -> Result<(), OriginalsError> {
    root.folder(FOLDER)
        .and_then(|folder| remove(&folder, NAME))
        .map_err(|error| root.error(FILE, error))?;
    Ok(())
}
