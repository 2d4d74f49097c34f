//! The routes on disk: written only on change, atomically, for the user alone.
//!
//! systemd is the truth; this file holds what systemd does not know, above all where work came from.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;

use guard_policy::health::Problem;
use serde::{Deserialize, Serialize};

use crate::record::Record;

/// Of the file's layout; another one is not read.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct OnDisk<R> {
    version: u32,
    routes: Vec<R>,
}

/// The one owner of the routes file.
pub struct Store {
    path: PathBuf,
    written: Option<Vec<u8>>,
    problem: Option<Problem>,
}

impl Store {
    /// In `folder`, which is made when the first route is saved.
    pub fn new(folder: &std::path::Path) -> Store {
        Store {
            path: folder.join("routes.json"),
            written: None,
            problem: None,
        }
    }

    /// The saved routes, by scope. What cannot be read is set aside with a warning: the scopes
    /// themselves still tell most of it.
    pub fn load(&mut self) -> BTreeMap<String, Record> {
        // A FIFO in its place would hold up the start for ever.
        let text = match fs::metadata(&self.path).and_then(|metadata| match metadata.is_file() {
            true => fs::read(&self.path),
            false => Err(io::Error::other("it is not a regular file")),
        }) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return BTreeMap::new(),
            Err(error) => {
                log::warn!("{} cannot be read: {error}", self.path.display());
                return BTreeMap::new();
            }
        };
        match serde_json::from_slice::<OnDisk<Record>>(&text) {
            Ok(disk) if disk.version == VERSION => {
                self.written = Some(text.clone());
                disk.routes
                    .into_iter()
                    .map(|record| (record.route.unit.clone(), record))
                    .collect()
            }
            Ok(disk) => self.set_aside(&format!("it has version {}, not {VERSION}", disk.version)),
            Err(error) => self.set_aside(&error.to_string()),
        }
    }

    fn set_aside(&self, why: &str) -> BTreeMap<String, Record> {
        let aside = self.path.with_extension("json.unreadable");
        let kept = match fs::rename(&self.path, &aside) {
            Ok(()) => format!("kept as {}", aside.display()),
            Err(error) => format!("left in place: {error}"),
        };
        log::warn!("{} is not used: {why}; {kept}", self.path.display());
        BTreeMap::new()
    }

    /// Saves the routes when they differ from what is on disk, or when the last try failed.
    pub fn save<'a>(&mut self, routes: impl Iterator<Item = &'a Record>) {
        let text = serde_json::to_vec(&OnDisk {
            version: VERSION,
            routes: routes.collect(),
        })
        .expect("routes are plain data");
        if self.written.as_ref() == Some(&text) {
            return;
        }
        match self.write(&text) {
            Ok(()) => {
                self.written = Some(text);
                if self.problem.take().is_some() {
                    log::info!("{} can be written again", self.path.display());
                }
            }
            Err(error) => {
                let problem = Problem::StateUnwritable {
                    path: self.path.clone(),
                    error: error.to_string(),
                };
                // Once for each cause, not at each try.
                if self.problem.as_ref() != Some(&problem) {
                    log::warn!("{problem}");
                    self.problem = Some(problem);
                }
            }
        }
    }

    /// Why the last save failed, while it is so.
    pub fn problem(&self) -> Option<&Problem> {
        self.problem.as_ref()
    }

    fn write(&self, text: &[u8]) -> io::Result<()> {
        let folder = self.path.parent().expect("the path has a folder");
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
        let new = self.path.with_extension("json.new");
        let written = (|| {
            let mut file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&new)?;
            file.write_all(text)?;
            file.sync_all()?;
            fs::rename(&new, &self.path)?;
            File::open(folder)?.sync_all()
        })();
        if written.is_err() {
            // A torn half would only take the room that is missing.
            let _ = fs::remove_file(&new);
        }
        written
    }
}
