//! The settings and rule files that the guard reads, in its order. The daemon reads them, and the
//! command line checks them: one piece of code, so that a check speaks of what the daemon would do.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use guard_policy::settings::Layer;

/// Folder name of this project below each base folder (XDG Base Directory Specification).
pub const FOLDER: &str = "linux-workload-guard";

/// A file or folder that is there and cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {error}", path.display())]
pub struct Unreadable {
    /// Which.
    pub path: PathBuf,
    /// The system's words.
    pub error: io::Error,
}

/// Texts of settings and of rules, the lowest first.
#[derive(Debug, Default)]
pub struct Texts {
    /// `guard.toml` and `guard.toml.d/*.toml`.
    pub settings: Vec<Layer>,
    /// `rules.d/*.toml`, without the shipped ones.
    pub rules: Vec<Layer>,
}

/// The folders that the guard looks into: the machine's, then the user's (XDG Base Directory Specification).
pub fn folders(variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let absolute = |name| {
        variable(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let home =
        absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")));
    let mut folders = vec![Path::new("/etc").join(FOLDER)];
    folders.extend(home.map(|home| home.join(FOLDER)));
    folders
}

/// What lies in `folders`.
pub fn installed(folders: &[PathBuf]) -> Result<Texts, Unreadable> {
    let mut texts = Texts::default();
    for folder in folders {
        match read(&folder.join("guard.toml")) {
            Ok(layer) => texts.settings.push(layer),
            Err(absent) if absent.error.kind() == io::ErrorKind::NotFound => {}
            Err(unreadable) => return Err(unreadable),
        }
        for path in toml_files(&folder.join("guard.toml.d"))? {
            texts.settings.push(read(&path)?);
        }
        for path in toml_files(&folder.join("rules.d"))? {
            texts.rules.push(read(&path)?);
        }
    }
    Ok(texts)
}

/// These files, each for itself: a file in a folder `rules.d` holds rules, any other one settings.
pub fn named(paths: &[PathBuf]) -> Result<Texts, Unreadable> {
    let mut texts = Texts::default();
    for path in paths {
        let folder = std::path::absolute(path)
            .ok()
            .and_then(|path| Some(path.parent()?.file_name()?.to_owned()));
        let list = if folder.is_some_and(|name| name == "rules.d") {
            &mut texts.rules
        } else {
            &mut texts.settings
        };
        list.push(read(path)?);
    }
    Ok(texts)
}

/// The largest file that is read, in bytes.
const MAX_SIZE: u64 = 1 << 20;

fn read(path: &Path) -> Result<Layer, Unreadable> {
    // A FIFO would hold the daemon's loop up for ever, and /dev/zero has no end.
    let text = std::fs::metadata(path)
        .and_then(|metadata| match metadata.len() {
            _ if !metadata.is_file() => Err(io::Error::other("it is not a regular file")),
            size if size > MAX_SIZE => Err(io::Error::other("it is larger than 1 MiB")),
            _ => std::fs::read_to_string(path),
        })
        .map_err(|error| failed(path, error))?;
    Ok(Layer {
        origin: path.display().to_string(),
        text,
    })
}

fn toml_files(folder: &Path) -> Result<Vec<PathBuf>, Unreadable> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(folder, error)),
    };
    let paths: io::Result<Vec<PathBuf>> = entries.map(|entry| Ok(entry?.path())).collect();
    let mut paths = paths.map_err(|error| failed(folder, error))?;
    paths.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "toml")
    });
    paths.sort();
    Ok(paths)
}

fn failed(path: &Path, error: io::Error) -> Unreadable {
    Unreadable {
        path: path.to_owned(),
        error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_folder_comes_after_the_machines() {
        let env = |name: &str| (name == "HOME").then(|| OsString::from("/home/dev"));
        let expected = [
            "/etc/linux-workload-guard",
            "/home/dev/.config/linux-workload-guard",
        ]
        .map(PathBuf::from);
        assert_eq!(folders(env), expected);
    }

    #[test]
    fn what_would_hold_the_reader_up_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("guard.toml");
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        let error = installed(&[dir.path().to_owned()]).unwrap_err().to_string();
        assert!(
            error.ends_with("guard.toml: it is not a regular file"),
            "{error}"
        );
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, vec![b'#'; MAX_SIZE as usize + 1]).unwrap();
        let error = installed(&[dir.path().to_owned()]).unwrap_err().to_string();
        assert!(error.ends_with("it is larger than 1 MiB"), "{error}");
    }

    #[test]
    fn files_are_told_apart_by_their_folder() {
        let dir = tempfile::tempdir().unwrap();
        let rules = dir.path().join("rules.d");
        std::fs::create_dir(&rules).unwrap();
        let (rule, setting) = (rules.join("a.toml"), dir.path().join("guard.toml"));
        std::fs::write(&rule, "").unwrap();
        std::fs::write(&setting, "").unwrap();
        std::fs::write(rules.join("README"), "").unwrap();
        let texts = named(&[rule, setting]).unwrap();
        assert_eq!((texts.settings.len(), texts.rules.len()), (1, 1));
        let texts = installed(&[dir.path().to_owned()]).unwrap();
        assert_eq!((texts.settings.len(), texts.rules.len()), (1, 1));
        assert!(
            named(&[dir.path().join("absent.toml")])
                .unwrap_err()
                .to_string()
                .contains("absent.toml")
        );
    }
}
