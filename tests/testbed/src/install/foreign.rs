//! What of others stands in the way.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::files::{exists, list};
use super::manifest::Manifest;

/// Those of `targets` that neither an installation of ours wrote nor anybody agreed to rename.
pub fn check(targets: &[PathBuf], ours: &Manifest, agreed: &[PathBuf]) -> Result<()> {
    let taken: Vec<PathBuf> = targets
        .iter()
        .filter(|path| exists(path) && !ours.files.contains(path) && !agreed.contains(path))
        .cloned()
        .collect();
    if !taken.is_empty() {
        bail!(
            "there are files that no installation of ours wrote; nothing was changed. Move them away first:\n{}",
            list(&taken)
        );
    }
    Ok(())
}

/// Whether `path` is a link to a unit of ours, as `systemctl enable` makes them.
pub fn is_our_link(path: &Path) -> bool {
    fs::read_link(path).is_ok_and(|target| {
        let name = target
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        name.is_some_and(|name| name.starts_with("workload-guard"))
    })
}
