//! Builds the product and lays it out as the guests see it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use tempfile::TempDir;

use crate::guest::Payload;
use crate::process;

/// Packages to build, and the binaries that they make.
const PROGRAMS: &[(&str, &str)] = &[
    ("workload-guardd", "workload-guardd"),
    ("workload-guard", "workload-guard"),
    ("guard-scenarios", "guard-scenarios"),
    ("testbed", "xtask"),
];

/// Folders of the checkout that an installation copies from.
const FOLDERS: &[&str] = &["units", "config", "polkit"];

/// Which build the guests get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// What is shipped.
    Release,
    /// Quick to build, for work on scenarios.
    Dev,
}

/// Where cargo keeps things.
#[derive(Debug, Deserialize)]
pub struct Workspace {
    /// Folder of the workspace's Cargo.toml.
    pub workspace_root: PathBuf,
    /// Folder of the build results, wherever `CARGO_TARGET_DIR` or a setting puts it.
    pub target_directory: PathBuf,
}

impl Workspace {
    /// Asks cargo about the workspace that we are in.
    pub fn locate() -> Result<Self> {
        let text =
            process::output_of(cargo().args(["metadata", "--format-version=1", "--no-deps"]))?;
        serde_json::from_str(&text).context("cannot read the output of cargo metadata")
    }
}

/// The cargo that runs us, or else the one on the PATH.
pub fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// A laid-out payload, removed when dropped if we made it.
#[derive(Debug)]
pub struct Built {
    /// What the guests take.
    pub payload: Payload,
    // Holds the folder.
    _folder: Option<TempDir>,
}

/// The payload in `folder`, made by someone else, or a new one.
pub fn take_or_build(folder: Option<&Path>, profile: Profile) -> Result<Built> {
    match folder {
        Some(folder) => Ok(Built {
            payload: Payload::at(
                folder
                    .canonicalize()
                    .with_context(|| format!("cannot find {}", folder.display()))?,
            ),
            _folder: None,
        }),
        None => build(&Workspace::locate()?, profile),
    }
}

/// Builds the programs and lays out the payload.
fn build(workspace: &Workspace, profile: Profile) -> Result<Built> {
    let mut command = cargo();
    command
        .arg("build")
        .current_dir(&workspace.workspace_root)
        .stdin(Stdio::null())
        // Our stdout is the report's.
        .stdout(Stdio::from(std::io::stderr()));
    if profile == Profile::Release {
        command.arg("--release");
    }
    for (package, _) in PROGRAMS {
        command.args(["--package", package]);
    }
    let status = command.status().context("cannot start cargo")?;
    if !status.success() {
        bail!("the product does not build ({status}); cargo's messages are above");
    }
    lay_out(workspace, profile)
}

fn lay_out(workspace: &Workspace, profile: Profile) -> Result<Built> {
    let built = workspace.target_directory.join(match profile {
        Profile::Release => "release",
        Profile::Dev => "debug",
    });
    let folder = tempfile::Builder::new()
        .prefix("payload-")
        // The default shuts out the guest's ordinary users.
        .permissions(fs::Permissions::from_mode(0o755))
        .tempdir_in(&workspace.target_directory)
        .with_context(|| {
            format!(
                "cannot create a folder in {}",
                workspace.target_directory.display()
            )
        })?;
    for (_, program) in PROGRAMS {
        copy(&built.join(program), &folder.path().join(program))?;
    }
    for name in FOLDERS {
        let source = workspace.workspace_root.join(name);
        if source.is_dir() {
            copy_tree(&source, &folder.path().join(name))?;
        }
    }
    Ok(Built {
        payload: Payload::at(folder.path()),
        _folder: Some(folder),
    })
}

fn copy_tree(source: &Path, target: &Path) -> Result<()> {
    fs::create_dir(target).with_context(|| format!("cannot create {}", target.display()))?;
    let entries =
        fs::read_dir(source).with_context(|| format!("cannot read {}", source.display()))?;
    for entry in entries {
        let entry = entry?;
        let to = target.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_tree(&entry.path(), &to)?;
        } else {
            copy(&entry.path(), &to)?;
        }
    }
    Ok(())
}

fn copy(source: &Path, target: &Path) -> Result<()> {
    fs::copy(source, target)
        .map(drop)
        .with_context(|| format!("cannot copy {} to {}", source.display(), target.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_payload_has_programs_and_folders_and_others_may_read_it() {
        let root = tempfile::tempdir().unwrap();
        let target = root.path().join("target");
        fs::create_dir_all(target.join("debug")).unwrap();
        fs::create_dir_all(root.path().join("units/user")).unwrap();
        fs::write(root.path().join("units/user/a.service"), "x").unwrap();
        for (_, program) in PROGRAMS {
            fs::write(target.join("debug").join(program), program).unwrap();
        }
        let workspace = Workspace {
            workspace_root: root.path().to_owned(),
            target_directory: target,
        };
        let built = lay_out(&workspace, Profile::Dev).unwrap();
        let dir = built.payload.dir().to_owned();
        assert_eq!(fs::read_to_string(dir.join("xtask")).unwrap(), "xtask");
        assert_eq!(
            fs::read_to_string(dir.join("units/user/a.service")).unwrap(),
            "x"
        );
        assert_eq!(
            fs::metadata(&dir).unwrap().permissions().mode() & 0o777,
            0o755
        );
        drop(built);
        assert!(!dir.exists());
    }

    #[test]
    fn a_program_that_was_not_built_is_named() {
        let root = tempfile::tempdir().unwrap();
        let workspace = Workspace {
            workspace_root: root.path().to_owned(),
            target_directory: root.path().to_owned(),
        };
        let error = lay_out(&workspace, Profile::Release)
            .unwrap_err()
            .to_string();
        assert!(error.contains("release/workload-guardd"), "{error}");
    }
}
