//! `Watch` and `Unwatch`: which slices are watched, as settings of the user's own.
//!
//! The daemon writes them, and not its clients: a call from busctl, an app or the command line is then
//! judged by the same rules and against the variables that the service has, which a client cannot see; what
//! is refused leaves no file behind; and what was answered is in force.

use std::path::PathBuf;

use guard_policy::settings::watch::{Change, DROP_IN, change};
use workload_guard_dbus::GuardError;

use super::Guard;
use crate::config::{Config, sources};
use crate::disk;

impl Guard {
    /// Changes what is watched; answers all of it.
    pub(super) fn watch(&mut self, units: &[String], add: bool) -> Result<Vec<String>, GuardError> {
        let path = self.watch_file()?;
        // The rules, too: what cannot be read again afterwards is not written.
        Config::load(&self.paths.config).map_err(GuardError::InvalidSettings)?;
        let sources = sources(&self.paths.config).map_err(GuardError::InvalidSettings)?;
        let (more, fewer): (&[String], &[String]) = if add { (units, &[]) } else { (&[], units) };
        let change = change(&sources, &path.display().to_string(), more, fewer)
            .map_err(GuardError::InvalidSettings)?;
        let done = match &change {
            Change::None => Ok(()),
            Change::Write(text) => disk::write(&path, text.as_bytes()),
            Change::Remove => disk::remove(&path),
        };
        done.map_err(|error| {
            GuardError::InvalidSettings(format!("{} cannot be changed: {error}", path.display()))
        })?;
        if change != Change::None {
            log::info!(
                "{} {}",
                path.display(),
                match change {
                    Change::Remove => "removed",
                    _ => "written",
                }
            );
        }
        self.reload()?;
        Ok(self.config.settings.watch.parent_units.clone())
    }

    /// The drop-in in the last folder that is read, which is the user's.
    fn watch_file(&self) -> Result<PathBuf, GuardError> {
        let folder = self.paths.config.last().ok_or_else(|| {
            GuardError::InvalidSettings(
                "there is no folder for settings: neither XDG_CONFIG_HOME nor HOME is set".into(),
            )
        })?;
        Ok(folder.join("guard.toml.d").join(DROP_IN))
    }
}
