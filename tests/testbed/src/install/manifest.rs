//! The list of what an installation wrote: uninstall removes this and nothing else.

use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, bail};

/// Paths that are ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// Files and links.
    pub files: Vec<PathBuf>,
    /// Folders that an installation made, the outer before the inner.
    pub folders: Vec<PathBuf>,
}

impl Manifest {
    /// The one at `path`, whose files lie below `roots`; none when nothing is installed.
    pub fn read(path: &Path, roots: &[PathBuf]) -> Result<Option<Manifest>> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", path.display()));
            }
        };
        let manifest = Manifest::parse(&text, roots);
        manifest
            .map(Some)
            .with_context(|| format!("{} is damaged", path.display()))
    }

    fn parse(text: &str, roots: &[PathBuf]) -> Result<Manifest> {
        let mut manifest = Manifest::default();
        for (at, line) in text.lines().enumerate() {
            let list = match line.split_once(' ') {
                Some(("file", _)) => &mut manifest.files,
                Some(("folder", _)) => &mut manifest.folders,
                Some(("#", _)) => continue,
                _ => bail!("line {}: {line:?} is neither a file nor a folder", at + 1),
            };
            let path = PathBuf::from(line.split_once(' ').map_or("", |(_, path)| path));
            // What is listed gets removed, so a damaged list must not reach beyond where we install to.
            if !is_below(&path, roots) {
                bail!(
                    "line {}: {} is nowhere that we install to",
                    at + 1,
                    path.display()
                );
            }
            list.push(path);
        }
        Ok(manifest)
    }

    /// Adds folders that were made now below `roots`, but for those above `kept`: a person's own data is there.
    pub fn add_folders(&mut self, made: &[PathBuf], roots: &[PathBuf], kept: &Path) {
        for folder in made.iter().filter(|folder| is_below(folder, roots)) {
            if !kept.starts_with(folder) && !self.folders.contains(folder) {
                self.folders.push(folder.clone());
            }
        }
    }

    /// As it is written.
    pub fn to_text(&self) -> String {
        let mut text = format!("# workload-guard {}\n", env!("CARGO_PKG_VERSION"));
        for (kind, paths) in [("file", &self.files), ("folder", &self.folders)] {
            for path in paths {
                text.push_str(&format!("{kind} {}\n", path.display()));
            }
        }
        text
    }
}

/// Whether `path` is below one of `roots`, written without detours.
fn is_below(path: &Path, roots: &[PathBuf]) -> bool {
    path.components().all(|part| part != Component::ParentDir)
        && roots
            .iter()
            .any(|root| path != root && path.starts_with(root))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roots() -> [PathBuf; 2] {
        ["/home/dev", "/data"].map(PathBuf::from)
    }

    #[test]
    fn a_manifest_survives_the_round_trip() {
        let manifest = Manifest {
            files: vec!["/home/dev/.local/bin/a b".into(), "/data/x".into()],
            folders: vec!["/home/dev/.local".into(), "/home/dev/.local/bin".into()],
        };
        assert_eq!(
            Manifest::parse(&manifest.to_text(), &roots()).unwrap(),
            manifest
        );
    }

    #[test]
    fn a_damaged_manifest_cannot_remove_foreign_files() {
        for line in [
            "file /etc/passwd",
            "folder /home/dev",
            "file /home/devil/x",
            "file /home/dev/../root/x",
            "frob /home/dev/x",
            "file",
        ] {
            assert!(Manifest::parse(line, &roots()).is_err(), "{line}");
        }
    }
}
