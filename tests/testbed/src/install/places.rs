//! Where things go: below one home, after file-hierarchy(7) and the XDG Base Directory Specification.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::FOLDER;

/// Every folder that an installation touches or looks into.
#[derive(Clone, Debug)]
pub struct Places {
    /// The user's home.
    pub home: PathBuf,
    /// Programs that people call.
    pub bin: PathBuf,
    /// The daemon.
    pub lib: PathBuf,
    /// What the three around it are below: `~/.local`, unless another one was asked for.
    pub prefix: PathBuf,
    /// Manual, completions.
    pub share: PathBuf,
    /// `$XDG_DATA_HOME`, where the user manager and the bus look, whatever the prefix is.
    pub data: PathBuf,
    /// Units of what is installed in the home; all systemd versions from 252 on read it.
    pub units: PathBuf,
    /// D-Bus activation files.
    pub activation: PathBuf,
    /// The person's own units, which win over `units`.
    pub own_units: PathBuf,
    /// The guard's settings.
    pub config: PathBuf,
    /// The guard's history.
    pub state: PathBuf,
    /// The guard's routes, gone at logout.
    pub runtime: Option<PathBuf>,
    /// Units of all users.
    pub system_units: Vec<PathBuf>,
}

impl Places {
    /// For the user who runs us.
    pub fn from_environment(prefix: Option<&Path>) -> Result<Places> {
        Places::new(|name| std::env::var_os(name), prefix)
    }

    /// With these variables, and programs below `prefix`.
    pub fn new(
        variable: impl Fn(&str) -> Option<OsString>,
        prefix: Option<&Path>,
    ) -> Result<Places> {
        let absolute = |name: &str| {
            variable(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        let Some(home) = absolute("HOME") else {
            bail!("HOME is not set to an absolute path, so there is nowhere to install to");
        };
        // The manifest has a path per line.
        if home
            .as_os_str()
            .to_string_lossy()
            .contains(['\n', '\u{fffd}'])
        {
            bail!(
                "HOME is {}: such a path cannot be written into units",
                home.display()
            );
        }
        let data = absolute("XDG_DATA_HOME").unwrap_or_else(|| home.join(".local/share"));
        let config = absolute("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
        let state = absolute("XDG_STATE_HOME").unwrap_or_else(|| home.join(".local/state"));
        let share = prefix.map_or_else(|| data.clone(), |prefix| prefix.join("share"));
        let prefix = prefix.map_or_else(|| home.join(".local"), Path::to_owned);
        anyhow::ensure!(
            prefix.is_absolute(),
            "the prefix {} is not absolute",
            prefix.display()
        );
        Ok(Places {
            bin: prefix.join("bin"),
            lib: prefix.join("lib").join(FOLDER),
            share,
            prefix,
            units: data.join("systemd/user"),
            activation: data.join("dbus-1/services"),
            own_units: config.join("systemd/user"),
            config: config.join(FOLDER),
            state: state.join(FOLDER),
            runtime: absolute("XDG_RUNTIME_DIR").map(|dir| dir.join(FOLDER)),
            system_units: [
                "/etc/systemd/user",
                "/usr/local/lib/systemd/user",
                "/usr/lib/systemd/user",
            ]
            .map(PathBuf::from)
            .into(),
            data,
            home,
        })
    }

    /// The list of what was installed.
    pub fn manifest(&self) -> PathBuf {
        self.data.join(FOLDER).join("manifest")
    }

    /// What `systemctl --user enable` makes of our units.
    pub fn enable_links(&self) -> [PathBuf; 3] {
        [
            self.own_units
                .join("timers.target.wants/workload-guard-metrics.timer"),
            self.own_units
                .join("default.target.wants")
                .join(super::UNIT),
            self.own_units.join("workload-router.service"),
        ]
    }

    /// Folders with what belongs to the person, and what it is.
    pub fn user_data(&self) -> Vec<(PathBuf, &'static str)> {
        let mut folders = vec![
            (self.config.clone(), "settings"),
            (self.state.clone(), "history"),
        ];
        folders.extend(self.runtime.clone().map(|folder| (folder, "routes")));
        folders
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_xdg_variables_count_when_they_are_absolute() {
        let env = |name: &str| match name {
            "HOME" => Some("/home/dev".into()),
            "XDG_DATA_HOME" => Some("/data".into()),
            "XDG_CONFIG_HOME" => Some("relative".into()),
            _ => None,
        };
        let places = Places::new(env, None).unwrap();
        assert_eq!(places.units, Path::new("/data/systemd/user"));
        assert_eq!(
            places.config,
            Path::new("/home/dev/.config/linux-workload-guard")
        );
        assert_eq!(places.share, Path::new("/data"));
        assert_eq!(places.bin, Path::new("/home/dev/.local/bin"));
        let other = Places::new(env, Some(Path::new("/home/dev/opt"))).unwrap();
        assert_eq!(other.share, Path::new("/home/dev/opt/share"));
        assert_eq!(other.units, places.units);
    }

    #[test]
    fn without_a_home_there_is_nowhere_to_install_to() {
        assert!(Places::new(|_| None, None).is_err());
    }
}
