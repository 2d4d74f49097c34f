//! The user's files: settings before an install, listings before and after.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

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

/// Writes a file, with its folders.
pub fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Everything below a folder: path to kind, mode and content, so that two listings can be compared.
pub fn listing(root: &Path) -> Result<BTreeMap<PathBuf, String>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in
            fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?
        {
            let path = entry?.path();
            let meta = fs::symlink_metadata(&path)?;
            let kind = if meta.is_symlink() {
                format!("link to {}", fs::read_link(&path)?.display())
            } else if meta.is_dir() {
                folders.push(path.clone());
                format!("folder {:o}", meta.mode() & 0o7777)
            } else if meta.is_file() {
                format!("file {:o} {:x?}", meta.mode() & 0o7777, fs::read(&path)?)
            } else {
                format!("special {:o}", meta.mode())
            };
            found.insert(path, kind);
        }
    }
    Ok(found)
}

/// What differs between two listings, a line each: `+` new, `-` gone, `~` changed.
pub fn difference(
    before: &BTreeMap<PathBuf, String>,
    after: &BTreeMap<PathBuf, String>,
) -> Vec<String> {
    let mut lines = Vec::new();
    for (path, kind) in after {
        match before.get(path) {
            None => lines.push(format!("+ {}", path.display())),
            Some(old) if old != kind => lines.push(format!("~ {}", path.display())),
            Some(_) => {}
        }
    }
    for path in before.keys().filter(|path| !after.contains_key(*path)) {
        lines.push(format!("- {}", path.display()));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_sees_new_changed_and_gone() -> Result<()> {
        let folder = tempfile::tempdir()?;
        write(&folder.path().join("stays/same"), "1")?;
        write(&folder.path().join("changes"), "1")?;
        write(&folder.path().join("goes"), "1")?;
        let before = listing(folder.path())?;
        write(&folder.path().join("changes"), "2")?;
        write(&folder.path().join("comes"), "1")?;
        fs::remove_file(folder.path().join("goes"))?;
        let lines = difference(&before, &listing(folder.path())?);
        let marks: Vec<char> = lines
            .iter()
            .filter_map(|line| line.chars().next())
            .collect();
        assert_eq!(marks, ['~', '+', '-'], "{lines:?}");
        Ok(())
    }
}
