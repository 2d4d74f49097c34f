//! What of others stands in the way.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::layout;
use super::manifest::Manifest;
use super::places::Places;

/// The unit of the Python original; ours has it as an alias.
const ORIGINAL_UNIT: &str = "workload-router.service";
/// Its program.
const ORIGINAL_PROGRAM: &str = "workload-router.py";

/// Refuses, naming each file, where the Python original is installed or a file of someone else has the name of one
/// of ours. `ours` is what an earlier installation wrote.
pub fn check(places: &Places, ours: &Manifest) -> Result<()> {
    let original = original(places);
    if !original.is_empty() {
        bail!(
            "the Python original is installed, and two routers would move the same processes; nothing was changed.\n\
             Uninstall it first (its uninstall.sh). Found:\n{}",
            list(&original)
        );
    }
    let taken: Vec<PathBuf> = layout::targets(places)
        .into_iter()
        .filter(|path| fs::symlink_metadata(path).is_ok() && !ours.files.contains(path))
        .collect();
    if !taken.is_empty() {
        bail!(
            "there are files that no installation of ours wrote; nothing was changed. Move them away first:\n{}",
            list(&taken)
        );
    }
    Ok(())
}

/// Files of the Python original.
fn original(places: &Places) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in [&places.own_units, &places.units]
        .into_iter()
        .chain(&places.system_units)
    {
        let unit = folder.join(ORIGINAL_UNIT);
        if fs::symlink_metadata(&unit).is_ok() && !is_our_link(&unit) {
            found.push(unit);
        }
    }
    for folder in [
        &places.bin,
        &places.lib,
        &places.data.join("linux-workload-guard"),
    ] {
        let program = folder.join(ORIGINAL_PROGRAM);
        if fs::symlink_metadata(&program).is_ok() {
            found.push(program);
        }
    }
    found
}

/// Whether `path` is a link to our unit, as `systemctl enable` makes them.
pub fn is_our_link(path: &Path) -> bool {
    fs::read_link(path).is_ok_and(|target| target.file_name() == Some(super::UNIT.as_ref()))
}

/// The person's own units with names of ours: systemd reads them instead.
pub fn overriding(places: &Places) -> Vec<PathBuf> {
    let units = layout::targets(places)
        .into_iter()
        .filter(|path| path.parent() == Some(&places.units));
    let own = units.filter_map(|unit| unit.file_name().map(|name| places.own_units.join(name)));
    own.filter(|path| fs::symlink_metadata(path).is_ok())
        .collect()
}

fn list(paths: &[PathBuf]) -> String {
    paths
        .iter()
        .map(|path| format!("  {}", path.display()))
        .collect::<Vec<_>>()
        .join("\n")
}
