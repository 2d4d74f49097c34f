//! Where the guard keeps its files (XDG Base Directory Specification).

use std::path::{Path, PathBuf};

use guard_files::FOLDER;

/// Every place that the daemon reads or writes.
#[derive(Clone, Debug)]
pub struct Paths {
    /// Folders with `guard.toml`, `guard.toml.d/` and `rules.d/`; a later one wins.
    pub config: Vec<PathBuf>,
    /// Folder of the state that a reboot or logout may take away.
    pub runtime: PathBuf,
    /// Folder of the state that is kept; `None` when the user has no home.
    pub state: Option<PathBuf>,
    /// `$XDG_RUNTIME_DIR` itself, where systemd keeps what is set until logout.
    pub user_runtime: PathBuf,
    /// `$XDG_CONFIG_HOME`, where systemd keeps what is set for good.
    pub user_config: PathBuf,
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
        let config = folder("XDG_CONFIG_HOME").map(PathBuf::from);
        let home = || Path::new(&std::env::var_os("HOME").unwrap_or_default()).join(".config");
        Ok(Paths {
            user_config: config.unwrap_or_else(home),
            user_runtime: PathBuf::from(&runtime),
            config: guard_files::folders(|name| std::env::var_os(name)),
            runtime: Path::new(&runtime).join(FOLDER),
            state: folder("XDG_STATE_HOME")
                .map(PathBuf::from)
                .or_else(|| Some(Path::new(&folder("HOME")?).join(".local/state")))
                .map(|state| state.join(FOLDER)),
        })
    }
}
