//! Which profile this boot is in.

use bench_profile::command_line::{self, MARKER};
use bench_profile::profile::{Profile, UnknownProfile};

use crate::root::{FileError, Root};

/// Why the boot cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    /// The command line cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// It names a profile that there is not.
    #[error("the kernel command line has {MARKER}, and {0}")]
    Unknown(#[from] UnknownProfile),
}

/// The profile of this boot; none on a normal one, and where there is no /proc/cmdline. The last marker counts, as
/// with the kernel's own parameters.
///
/// # Errors
///
/// The marker names no profile.
pub fn profile(root: &Root) -> Result<Option<Profile>, BootError> {
    let line = root.read("proc/cmdline")?.unwrap_or_default();
    Ok(command_line::booted(&line)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_marker_names_the_profile() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Root::new(folder.path());
        assert_eq!(profile(&root).expect("no file"), None);
        std::fs::create_dir(folder.path().join("proc")).expect("a folder");
        let booted = |line: &str| {
            std::fs::write(folder.path().join("proc/cmdline"), line).expect("a file");
            profile(&root)
        };
        assert_eq!(booted("ro quiet\n").expect("normal"), None);
        assert_eq!(booted("xbench_profile=unlimited\n").expect("normal"), None);
        let multi = booted("ro bench_profile=single-core x bench_profile=multi-core\n");
        assert_eq!(multi.expect("one"), Some(Profile::MultiCore));
        let error = booted("bench_profile=turbo").expect_err("no such profile");
        assert!(error.to_string().contains("turbo"), "{error}");
    }
}
