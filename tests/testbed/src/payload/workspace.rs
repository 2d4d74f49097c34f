//! Cargo, and where it keeps things.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::process;

/// Where cargo keeps things.
#[derive(Debug, Deserialize)]
pub struct Workspace {
    /// Folder of the workspace's Cargo.toml.
    pub workspace_root: PathBuf,
    /// Folder of the build results, wherever `CARGO_TARGET_DIR` or a setting puts it.
    pub target_directory: PathBuf,
}

impl Workspace {
    /// Asks cargo about the workspace that we are in.
    pub fn locate() -> Result<Self> {
        let text =
            process::output_of(cargo().args(["metadata", "--format-version=1", "--no-deps"]))?;
        serde_json::from_str(&text).context("cannot read the output of cargo metadata")
    }
}

/// The cargo that runs us, or else the one on the PATH.
pub fn cargo() -> Command {
    Command::new(program())
}

/// As [`cargo`], for [`process::stream`].
pub fn tied_cargo() -> Command {
    process::tied(program())
}

fn program() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// The platform that this machine's cargo builds for: `x86_64-unknown-linux-gnu`.
pub fn platform() -> Result<String> {
    let text = process::output_of(cargo().arg("-vV"))?;
    platform_of(&text).context("`cargo -vV` names no host platform")
}

fn platform_of(version: &str) -> Option<String> {
    version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_platform_is_cargos_host() {
        let text =
            "cargo 1.95.0 (x)\nrelease: 1.95.0\nhost: x86_64-unknown-linux-gnu\nos: Debian\n";
        assert_eq!(
            platform_of(text).as_deref(),
            Some("x86_64-unknown-linux-gnu")
        );
        assert_eq!(platform_of("cargo 1.95.0\n"), None);
    }
}
