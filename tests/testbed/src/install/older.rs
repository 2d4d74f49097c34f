//! The older bench-profile tools, written in Bash: found, backed up, and renamed.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::files::{below, exists};

/// Folders, and how the names of theirs in it begin.
const NAMES: &[(&str, &str)] = &[
    ("/usr/local/bin", "bench-prep"),
    ("/usr/local/bin", "bench-profile-"),
    ("/usr/local/lib", "bench-profile"),
    ("/etc/boot/hooks/post.d", "95-add-benchmark-boot-entries"),
    ("/etc/systemd/system", "bench-prep.service"),
];
/// Their description of the machine.
const MACHINE: &str = "/usr/local/lib/bench-profile/machine.conf";

/// What a boot loader reads. It is backed up, since the older tools wrote into it.
const LOADER: &[&str] = &[
    "/boot/limine.conf",
    "/boot/limine/limine.conf",
    "/boot/EFI/limine/limine.conf",
    "/boot/EFI/BOOT/limine.conf",
    "/boot/efi/limine.conf",
    "/efi/limine.conf",
    "/boot/loader/loader.conf",
    "/boot/grub/grub.cfg",
    "/boot/grub2/grub.cfg",
];

/// Their files and folders below `root`, but for `ours` and what was renamed already. Paths are without `root`.
pub fn find(root: &Path, ours: &[PathBuf]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for (folder, begin) in NAMES {
        for entry in fs::read_dir(below(root, Path::new(folder)))
            .into_iter()
            .flatten()
            .flatten()
        {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let path = Path::new(folder).join(&*name);
            let superseded = name.contains(".superseded");
            if name.starts_with(begin) && !superseded && !ours.contains(&path) {
                found.push(path);
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

/// Their machine file, without `root`.
pub fn machine(root: &Path) -> Option<PathBuf> {
    let path = PathBuf::from(MACHINE);
    exists(&below(root, &path)).then_some(path)
}

/// The boot loader's files that there are, without `root`.
pub fn loader(root: &Path) -> Vec<PathBuf> {
    LOADER
        .iter()
        .map(PathBuf::from)
        .filter(|path| below(root, path).is_file())
        .collect()
}

/// Copies files and folders to the same paths below `folder`. All paths are without `root`.
pub fn back_up(root: &Path, paths: &[PathBuf], folder: &Path) -> Result<()> {
    for path in paths {
        let to = below(&below(root, folder), path);
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent)
                .with_context(|| format!("cannot create {}", parent.display()))?;
        }
        copy(&below(root, path), &to).with_context(|| {
            format!(
                "cannot back up {} to {}; nothing was changed",
                path.display(),
                to.display()
            )
        })?;
    }
    if !paths.is_empty() {
        // A person's unit or boot file may hold what not everybody is to read.
        fs::set_permissions(below(root, folder), fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let meta = fs::symlink_metadata(from)?;
    if meta.is_symlink() {
        symlink(fs::read_link(from)?, to)?;
    } else if meta.is_dir() {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
    } else {
        // With its permissions, by std::fs::copy's promise.
        fs::copy(from, to)?;
        fs::File::open(to)?.sync_all()?;
    }
    Ok(())
}
