//! What the guard set, on disk: a runtime quota outlives it until the user logs out, so that the next
//! guard, or this one's end, must know what was there before.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::disk;

/// A quota that the guard set, or is about to set. Numbers are systemd's: microseconds of CPU per second.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ours {
    /// The slice.
    pub slice: String,
    /// What it was before the guard first set it; none for no limit.
    pub base: Option<u64>,
    /// What the guard sets, and what it had set before that: a crash may come between the two.
    pub set: Vec<u64>,
    /// By whom.
    pub by: By,
}

/// Who had the guard set a quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// The controller.
    Controller,
    /// A caller of SetQuota.
    Caller,
}

impl Ours {
    /// Whether a quota that is found is one that the guard set.
    pub fn is(&self, found: Option<u64>) -> bool {
        found.is_some_and(|found| self.set.contains(&found))
    }
}

/// The file.
#[derive(Debug)]
pub struct Marker {
    path: PathBuf,
}

impl Marker {
    /// In the folder of the guard's state.
    pub fn new(folder: &Path) -> Marker {
        Marker {
            path: folder.join("quota.json"),
        }
    }

    /// What an earlier guard left.
    pub fn load(&self) -> Option<Ours> {
        let unusable = |why: &dyn std::fmt::Display| {
            log::warn!(
                "{} is not used: {why}; a quota that an earlier guard set stays until you log out",
                self.path.display()
            );
            None
        };
        let text = match disk::read(&self.path) {
            Ok(Some(text)) => text,
            Ok(None) => return None,
            Err(error) => return unusable(&error),
        };
        match serde_json::from_slice(&text) {
            Ok(ours) => Some(ours),
            Err(error) => unusable(&error),
        }
    }

    /// Remembers it, before it is set.
    pub fn save(&self, ours: &Ours) -> io::Result<()> {
        let text = serde_json::to_vec(ours).expect("plain data");
        disk::write(&self.path, &text)
    }

    /// Forgets it, after it was taken back.
    pub fn remove(&self) {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                log::warn!("{} cannot be removed: {error}", self.path.display());
            }
            _ => {}
        }
    }

    /// Its path, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_set_is_known_again_after_a_crash_before_or_after_the_call() {
        let folder = tempfile::tempdir().expect("a folder");
        let marker = Marker::new(&folder.path().join("state"));
        assert_eq!(marker.load(), None);
        let ours = Ours {
            slice: "h.slice".to_owned(),
            base: Some(4_000_000),
            set: vec![3_500_000, 3_000_000],
            by: By::Controller,
        };
        marker.save(&ours).expect("saved");
        let found = marker.load().expect("there");
        assert_eq!(found, ours);
        assert!(found.is(Some(3_000_000)) && found.is(Some(3_500_000)));
        assert!(!found.is(Some(4_000_000)) && !found.is(None));
        marker.remove();
        marker.remove();
        assert_eq!(marker.load(), None);
    }

    #[test]
    fn a_torn_file_is_no_marker() {
        let folder = tempfile::tempdir().expect("a folder");
        let marker = Marker::new(folder.path());
        fs::write(marker.path(), "{\"slice\":").expect("written");
        assert_eq!(marker.load(), None);
    }
}
