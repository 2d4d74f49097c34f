//! The list of what an installation wrote: uninstall removes this and nothing else.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use super::places::Places;

/// Paths that are ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// Files and links.
    pub files: Vec<PathBuf>,
    /// Folders that an installation made, the outer before the inner.
    pub folders: Vec<PathBuf>,
}

impl Manifest {
    /// The one of the present installation; none when there is none.
    pub fn read(places: &Places) -> Result<Option<Manifest>> {
        let path = places.manifest();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", path.display()));
            }
        };
        let manifest = Manifest::parse(&text, places);
        manifest
            .map(Some)
            .with_context(|| format!("{} is damaged", path.display()))
    }

    fn parse(text: &str, places: &Places) -> Result<Manifest> {
        let mut manifest = Manifest::default();
        for (at, line) in text.lines().enumerate() {
            let list = match line.split_once(' ') {
                Some(("file", _)) => &mut manifest.files,
                Some(("folder", _)) => &mut manifest.folders,
                Some(("#", _)) => continue,
                _ => bail!("line {}: {line:?} is neither a file nor a folder", at + 1),
            };
            let path = PathBuf::from(line.split_once(' ').map_or("", |(_, path)| path));
            // What is listed gets removed, so a damaged list must not reach beyond the home.
            if !places.contains(&path) {
                bail!(
                    "line {}: {} is outside {}",
                    at + 1,
                    path.display(),
                    places.home.display()
                );
            }
            list.push(path);
        }
        Ok(manifest)
    }

    /// Adds folders that were made now. Those for the person's own data are not ours to remove.
    pub fn add_folders(&mut self, made: &[PathBuf], places: &Places) {
        for folder in made {
            let own = places.config.starts_with(folder);
            if !own && !self.folders.contains(folder) {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Places {
        Places::new(|name| (name == "HOME").then(|| "/home/dev".into())).unwrap()
    }

    #[test]
    fn a_manifest_survives_the_round_trip() {
        let manifest = Manifest {
            files: vec!["/home/dev/.local/bin/a b".into()],
            folders: vec!["/home/dev/.local".into(), "/home/dev/.local/bin".into()],
        };
        assert_eq!(
            Manifest::parse(&manifest.to_text(), &places()).unwrap(),
            manifest
        );
    }

    #[test]
    fn a_damaged_manifest_cannot_remove_foreign_files() {
        for line in [
            "file /etc/passwd",
            "folder /home/dev",
            "file /home/dev/../root/x",
            "frob /home/dev/x",
            "file",
        ] {
            assert!(Manifest::parse(line, &places()).is_err(), "{line}");
        }
    }
}
