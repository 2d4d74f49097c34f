//! Where the guard keeps its files (XDG Base Directory Specification).

use std::path::{Path, PathBuf};

/// Folder name of this project below each base folder.
const FOLDER: &str = "linux-workload-guard";

/// Every place that the daemon reads or writes.
#[derive(Clone, Debug)]
pub struct Paths {
    /// Folders with `guard.toml`, `guard.toml.d/` and `rules.d/`; a later one wins.
    pub config: Vec<PathBuf>,
    /// Folder of the state that a reboot or logout may take away.
    pub runtime: PathBuf,
}

impl Paths {
    /// From the environment that systemd gives a user service.
    pub fn from_environment() -> anyhow::Result<Paths> {
        let folder = |variable: &str| {
            std::env::var_os(variable).filter(|value| Path::new(value).is_absolute())
        };
        let runtime = folder("XDG_RUNTIME_DIR").ok_or_else(|| {
            anyhow::anyhow!(
                "XDG_RUNTIME_DIR is not set, so this is not a user session; \
                 start the guard with `systemctl --user start workload-guard`"
            )
        })?;
        let mut config = vec![Path::new("/etc").join(FOLDER)];
        let home = folder("XDG_CONFIG_HOME")
            .map(PathBuf::from)
            .or_else(|| folder("HOME").map(|home| Path::new(&home).join(".config")));
        config.extend(home.map(|home| home.join(FOLDER)));
        Ok(Paths {
            config,
            runtime: Path::new(&runtime).join(FOLDER),
        })
    }
}
