//! The next boot alone, where the loader can.

use std::collections::BTreeMap;
use std::io::{Seek, Write};

use bench_profile::entries::{Bench, bls, grub, of_profile};
use bench_profile::profile::Profile;

use super::loader::{self, Loader};
use super::{EntriesError, LARGEST, Options};
use crate::root::Root;

/// How a loader is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// logind tells systemd-boot: this id.
    Logind(String),
    /// GRUB reads it from its environment block: this entry.
    Grub(String),
}

impl Way {
    /// The entry, as the loader names it.
    pub fn entry(&self) -> &str {
        match self {
            Way::Logind(entry) | Way::Grub(entry) => entry,
        }
    }
}

/// Who is told of the next boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Teller {
    /// logind.
    Logind,
    /// GRUB's environment block.
    Grub,
    /// Nobody: the loader cannot be told.
    Nobody,
}

/// Who that is here.
///
/// # Errors
///
/// There is no loader.
pub fn teller(root: &Root) -> Result<Teller, EntriesError> {
    Ok(match loader::choose(root, &Options::default())? {
        Loader::Limine => Teller::Nobody,
        Loader::SystemdBoot => Teller::Logind,
        Loader::Grub => Teller::Grub,
    })
}

/// How the next boot can be one into `profile`; it changes nothing.
///
/// # Errors
///
/// The loader cannot, or has no entry for the profile.
pub fn way(root: &Root, profile: Profile) -> Result<Way, EntriesError> {
    let options = Options::default();
    let loader = loader::choose(root, &options)?;
    let running = root.read("proc/sys/kernel/osrelease")?.unwrap_or_default();
    let chosen = |benches: &[Bench]| {
        of_profile(benches, profile, running.trim())
            .map(|bench| bench.id.clone())
            .ok_or_else(|| {
                EntriesError::NoEntry(format!(
                    "{loader} has no entry for {profile}: `workload-guard bench boot-entries regenerate` writes them"
                ))
            })
    };
    match loader {
        Loader::Limine => Err(EntriesError::Unsupported(
            "Limine is not asked for a boot of one entry alone: versions before 11.4 cannot, and no version lists its \
             entries where this could be verified. Choose the entry in its menu"
                .to_owned(),
        )),
        Loader::SystemdBoot => Ok(Way::Logind(chosen(&of_folders(root, &options)?)?)),
        Loader::Grub => {
            let folder = can_grub(root, &options)?;
            let text = root.bytes(&format!("{folder}/grub.cfg"), LARGEST)?.unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            if grub::reads_files(&text) {
                return Ok(Way::Grub(without_ending(&chosen(&of_folders(root, &options)?)?)));
            }
            let benches = grub::benches(&text)
                .map_err(|error| EntriesError::entry(&format!("{folder}/grub.cfg"), error))?;
            Ok(Way::Grub(chosen(&benches)?))
        }
    }
}

fn without_ending(id: &str) -> String {
    id.strip_suffix(".conf").unwrap_or(id).to_owned()
}

fn of_folders(root: &Root, options: &Options) -> Result<Vec<Bench>, EntriesError> {
    let mut benches = Vec::new();
    for folder in loader::folders(root, options) {
        let mut files = BTreeMap::new();
        for name in root.names(&folder)? {
            if let Ok(Some(bytes)) = root.bytes(&format!("{folder}/{name}"), LARGEST) {
                files.insert(name, String::from_utf8_lossy(&bytes).into_owned());
            }
        }
        benches.extend(bls::benches(&files));
    }
    Ok(benches)
}

/// GRUB's folder, where GRUB can take back at boot what is written there.
fn can_grub(root: &Root, options: &Options) -> Result<String, EntriesError> {
    let folder = loader::grub(root, options).ok_or(EntriesError::NoLoader)?;
    let cannot = |why: String| {
        Err(EntriesError::Unsupported(format!(
            "/{folder}/grubenv {why}, so a benchmark entry would boot again and again. Choose it in GRUB's menu"
        )))
    };
    let text = root
        .bytes(&format!("{folder}/grub.cfg"), LARGEST)?
        .unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    if !text.contains(grub::env::NEXT) {
        return cannot("is not read by its grub.cfg".to_owned());
    }
    let mounts = root.read("proc/self/mountinfo")?.unwrap_or_default();
    if let Some((device, kind)) = mounted(&mounts, &folder) {
        if ["btrfs", "zfs", "bcachefs", "overlay"].contains(&kind) {
            return cannot(format!("is on {kind}, where GRUB cannot write"));
        }
        for layer in ["dm", "md"] {
            if root.exists(&format!("sys/dev/block/{device}/{layer}")) {
                return cannot(format!("is on a {layer} device, where GRUB cannot write"));
            }
        }
    }
    Ok(folder)
}

/// Device and kind of the file system that a path is on.
fn mounted<'m>(mountinfo: &'m str, path: &str) -> Option<(&'m str, &'m str)> {
    let path = format!("/{path}/");
    let line = |line: &'m str| {
        let (mount, system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(2);
        let (device, _, point) = (mount.next()?, mount.next()?, mount.next()?);
        let inside = path.starts_with(&format!("{}/", point.trim_end_matches('/')));
        inside.then_some((point.len(), (device, system.split(' ').next()?)))
    };
    // Of those on one point, the last is seen.
    let best = mountinfo
        .lines()
        .filter_map(line)
        .max_by_key(|(length, _)| *length);
    best.map(|(_, of)| of)
}

/// Tells GRUB; none takes back what it was told of a profile.
///
/// # Errors
///
/// There is no environment block, or it cannot be written.
pub fn tell_grub(root: &Root, entry: Option<&str>) -> Result<(), EntriesError> {
    let folder = loader::grub(root, &Options::default()).ok_or(EntriesError::NoLoader)?;
    let path = format!("{folder}/grubenv");
    let unusable =
        |error: grub::env::EnvError| EntriesError::Unsupported(format!("/{path}: {error}"));
    let Some(block) = root.bytes(&path, LARGEST)? else {
        return Err(EntriesError::Unsupported(format!(
            "/{path} is not there: `grub-editenv /{path} create` makes it"
        )));
    };
    let new = grub::env::set(&block, grub::env::NEXT, entry).map_err(unusable)?;
    if new == block {
        return Ok(());
    }
    let write = || {
        // In its place, and of its length: GRUB writes to the blocks that the file has.
        let mut file = root.open_in_place(&path)?;
        file.rewind()?;
        file.write_all(&new)?;
        file.sync_all()
    };
    write().map_err(|error| EntriesError::File(root.error(&path, error)))
}

/// The profile that the next boot alone is into.
pub fn pending(root: &Root) -> Option<Profile> {
    let options = Options::default();
    let (entry, benches) = match loader::choose(root, &options).ok()? {
        Loader::Limine => return None,
        Loader::SystemdBoot => (
            loader::variable(root, "LoaderEntryOneShot")
                .ok()
                .flatten()?,
            of_folders(root, &options).ok()?,
        ),
        Loader::Grub => {
            let folder = loader::grub(root, &options)?;
            let block = root
                .bytes(&format!("{folder}/grubenv"), LARGEST)
                .ok()
                .flatten()?;
            let text = root
                .bytes(&format!("{folder}/grub.cfg"), LARGEST)
                .ok()
                .flatten()?;
            let text = String::from_utf8_lossy(&text);
            let mut benches = grub::benches(&text).ok()?;
            benches.extend(of_folders(root, &options).ok()?);
            (
                grub::env::get(&block, grub::env::NEXT).ok().flatten()?,
                benches,
            )
        }
    };
    benches
        .iter()
        .find(|bench| without_ending(&bench.id) == without_ending(&entry))
        .map(|bench| bench.profile)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_mount_is_the_one() {
        let info = "22 1 8:2 / / rw - ext4 /dev/sda2 rw\n\
                    30 22 0:40 / /boot rw,relatime shared:1 - btrfs /dev/sda3 rw\n\
                    31 22 8:1 / /bootx rw - vfat /dev/sda1 rw\n";
        assert_eq!(mounted(info, "boot/grub"), Some(("0:40", "btrfs")));
        assert_eq!(mounted(info, "etc"), Some(("8:2", "ext4")));
        assert_eq!(mounted("", "boot"), None);
        assert_eq!(mounted("rubbish - \n1 - ", "boot"), None);
    }
}
