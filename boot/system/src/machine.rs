//! Finds and reads the machine file.

use bench_profile::machine::{MachineFile, Mistakes};

use crate::root::{FileError, Root};

/// The machine file, below the root.
pub const FILE: &str = "etc/bench-profile/machine.toml";

/// Why there is no machine to speak of.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Nobody wrote it yet.
    #[error(
        "{0} is not there: `workload-guard bench plan` proposes one for this machine, to be reviewed and put there"
    )]
    Missing(String),
    /// It cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// It is wrong.
    #[error(transparent)]
    Mistakes(#[from] Mistakes),
}

/// The machine as `/etc/bench-profile/machine.toml` describes it.
///
/// # Errors
///
/// The file is missing, unreadable or wrong.
pub fn load(root: &Root) -> Result<MachineFile, LoadError> {
    let origin = root.path(FILE).display().to_string();
    let Some(text) = root.read(FILE)? else {
        return Err(LoadError::Missing(origin));
    };
    Ok(MachineFile::parse(&origin, &text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_names_the_way_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Root::new(folder.path());
        let error = load(&root).expect_err("no file");
        assert!(error.to_string().contains("bench plan"), "{error}");

        let path = root.path(FILE);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(&path, "[cpus]\n").expect("a file");
        let error = load(&root).expect_err("it lacks keys").to_string();
        assert!(
            error.contains(&format!("{}: `cpus.bench`", path.display())),
            "{error}"
        );
        let shipped = include_str!("../../../config/machine.toml");
        std::fs::write(&path, shipped).expect("a file");
        assert_eq!(
            load(&root).expect("it is correct").machine.cpus.single_core,
            8
        );
    }
}
