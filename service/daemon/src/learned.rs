//! What adaptive routing learned, on disk: written now and then, so that a restart does not begin anew.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use guard_policy::engine::adaptive::{Baseline, Learned};
use guard_policy::health::Problem;
use serde::{Deserialize, Serialize};

use crate::disk;

/// Of the file's layout; another one is not read.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct OnDisk {
    version: u32,
    /// The one that was not seen for longest first.
    commands: Vec<Row>,
}

#[derive(Serialize, Deserialize)]
struct Row {
    command: String,
    samples: u64,
    mean: f64,
    variance: f64,
}

/// The one owner of the file.
pub struct LearnedFile {
    /// `None` where the user has no home.
    path: Option<PathBuf>,
    written: Instant,
    problem: Option<Problem>,
}

impl LearnedFile {
    /// In `folder`, which is made at the first save.
    pub fn new(folder: Option<&Path>) -> LearnedFile {
        LearnedFile {
            path: folder.map(|folder| folder.join("adaptive.json")),
            written: Instant::now(),
            problem: None,
        }
    }

    /// Adds to `learned` what was saved. What cannot be used is set aside with a warning, and learned anew.
    pub fn load(&self, learned: &mut Learned) {
        let Some(path) = &self.path else { return };
        let commands = match disk::read(path) {
            Ok(None) => return,
            Ok(Some(text)) => match serde_json::from_slice::<OnDisk>(&text) {
                Ok(disk) if disk.version == VERSION => Ok(disk.commands),
                Ok(disk) => Err(format!("it has version {}, not {VERSION}", disk.version)),
                Err(error) => Err(error.to_string()),
            },
            Err(error) => Err(error.to_string()),
        };
        match commands {
            Ok(commands) => {
                let left = learned.restore(commands.into_iter().map(|row| {
                    let baseline = Baseline {
                        samples: row.samples,
                        mean: row.mean,
                        variance: row.variance,
                    };
                    (Arc::from(row.command), baseline)
                }));
                if left > 0 {
                    log::warn!("{left} commands of {} are not used", path.display());
                }
            }
            Err(why) => {
                let kept = disk::set_aside(path);
                log::warn!(
                    "{} is not used: {why}; {kept}; what commands usually use is learned anew",
                    path.display()
                );
            }
        }
    }

    /// Saves when something was learned and the last save is at least `interval` ago.
    pub fn save(&mut self, learned: &mut Learned, interval: Duration) {
        let Some(path) = &self.path else { return };
        if self.written.elapsed() < interval || !learned.take_changed() {
            return;
        }
        self.written = Instant::now();
        let commands = learned.rows().into_iter().map(|row| Row {
            command: row.command.to_string(),
            samples: row.baseline.samples,
            mean: row.baseline.mean,
            variance: row.baseline.variance,
        });
        let text = serde_json::to_vec(&OnDisk {
            version: VERSION,
            commands: commands.collect(),
        })
        .expect("numbers that are sound can be written");
        match disk::write(path, &text) {
            Ok(()) => {
                if self.problem.take().is_some() {
                    log::info!("{} can be written again", path.display());
                }
            }
            Err(error) => {
                let problem = Problem::LearnedUnwritable {
                    path: path.clone(),
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn known() -> Learned {
        let mut learned = Learned::default();
        let baseline = Baseline {
            samples: 12,
            mean: 4.5,
            variance: 2.0,
        };
        assert_eq!(learned.restore([(Arc::from("git:gc"), baseline)]), 0);
        learned
    }

    fn saved(text: &str) -> (tempfile::TempDir, Learned) {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("adaptive.json"), text).expect("written");
        let mut learned = Learned::default();
        LearnedFile::new(Some(folder.path())).load(&mut learned);
        (folder, learned)
    }

    #[test]
    fn what_was_learned_comes_back_and_what_did_not_change_is_not_written() {
        let text = r#"{"version":1,"commands":[{"command":"git:gc","samples":12,"mean":4.5,"variance":2.0}]}"#;
        let (folder, mut learned) = saved(text);
        assert_eq!(learned.rows(), known().rows());
        let mut file = LearnedFile::new(Some(folder.path()));
        fs::remove_file(folder.path().join("adaptive.json")).expect("removed");
        file.save(&mut learned, Duration::ZERO);
        assert!(!folder.path().join("adaptive.json").exists());
    }

    #[test]
    fn a_file_that_cannot_be_used_is_kept_aside() {
        for text in [
            "",
            "{}",
            "not JSON",
            r#"{"version":2,"commands":[]}"#,
            r#"{"version":1,"commands":[{"command":7}]}"#,
        ] {
            let (folder, learned) = saved(text);
            assert!(learned.is_empty(), "{text}");
            let aside = folder.path().join("adaptive.json.unreadable");
            assert_eq!(fs::read_to_string(aside).expect("kept"), text);
            assert!(!folder.path().join("adaptive.json").exists());
        }
    }

    #[test]
    fn hostile_values_are_left_out() {
        let (_folder, learned) = saved(
            r#"{"version":1,"commands":[
                {"command":"a\nb","samples":1,"mean":1,"variance":1},
                {"command":"big","samples":1,"mean":1e300,"variance":-1},
                {"command":"","samples":1,"mean":1,"variance":1},
                {"command":"good:one","samples":1,"mean":1,"variance":1}]}"#,
        );
        let names: Vec<_> = learned
            .rows()
            .iter()
            .map(|row| row.command.to_string())
            .collect();
        assert_eq!(names, ["good:one"]);
    }
}
