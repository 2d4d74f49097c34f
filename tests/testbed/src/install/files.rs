//! Changes of single files, told as they are made.

use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::layout::Item;
use super::staged::Staged;

/// What the files of an older program are called from then on.
const SUPERSEDED: &str = ".superseded";

/// Removes a file or link that may be gone already.
pub fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Ok(()) => println!("removed {}", path.display()),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => {
            return Err(error).with_context(|| format!("cannot remove {}", path.display()));
        }
    }
    Ok(())
}

/// Removes a folder with all that is in it, which may be gone already.
pub fn remove_all(folder: &Path, what: &str) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Ok(()) => println!("removed {} ({what})", folder.display()),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => {
            return Err(error).with_context(|| format!("cannot remove {}", folder.display()));
        }
    }
    Ok(())
}

/// Writes a file, with its folders.
pub fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
    }
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Whether there is anything at `path`, a broken link included.
pub fn exists(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// Writes items below another root.
pub fn stage_below(root: &Path, items: Vec<Item>) -> Result<()> {
    let mut staged = Staged::default();
    for item in &items {
        staged.add(&Item {
            target: below(root, &item.target),
            content: item.content.clone(),
        })?;
    }
    staged.commit()
}

/// `path` as it is below `root`.
pub fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// Files that were renamed out of the way. Dropped before [`Superseded::keep`], they get their names back.
#[derive(Debug, Default)]
pub struct Superseded {
    renamed: Vec<(PathBuf, PathBuf, Option<u32>)>,
}

impl Superseded {
    /// Renames one. A program is one no longer, since some run whatever is in a folder.
    pub fn add(&mut self, path: &Path) -> Result<()> {
        let to = free_name(path)?;
        let mode = fs::symlink_metadata(path)
            .ok()
            .filter(|meta| meta.is_file())
            .map(|meta| meta.permissions().mode());
        fs::rename(path, &to)
            .with_context(|| format!("cannot rename {} to {}", path.display(), to.display()))?;
        self.renamed.push((path.to_owned(), to.clone(), mode));
        if let Some(mode) = mode {
            fs::set_permissions(&to, fs::Permissions::from_mode(mode & !0o111))
                .with_context(|| format!("cannot change {}", to.display()))?;
        }
        Ok(())
    }

    /// They stay as they are now.
    pub fn keep(mut self) {
        for (path, to, _) in std::mem::take(&mut self.renamed) {
            println!("renamed {} to {}", path.display(), to.display());
        }
    }
}

impl Drop for Superseded {
    fn drop(&mut self) {
        for (path, to, mode) in self.renamed.iter().rev() {
            if fs::rename(to, path).is_ok()
                && let Some(mode) = mode
            {
                let _ = fs::set_permissions(path, fs::Permissions::from_mode(*mode));
            }
        }
    }
}

fn free_name(path: &Path) -> Result<PathBuf> {
    for number in 1..100 {
        let mut name = OsString::from(path);
        name.push(SUPERSEDED);
        if number > 1 {
            name.push(format!(".{number}"));
        }
        let name = PathBuf::from(name);
        if !exists(&name) {
            return Ok(name);
        }
    }
    bail!("there are 99 superseded files beside {}", path.display())
}

/// Paths for a message, one a line.
pub fn list(paths: &[PathBuf]) -> String {
    paths
        .iter()
        .map(|path| format!("  {}", path.display()))
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn superseded_files_come_back_unless_they_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hook");
        let run = |keep: bool| {
            let mut superseded = Superseded::default();
            superseded.add(&path).unwrap();
            assert!(!exists(&path));
            if keep {
                superseded.keep();
            }
        };
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        run(false);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o755);
        run(true);
        let old = dir.path().join("hook.superseded");
        assert_eq!(mode(&old), 0o644);
        fs::write(&path, "newer").unwrap();
        run(true);
        assert_eq!(fs::read_to_string(&old).unwrap(), "old");
        assert!(exists(&dir.path().join("hook.superseded.2")));
    }
}
