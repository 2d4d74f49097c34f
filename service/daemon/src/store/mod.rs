//! The routes on disk: written only on change, atomically, for the user alone.
//!
//! systemd is the truth; this file holds what systemd does not know, above all where work came from.

mod saved;

use std::collections::BTreeMap;
use std::path::PathBuf;

use guard_policy::health::Problem;
use serde::Serialize;

use crate::disk;
use crate::record::Record;

/// Of the file's layout; another one is not read.
const VERSION: u32 = 1;

#[derive(Serialize)]
struct OnDisk<'a> {
    version: u32,
    routes: Vec<&'a Record>,
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
        let saved = match disk::read(&self.path) {
            Ok(None) => return BTreeMap::new(),
            Ok(Some(text)) => saved::parse(text),
            Err(error) => Err(error.to_string()),
        };
        match saved {
            Ok(saved) => {
                for refused in &saved.refused {
                    log::warn!("{}: {refused}", self.path.display());
                }
                self.written = Some(saved.text);
                saved
                    .records
                    .into_iter()
                    .map(|record| (record.route.unit.clone(), record))
                    .collect()
            }
            Err(error) => {
                let kept = disk::set_aside(&self.path);
                log::warn!("{} is not used: {error}; {kept}", self.path.display());
                BTreeMap::new()
            }
        }
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
        match disk::write(&self.path, &text) {
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
}
