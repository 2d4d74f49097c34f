//! Several files that appear together: all are written beside their targets, then renamed over them. What fails on the
//! way leaves everything as it was.

use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::layout::{Content, Item};

/// Files that wait beside their targets. Dropped before [`Staged::commit`], it takes them away again.
#[derive(Debug, Default)]
pub struct Staged {
    targets: Vec<PathBuf>,
    folders: Vec<PathBuf>,
    committed: bool,
}

impl Staged {
    /// Writes an item beside its target.
    pub fn add(&mut self, item: &Item) -> Result<()> {
        let target = &item.target;
        self.write(item)
            .with_context(|| format!("cannot write {}; nothing was changed", target.display()))
    }

    fn write(&mut self, item: &Item) -> io::Result<()> {
        let folder = item.target.parent().ok_or(ErrorKind::InvalidInput)?;
        self.make_folder(folder)?;
        let waiting = beside(&item.target, "new");
        // Left by an attempt that was killed.
        remove_if_there(&waiting)?;
        self.targets.push(item.target.clone());
        match &item.content {
            Content::Link(to) => symlink(to, &waiting),
            Content::File { bytes, mode } => {
                let mut file = fs::OpenOptions::new()
                    .write(true)
                    .create_new(true)
                    .mode(0o600)
                    .open(&waiting)?;
                file.write_all(bytes)?;
                file.set_permissions(fs::Permissions::from_mode(*mode))?;
                file.sync_all()
            }
        }
    }

    /// Makes a folder and those above it.
    pub fn folder(&mut self, folder: &Path) -> Result<()> {
        self.make_folder(folder)
            .with_context(|| format!("cannot create {}; nothing was changed", folder.display()))
    }

    fn make_folder(&mut self, folder: &Path) -> io::Result<()> {
        if folder.is_dir() {
            return Ok(());
        }
        if let Some(parent) = folder.parent() {
            self.make_folder(parent)?;
        }
        fs::create_dir(folder)?;
        self.folders.push(folder.to_owned());
        Ok(())
    }

    /// Folders that had to be made, the outer before the inner.
    pub fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// Puts every file in its place; when one cannot be, the old ones are put back.
    pub fn commit(mut self) -> Result<()> {
        for (done, target) in self.targets.iter().enumerate() {
            if let Err(error) = replace(target) {
                for target in self.targets[..=done].iter().rev() {
                    restore(target);
                }
                return Err(error).with_context(|| {
                    format!("cannot replace {}; nothing was changed", target.display())
                });
            }
        }
        self.committed = true;
        for target in &self.targets {
            // Left beside its target this would only be litter.
            let _ = fs::remove_file(beside(target, "old"));
        }
        Ok(())
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if self.committed {
            return;
        }
        for target in &self.targets {
            let _ = fs::remove_file(beside(target, "new"));
        }
        for folder in self.folders.iter().rev() {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Renames the new file over its target, which is never missing meanwhile.
fn replace(target: &Path) -> io::Result<()> {
    let old = beside(target, "old");
    remove_if_there(&old)?;
    match fs::hard_link(target, &old) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::rename(beside(target, "new"), target)
}

/// Undoes [`replace`], also when it stopped half way.
fn restore(target: &Path) {
    let renamed = fs::symlink_metadata(beside(target, "new")).is_err();
    if fs::rename(beside(target, "old"), target).is_err() && renamed {
        // There was none before.
        let _ = fs::remove_file(target);
    }
    // A rename onto another name of the same file does nothing (rename(2)).
    let _ = fs::remove_file(beside(target, "old"));
}

fn beside(target: &Path, what: &str) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(".workload-guard-");
    name.push(what);
    target.with_file_name(name)
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn files_and_links_appear_together_and_nothing_else_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (a, link) = (dir.path().join("new/a"), dir.path().join("new/link"));
        let mut staged = Staged::default();
        staged
            .add(&Item::file(a.clone(), b"one".into(), 0o755))
            .unwrap();
        staged
            .add(&Item {
                target: link.clone(),
                content: Content::Link("a"),
            })
            .unwrap();
        assert!(!a.exists() && staged.folders() == [dir.path().join("new")]);
        staged.commit().unwrap();
        assert_eq!(names(&dir.path().join("new")), ["a", "link"]);
        assert_eq!(fs::read(&link).unwrap(), b"one");
        assert_eq!(
            fs::metadata(&a).unwrap().permissions().mode() & 0o777,
            0o755
        );
    }

    #[test]
    fn a_copy_that_fails_leaves_no_trace() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("file"), "in the way").unwrap();
        let mut staged = Staged::default();
        staged
            .add(&Item::file(dir.path().join("sub/a"), b"one".into(), 0o644))
            .unwrap();
        staged
            .add(&Item::file(dir.path().join("file/b"), b"two".into(), 0o644))
            .unwrap_err();
        drop(staged);
        assert_eq!(names(dir.path()), ["file"]);
    }

    #[test]
    fn a_replacement_that_fails_puts_the_old_files_back() {
        let dir = tempfile::tempdir().unwrap();
        let [old, new, folder] = ["old", "new", "taken"].map(|name| dir.path().join(name));
        fs::write(&old, "before").unwrap();
        // A folder cannot be replaced by a file.
        fs::create_dir(&folder).unwrap();
        let mut staged = Staged::default();
        for target in [&old, &new, &folder] {
            staged
                .add(&Item::file(target.clone(), b"after".into(), 0o644))
                .unwrap();
        }
        staged.commit().unwrap_err();
        assert_eq!(names(dir.path()), ["old", "taken"]);
        assert_eq!(fs::read_to_string(&old).unwrap(), "before");
    }
}
