//! Where `/sys` and `/proc` are: the machine's own, or a recorded tree.

use std::io;
use std::path::{Path, PathBuf};

/// A folder that holds `sys`, `proc` and whatever else is read and written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    folder: PathBuf,
}

/// A file that could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {error}", path.display())]
pub struct FileError {
    /// The whole path.
    pub path: PathBuf,
    /// What the kernel answered.
    #[source]
    pub error: io::Error,
}

impl Root {
    /// `/` for the running machine, else a recorded tree.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Root {
            folder: folder.into(),
        }
    }

    /// The path of a file, named without a leading slash: `proc/swaps`.
    pub fn path(&self, below: &str) -> PathBuf {
        debug_assert!(!below.starts_with('/'), "{below} would leave the root");
        self.folder.join(Path::new(below))
    }

    /// A file's text, or `None` where there is no such file.
    ///
    /// # Errors
    ///
    /// The file is there and cannot be read, or is no UTF-8.
    pub fn read(&self, below: &str) -> Result<Option<String>, FileError> {
        let path = self.path(below);
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(FileError { path, error }),
        }
    }

    /// The names in a folder, sorted; none where there is no such folder.
    ///
    /// # Errors
    ///
    /// The folder is there and cannot be read.
    pub fn names(&self, below: &str) -> Result<Vec<String>, FileError> {
        let path = self.path(below);
        let wrap = |error| FileError {
            path: path.clone(),
            error,
        };
        let entries = match std::fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(wrap(error)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let name = entry.map_err(wrap)?.file_name();
            // The kernel's names are ASCII; another is none of ours.
            names.extend(name.into_string().ok());
        }
        names.sort();
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_there_is_no_error() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("proc")).expect("a folder");
        std::fs::write(folder.path().join("proc/swaps"), "none\n").expect("a file");
        let root = Root::new(folder.path());
        assert_eq!(
            root.read("proc/swaps").expect("it reads").as_deref(),
            Some("none\n")
        );
        assert_eq!(root.read("sys/none").expect("it reads"), None);
        let error = root.read("proc").expect_err("a folder is no file");
        assert!(error.to_string().contains("proc: "), "{error}");
    }
}
