//! Finds a command and becomes it.

use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::unistd::{AccessFlags, access};

use crate::error::CliError;

/// What is searched when `$PATH` is unset, as execvp(3) does.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// The file that `name` stands for, searched as a shell would. `path` is the value of `$PATH`.
///
/// This is asked before the process is moved anywhere: a mistyped command changes nothing.
pub fn find(name: &OsStr, path: Option<&OsStr>) -> Result<PathBuf, CliError> {
    if name.is_empty() {
        return Err(CliError::NotFound("the command is empty".into()));
    }
    if name.as_bytes().contains(&b'/') {
        return match Usable::of(Path::new(name)) {
            Usable::Yes => Ok(PathBuf::from(name)),
            Usable::No(why) => Err(CliError::NotExecutable(format!(
                "{}: {why}",
                name.display()
            ))),
            Usable::Absent => Err(CliError::NotFound(format!(
                "{}: no such file",
                name.display()
            ))),
        };
    }
    let mut refused = None;
    for dir in std::env::split_paths(path.unwrap_or(DEFAULT_PATH.as_ref())) {
        // An empty element of PATH is the working directory.
        let file = if dir.as_os_str().is_empty() {
            Path::new(".").join(name)
        } else {
            dir.join(name)
        };
        match Usable::of(&file) {
            Usable::Yes => return Ok(file),
            Usable::No(why) => {
                refused.get_or_insert_with(|| format!("{}: {why}", file.display()));
            }
            Usable::Absent => {}
        }
    }
    Err(match refused {
        Some(text) => CliError::NotExecutable(text),
        None => CliError::NotFound(format!("{}: command not found", name.display())),
    })
}

enum Usable {
    Yes,
    No(&'static str),
    Absent,
}

impl Usable {
    fn of(file: &Path) -> Usable {
        match std::fs::metadata(file) {
            Ok(meta) if meta.is_dir() => Usable::No("is a directory"),
            Ok(_) if access(file, AccessFlags::X_OK).is_err() => Usable::No("permission denied"),
            Ok(_) => Usable::Yes,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                Usable::No("permission denied")
            }
            Err(_) => Usable::Absent,
        }
    }
}

/// Becomes the program at `file`, called as `argv`; comes back only when that fails.
pub fn become_command(file: &Path, argv: &[OsString]) -> Result<Infallible, CliError> {
    let (name, args) = argv.split_first().expect("a plan names a program");
    // The standard library puts SIGPIPE and the signal mask back as a fresh program expects them.
    let error = Command::new(file).arg0(name).args(args).exec();
    let text = format!("{}: {error}", file.display());
    // Not found now, though the file was there: its interpreter is missing, or it was just removed.
    Err(if error.kind() == io::ErrorKind::NotFound {
        CliError::NotFound(format!("{text} (does its interpreter exist?)"))
    } else {
        CliError::NotExecutable(text)
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn code(name: &str, path: &OsStr) -> u8 {
        find(name.as_ref(), Some(path)).unwrap_err().exit_code()
    }

    #[test]
    fn a_command_is_found_as_a_shell_finds_it() {
        let dir = tempfile::tempdir().unwrap();
        let (first, second) = (dir.path().join("first"), dir.path().join("second"));
        for (dir, name, mode) in [
            (&first, "tool", 0o644),
            (&second, "tool", 0o755),
            (&first, "plain", 0o644),
        ] {
            std::fs::create_dir_all(dir).unwrap();
            let file = dir.join(name);
            std::fs::write(&file, "#!/bin/sh\n").unwrap();
            std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
        }
        let path = std::env::join_paths([&first, &second]).unwrap();
        // The first is not executable, so the second is meant.
        assert_eq!(
            find("tool".as_ref(), Some(&path)).unwrap(),
            second.join("tool")
        );
        assert_eq!(code("plain", &path), 126);
        assert_eq!(code("absent", &path), 127);
        assert_eq!(code("", &path), 127);
        assert_eq!(code(dir.path().to_str().unwrap(), &path), 126);
        assert_eq!(code(first.join("absent").to_str().unwrap(), &path), 127);
    }
}
