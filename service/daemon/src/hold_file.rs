//! The holds on disk, so that a restart of the guard ends none but those of clients that left meanwhile.

use std::path::{Path, PathBuf};

use guard_policy::holds::{Hold, Holds};
use serde::{Deserialize, Serialize};

use crate::disk;

/// Of the file's layout; another one is not read.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct OnDisk<H> {
    version: u32,
    /// Which bus the unique names are of: another one gives the same names to others.
    bus: String,
    last_id: u64,
    holds: Vec<H>,
}

/// What an earlier guard saved.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Saved {
    /// The last cookie that it gave out.
    pub last_id: u64,
    /// Its holds.
    pub holds: Vec<Hold>,
}

/// The one owner of the file.
pub struct HoldFile {
    path: PathBuf,
    bus: String,
    written: Option<Vec<u8>>,
    /// What went wrong last time, which is told once.
    problem: Option<String>,
}

impl HoldFile {
    /// In `folder`, which is made with the first hold. `bus` is the id of the bus (`GetId`).
    pub fn new(folder: &Path, bus: String) -> HoldFile {
        HoldFile {
            path: folder.join("holds.json"),
            bus,
            written: None,
            problem: None,
        }
    }

    /// What was saved; of another bus without what was bound to a client of that one.
    pub fn load(&mut self) -> Saved {
        let text = match disk::read(&self.path) {
            Ok(Some(text)) => text,
            Ok(None) => return Saved::default(),
            Err(error) => {
                log::warn!("{} cannot be read: {error}", self.path.display());
                return Saved::default();
            }
        };
        match serde_json::from_slice::<OnDisk<Hold>>(&text) {
            Ok(disk) if disk.version == VERSION => {
                let mut saved = Saved {
                    last_id: disk.last_id,
                    holds: disk.holds,
                };
                if disk.bus != self.bus {
                    for hold in &mut saved.holds {
                        // No name of this bus: its owner is gone, which ends a lease properly.
                        if let Some(name) = &mut hold.terms.owner.bus_name {
                            *name = format!("{name} of an earlier bus");
                        }
                    }
                }
                self.written = Some(text);
                saved
            }
            Ok(disk) => {
                let why = format!("it has version {}, not {VERSION}", disk.version);
                self.set_aside(&why);
                Saved::default()
            }
            Err(error) => {
                self.set_aside(&error.to_string());
                Saved::default()
            }
        }
    }

    fn set_aside(&self, why: &str) {
        let kept = disk::set_aside(&self.path);
        log::warn!("{} is not used: {why}; {kept}", self.path.display());
    }

    /// Saves the holds when they differ from what is on disk, or when the last try failed.
    pub fn save(&mut self, holds: &Holds) {
        if self.written.is_none() && holds.last_id() == 0 {
            return;
        }
        let text = serde_json::to_vec(&OnDisk {
            version: VERSION,
            bus: self.bus.clone(),
            last_id: holds.last_id(),
            holds: holds.iter().collect(),
        })
        .expect("holds are plain data");
        if self.written.as_ref() == Some(&text) {
            return;
        }
        match disk::write(&self.path, &text) {
            Ok(()) => {
                self.written = Some(text);
                self.problem = None;
            }
            Err(error) => {
                let problem = error.to_string();
                if self.problem.as_ref() != Some(&problem) {
                    log::warn!(
                        "{} cannot be written: {problem}; a restart of the guard would end every hold",
                        self.path.display()
                    );
                    self.problem = Some(problem);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use guard_policy::holds::{Deadline, Kind, Owner, Terms};
    use guard_policy::id::ProcId;

    use super::*;

    fn hold(id: u64, kind: Kind) -> Hold {
        Hold {
            id,
            kind,
            terms: Terms {
                owner: Owner {
                    bus_name: Some(":1.7".to_owned()),
                    pid: 9,
                    command: "agent".to_owned(),
                },
                reason: String::new(),
                subject: "make".to_owned(),
                since: 5,
                until: Some(Deadline {
                    boot: Duration::from_millis(1500),
                    wall: 6,
                }),
            },
        }
    }

    #[test]
    fn every_kind_survives_the_way_to_the_disk_and_back() {
        let process = ProcId { pid: 3, start: 4 };
        let unit = "lwg-heavy-placed-3-4.scope".to_owned();
        let holds = vec![
            hold(1, Kind::Pause),
            hold(2, Kind::Exempt { root: process }),
            hold(
                3,
                Kind::Pin {
                    process,
                    unit: unit.clone(),
                },
            ),
            hold(4, Kind::Lease { unit }),
        ];
        let folder = tempfile::tempdir().expect("a folder");
        let disk = OnDisk {
            version: VERSION,
            bus: "a".to_owned(),
            last_id: 9,
            holds: holds.iter().collect(),
        };
        let text = serde_json::to_vec(&disk).expect("plain data");
        disk::write(&folder.path().join("holds.json"), &text).expect("written");
        let load = |bus: &str| HoldFile::new(folder.path(), bus.to_owned()).load();
        assert_eq!(load("a"), Saved { last_id: 9, holds });
        let names: Vec<_> = load("b")
            .holds
            .into_iter()
            .filter_map(|hold| hold.terms.owner.bus_name)
            .collect();
        assert_eq!(names, [":1.7 of an earlier bus"; 4]);
    }

    #[test]
    fn a_file_that_means_nothing_is_set_aside() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("holds.json");
        std::fs::write(&path, b"{\"version\":1,\"holds\":7}").expect("written");
        assert_eq!(
            HoldFile::new(folder.path(), String::new()).load(),
            Saved::default()
        );
        assert!(!path.exists() && folder.path().join("holds.json.unreadable").exists());
    }
}
