//! The user's files: settings before an install, listings before and after.

use std::path::{Path, PathBuf};

use anyhow::Result;

pub use super::files::{Listing, difference, write};
use super::session::{HOME, RUNTIME_DIR};

/// The user's folder of settings.
pub fn config_dir() -> PathBuf {
    Path::new(HOME).join(".config/linux-workload-guard")
}

/// The user's settings file.
pub fn guard_toml() -> PathBuf {
    config_dir().join("guard.toml")
}

/// The user's own units and drop-ins.
pub fn unit_dir() -> PathBuf {
    Path::new(HOME).join(".config/systemd/user")
}

/// Where routes live.
pub fn state_dir() -> PathBuf {
    Path::new(RUNTIME_DIR).join("linux-workload-guard")
}

/// Where state lives that outlasts the session.
pub fn kept_state_dir() -> PathBuf {
    Path::new(HOME).join(".local/state/linux-workload-guard")
}

/// Everything below a folder.
pub fn listing(root: &Path) -> Result<Listing> {
    super::files::listing(&[root])
}
