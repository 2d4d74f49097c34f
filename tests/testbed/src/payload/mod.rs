//! Builds the product and lays it out as the guests see it.

pub mod libc;
mod workspace;

use std::cell::OnceCell;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::guest::Payload;
use crate::progress;
pub use workspace::{Workspace, cargo, tied_cargo};

/// What is shipped: packages, and the binaries that they make.
const PRODUCT: &[(&str, &str)] = &[
    ("workload-guardd", "workload-guardd"),
    ("workload-guard", "workload-guard"),
    ("bench-prepd", "bench-prepd"),
];

/// What the guests test it with. Always a development build, which `cargo xtask` and the unit tests have
/// made most of already: a release build of these two would take longer than that of the product.
const TOOLS: &[(&str, &str)] = &[
    ("guard-scenarios", "guard-scenarios"),
    ("bench-scenarios", "bench-scenarios"),
    ("guard-benchmarks", "guard-benchmarks"),
    ("testbed", "xtask"),
];

/// Folders of the checkout that an installation copies from.
const FOLDERS: &[&str] = &["units", "config", "polkit", "boot/hooks", "docs"];
/// Files of the checkout that a package carries, and that the guests read.
const FILES: &[&str] = &["README.md", "CHANGELOG.md", "LICENSE"];

/// Which build the guests get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// What is shipped.
    Release,
    /// Quick to build, for work on scenarios.
    Dev,
}

/// A laid-out payload, removed when dropped.
#[derive(Debug)]
struct Built {
    payload: Payload,
    // Holds the folder.
    _folder: TempDir,
}

/// Where payloads come from.
#[derive(Debug)]
enum Origin {
    /// Made by someone else.
    Folder(Payload),
    /// Built here.
    Checkout(Workspace, Profile),
}

/// How the programs find the C library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Linkage {
    /// As shipped: the system's, not older than this machine's.
    Shared,
    /// Built in, for a guest whose C library is older.
    Static,
}

/// The payloads of a run, each built when it is first asked for and removed at the end.
#[derive(Debug)]
pub struct Payloads {
    origin: Origin,
    shared: OnceCell<Built>,
    portable: OnceCell<Built>,
}

impl Payloads {
    /// From `folder`, made by someone else, or else built as `profile` says.
    pub fn new(folder: Option<&Path>, profile: Profile) -> Result<Self> {
        let origin = match folder {
            Some(folder) => Origin::Folder(Payload::at(
                folder
                    .canonicalize()
                    .with_context(|| format!("cannot find {}", folder.display()))?,
            )),
            None => Origin::Checkout(Workspace::locate()?, profile),
        };
        Ok(Self {
            origin,
            shared: OnceCell::new(),
            portable: OnceCell::new(),
        })
    }

    /// The payload whose programs run on this machine.
    pub fn for_host(&self) -> Result<&Payload> {
        self.get(Linkage::Shared)
    }

    /// The payload for a guest with the root `tree`.
    pub fn for_tree(&self, tree: &Path) -> Result<&Payload> {
        let (host, guest) = (libc::of_host()?, libc::of_tree(tree)?);
        if host <= guest {
            return self.get(Linkage::Shared);
        }
        progress::say(&format!(
            "{} has glibc {guest}, older than this machine's {host}: its programs are linked statically",
            tree.display()
        ));
        self.get(Linkage::Static)
    }

    fn get(&self, linkage: Linkage) -> Result<&Payload> {
        let (workspace, profile) = match &self.origin {
            Origin::Folder(payload) => return Ok(payload),
            Origin::Checkout(workspace, profile) => (workspace, *profile),
        };
        let cell = match linkage {
            Linkage::Shared => &self.shared,
            Linkage::Static => &self.portable,
        };
        if cell.get().is_none() {
            let product = build(workspace, PRODUCT, profile, linkage)?;
            let tools = build(workspace, TOOLS, Profile::Dev, linkage)?;
            let built = lay_out(workspace, &[(&product, PRODUCT), (&tools, TOOLS)])?;
            return Ok(&cell.get_or_init(|| built).payload);
        }
        Ok(&cell.get().expect("just seen").payload)
    }
}

/// Builds what is shipped so that it runs with the C library `oldest` and newer ones; returns the folder.
pub fn build_for(workspace: &Workspace, oldest: libc::Version) -> Result<PathBuf> {
    let linkage = if libc::of_host()? <= oldest {
        Linkage::Shared
    } else {
        Linkage::Static
    };
    build(workspace, PRODUCT, Profile::Release, linkage)
}

/// Builds the programs; returns the folder that they are in.
fn build(
    workspace: &Workspace,
    programs: &[(&str, &str)],
    profile: Profile,
    linkage: Linkage,
) -> Result<PathBuf> {
    let mut target = workspace.target_directory.clone();
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
    for (package, _) in programs {
        command.args(["--package", package]);
    }
    if linkage == Linkage::Static {
        // Naming the platform keeps the flag away from build scripts and macros, which cannot be static. The folder of
        // its own keeps cargo from building everything anew when the flag changes.
        let platform = workspace::platform()?;
        target.push("static");
        command
            .args(["--target", &platform])
            .arg("--config")
            .arg(format!(
                "target.{platform}.rustflags=[\"-Ctarget-feature=+crt-static\"]"
            ))
            .arg("--target-dir")
            .arg(&target);
        target.push(platform);
    }
    let status = command.status().context("cannot start cargo")?;
    if !status.success() {
        bail!("the product does not build ({status}); cargo's messages are above");
    }
    Ok(target.join(match profile {
        Profile::Release => "release",
        Profile::Dev => "debug",
    }))
}

/// Copies programs out of the folders that they were built in, and the folders of the checkout.
fn lay_out(workspace: &Workspace, programs: &[(&Path, &[(&str, &str)])]) -> Result<Built> {
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
    for (from, programs) in programs {
        for (_, program) in *programs {
            copy(&from.join(program), &folder.path().join(program))?;
        }
    }
    for name in FOLDERS {
        let source = workspace.workspace_root.join(name);
        if source.is_dir() {
            copy_tree(&source, &folder.path().join(name))?;
        }
    }
    for name in FILES {
        let source = workspace.workspace_root.join(name);
        if source.is_file() {
            copy(&source, &folder.path().join(name))?;
        }
    }
    Ok(Built {
        payload: Payload::at(folder.path()),
        _folder: folder,
    })
}

fn copy_tree(source: &Path, target: &Path) -> Result<()> {
    fs::create_dir_all(target).with_context(|| format!("cannot create {}", target.display()))?;
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
        for (_, program) in PRODUCT.iter().chain(TOOLS) {
            fs::write(target.join("debug").join(program), program).unwrap();
        }
        let workspace = Workspace {
            workspace_root: root.path().to_owned(),
            target_directory: target,
        };
        let built = lay_out(
            &workspace,
            &[(&workspace.target_directory.join("debug"), TOOLS)],
        )
        .unwrap();
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
        let error = lay_out(&workspace, &[(&root.path().join("release"), PRODUCT)])
            .unwrap_err()
            .to_string();
        assert!(error.contains("release/workload-guardd"), "{error}");
    }
}
