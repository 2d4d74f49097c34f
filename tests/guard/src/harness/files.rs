//! Files of a guest: listings before and after.

use std::collections::BTreeMap;
use std::fs;
use std::hash::Hasher;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Writes a file, with its folders.
pub fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Larger files are told apart by their size.
const BIG: u64 = 256 * 1024;

/// Path to kind, mode, owner and content.
pub type Listing = BTreeMap<PathBuf, String>;

/// Everything below these folders, so that two listings can be compared. A folder that is not there is empty.
pub fn listing<P: AsRef<Path>>(roots: &[P]) -> Result<Listing> {
    let mut found = BTreeMap::new();
    let mut folders: Vec<PathBuf> = roots
        .iter()
        .map(|root| root.as_ref().to_owned())
        .filter(|root| root.is_dir())
        .collect();
    while let Some(folder) = folders.pop() {
        for entry in
            fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?
        {
            let path = entry?.path();
            let meta = fs::symlink_metadata(&path)
                .with_context(|| format!("cannot look at {}", path.display()))?;
            let kind = if meta.is_symlink() {
                format!("link to {}", fs::read_link(&path)?.display())
            } else if meta.is_dir() {
                folders.push(path.clone());
                format!(
                    "folder {:o} {}:{}",
                    meta.mode() & 0o7777,
                    meta.uid(),
                    meta.gid()
                )
            } else if meta.is_file() {
                let (mode, uid, gid) = (meta.mode() & 0o7777, meta.uid(), meta.gid());
                // Reading whole libraries would take longer than everything else.
                let content = if meta.len() > BIG { 0 } else { digest(&path)? };
                format!("file {mode:o} {uid}:{gid} {} {content:x}", meta.len())
            } else {
                format!("special {:o}", meta.mode())
            };
            found.insert(path, kind);
        }
    }
    Ok(found)
}

/// Tells contents apart; nobody here tries to forge one.
fn digest(path: &Path) -> Result<u64> {
    let mut hasher = std::hash::DefaultHasher::new();
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    hasher.write(&bytes);
    Ok(hasher.finish())
}

/// What differs between two listings, a line each: `+` new, `-` gone, `~` changed.
pub fn difference(before: &Listing, after: &Listing) -> Vec<String> {
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
        let before = listing(&[folder.path()])?;
        write(&folder.path().join("changes"), "2")?;
        write(&folder.path().join("comes"), "1")?;
        fs::remove_file(folder.path().join("goes"))?;
        let lines = difference(&before, &listing(&[folder.path()])?);
        let marks: Vec<char> = lines
            .iter()
            .filter_map(|line| line.chars().next())
            .collect();
        assert_eq!(marks, ['~', '+', '-'], "{lines:?}");
        Ok(())
    }
}
