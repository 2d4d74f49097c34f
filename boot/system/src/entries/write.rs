//! Writes what was planned, so that the machine boots whenever the power goes.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::time::SystemTime;

use super::{Change, Disk, EntriesError, Loader, Options, Plan, backup, loader, lock, plan};
use crate::root::Root;

/// What a file is called until it is whole.
const FRESH: &str = "bench-new";
/// What Limine's last configuration is called, beside it.
const LAST: &str = "bench.bak";
/// A loader's file that is new.
const MODE: u32 = 0o644;

/// What was done.
#[derive(Debug)]
pub struct Done {
    /// What was planned, and is now.
    pub plan: Plan,
    /// Where the replaced files are kept, below the root.
    pub backup: Option<String>,
}

/// Brings the entries up to date. Files that are as they should be are not touched.
///
/// # Errors
///
/// There is nothing to write, or not everything was written; the text says what is in place.
pub fn regenerate(
    root: &Root,
    options: &Options,
    disk: &mut impl Disk,
    now: SystemTime,
) -> Result<Done, EntriesError> {
    let loader = loader::choose(root, options)?;
    let _lock = lock::lock(root, loader, options)?;
    let mut plan = plan(root, options)?;
    let backup = backup::keep(root, disk, &plan.changes, now).map_err(|error| {
        let left = "Nothing was changed, since what is there could not be kept".to_owned();
        failed(
            "var/backups/bench-profile",
            "to keep what is replaced",
            error,
            left,
        )
    })?;
    for (written, change) in plan.changes.iter().enumerate() {
        carry_out(root, disk, change, plan.loader).map_err(|(step, error)| {
            failed(&change.path, step, error, left(written, backup.as_deref()))
        })?;
    }
    match plan.unmatched.take() {
        Some(error) => Err(error),
        None => Ok(Done { plan, backup }),
    }
}

fn failed(path: &str, step: &'static str, error: io::Error, left: String) -> EntriesError {
    let left = match error.kind() {
        io::ErrorKind::StorageFull => format!("The file system is full: make room on it. {left}"),
        io::ErrorKind::ReadOnlyFilesystem => format!("It is mounted read-only. {left}"),
        _ => left,
    };
    EntriesError::Write {
        path: format!("/{path}"),
        step,
        error,
        left,
    }
}

fn left(written: usize, backup: Option<&str>) -> String {
    match (written, backup) {
        (0, _) => "Nothing was changed".to_owned(),
        (n, None) => format!("{n} files before it were written; doing it again goes on from there"),
        (n, Some(backup)) => format!(
            "{n} files before it were written, and doing it again goes on from there; what was replaced is in /{backup}"
        ),
    }
}

fn carry_out(
    root: &Root,
    disk: &mut impl Disk,
    change: &Change,
    loader: Loader,
) -> Result<(), (&'static str, io::Error)> {
    let (below, name) = change.path.rsplit_once('/').unwrap_or((".", &change.path));
    let folder = root
        .open_folder(below)
        .map_err(|error| ("to open its folder", error))?;
    let mode = mode_of(root, &change.path);
    let mut replace = |name: &str, text: &str| {
        let fresh = format!("{name}.{FRESH}");
        let done = disk
            .create(&folder, &fresh, text.as_bytes(), mode)
            .map_err(|error| ("to write it anew", error))
            .and_then(|()| {
                let renamed = disk.rename(&folder, &fresh, name);
                renamed.map_err(|error| ("to put the new one in its place", error))
            });
        if done.is_err() {
            // Room for the next try; there is nothing to be done where that fails too.
            let _ = disk.remove(&folder, &fresh);
        }
        done?;
        disk.settle(&folder)
            .map_err(|error| ("to settle its folder", error))
    };
    match (&change.before, &change.after) {
        (Some(before), Some(_)) if loader == Loader::Limine => {
            // Before the first step that touches it: a rename on FAT is no whole thing when the power goes.
            replace(&format!("{name}.{LAST}"), before)?;
        }
        _ => {}
    }
    match &change.after {
        Some(after) => replace(name, after),
        None => {
            disk.remove(&folder, name)
                .map_err(|error| ("to take it away", error))?;
            disk.settle(&folder)
                .map_err(|error| ("to settle its folder", error))
        }
    }
}

/// A file keeps its mode: a grub.cfg with passwords is root's alone.
fn mode_of(root: &Root, path: &str) -> u32 {
    root.open_in_place(path)
        .and_then(|file| file.metadata())
        .map_or(MODE, |of| of.permissions().mode() & 0o777)
}
