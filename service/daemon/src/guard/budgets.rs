//! Budgets that the settings give to the user's own classes: applied, and put back.

use std::path::{Path, PathBuf};

use guard_policy::budget::{UnitSetting, unit_settings};
use guard_policy::health::Problem;
use guard_system::slices::{Given, GivenBudgets};

use super::Guard;
use crate::disk;

/// What was set, in memory and on disk.
pub struct Budgets {
    given: GivenBudgets,
    path: PathBuf,
    written: Vec<u8>,
    problems: Vec<Problem>,
}

impl Budgets {
    /// With what an earlier guard left in `folder`.
    pub fn load(folder: &Path) -> Budgets {
        let path = folder.join("budgets.json");
        let saved = disk::read(&path)
            .map(Option::unwrap_or_default)
            .and_then(|text| match text.is_empty() {
                true => Ok((text, Vec::new())),
                false => {
                    let saved: Vec<Given> = serde_json::from_slice(&text)?;
                    Ok((text, saved))
                }
            });
        let (written, saved) = saved.unwrap_or_else(|error| {
            log::warn!(
                "{} is not used: {error}; budgets that an earlier guard set stay until you log out",
                path.display()
            );
            (Vec::new(), Vec::new())
        });
        Budgets {
            given: GivenBudgets::new(saved),
            path,
            written,
            problems: Vec::new(),
        }
    }

    /// What systemd refused.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    fn save(&mut self) {
        let rows: Vec<&Given> = self.given.iter().collect();
        let (text, saved) = match rows.is_empty() {
            true => (Vec::new(), disk::remove(&self.path)),
            false => {
                let text = serde_json::to_vec(&rows).expect("plain data");
                if text == self.written {
                    return;
                }
                let saved = disk::write(&self.path, &text);
                (text, saved)
            }
        };
        match saved {
            Ok(()) => self.written = text,
            Err(error) => log::warn!(
                "{} cannot be written: {error}; if the guard is killed, the budgets of your classes stay until you log out",
                self.path.display()
            ),
        }
    }

    async fn apply(
        &mut self,
        connection: &zbus::Connection,
        wanted: &[UnitSetting],
        steered: Option<&str>,
    ) {
        let done = async {
            self.given.prepare(connection, wanted).await?;
            // Before anything is set: a guard that is killed in between must find what to put back.
            self.save();
            self.given.apply(connection, wanted, steered).await
        }
        .await;
        match done {
            Ok(problems) => self.problems = problems,
            // That systemd does not answer is told by the inspection.
            Err(error) => log::warn!("budgets of classes could not be set: {error}"),
        }
        self.save();
    }
}

impl Guard {
    /// Sets what the settings say, and puts back what they no longer say.
    pub(super) async fn apply_budgets(&mut self) {
        let settings = &self.config.settings;
        let wanted = unit_settings(&settings.classes, &settings.watch.parent_units);
        let steered = self.steering.slice_that_it_moves(&settings.quota);
        self.budgets.apply(&self.connection, &wanted, steered).await;
    }

    /// Puts everything back: what was set would outlive the guard until the user logs out.
    pub(super) async fn put_budgets_back(&mut self) {
        self.budgets.apply(&self.connection, &[], None).await;
    }
}
