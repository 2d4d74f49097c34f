//! Disks made without mounting anything: the machine's root from an image's tree, and the payload's.

use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow, bail};

use super::command::{AGENT_UNIT, DISK};
use super::esp;
use super::firmware::Firmware;
use crate::host;
use crate::host::packages;
use crate::process;

/// Of the root disk, in bytes. Sparse: it takes the tree's size on the host.
const ROOT_SIZE: u64 = 8 << 30;
/// Of the payload's disk, in bytes, sparse too. Part of the hardware that a snapshot was made with, hence fixed.
pub const PAYLOAD_SIZE: u64 = 256 << 20;

/// Options for both file systems. Nobody recovers them after a crash, so they need no journal; and what mke2fs leaves to
/// be initialized later, the guest's kernel would write in the background of a measurement.
const FEATURES: &[&str] = &[
    "-q",
    "-F",
    "-t",
    "ext4",
    "-b",
    "4096",
    "-O",
    "^has_journal",
    "-m",
    "0",
];
const EXTENDED: &str = "lazy_itable_init=0,root_owner=0:0";

/// The agent's program, kept as text so that it is part of the snapshot's key.
pub const AGENT: &str = include_str!("agent/agent.sh");
/// Its unit.
pub const AGENT_SERVICE: &str = include_str!("agent/agent.service");

/// Files that the root disk has beyond the image's tree: path in the guest, contents.
fn additions() -> [(String, &'static str); 2] {
    [
        ("/etc/workload-guard-agent".to_owned(), AGENT),
        (format!("/etc/systemd/system/{AGENT_UNIT}"), AGENT_SERVICE),
    ]
}

/// What a machine that boots by itself has beyond that: the EFI system partition is mounted, and the journal tells of
/// earlier boots.
fn additions_for_uefi() -> [(&'static str, String); 2] {
    [
        (
            "/etc/fstab",
            format!(
                // GRUB's entries have the kernel mount the root read-only at first.
                "/dev/vda / ext4 defaults 0 0\nLABEL={} {} vfat umask=0077 0 0\n",
                esp::LABEL,
                esp::MOUNT_POINT
            ),
        ),
        (
            "/etc/systemd/journald.conf.d/zz-testbed-reboots.conf",
            "[Journal]\nStorage=persistent\n".to_owned(),
        ),
    ]
}

/// Makes the root disk in the folder `directory` from `tree`, with the agent in it.
pub fn make_root(tree: &Path, directory: &Path, firmware: Firmware) -> Result<()> {
    let disk = directory.join(DISK);
    sized(&disk, ROOT_SIZE)?;
    make_file_system(&disk, tree, host::is_root())?;
    for (path, contents) in additions() {
        add(&disk, directory, &path, contents)?;
    }
    if firmware == Firmware::Kernel {
        return Ok(());
    }
    // The image has one that says nothing.
    debugfs(&disk, &["-w"], "rm /etc/fstab", directory)?;
    for (path, contents) in additions_for_uefi() {
        add(&disk, directory, path, &contents)?;
    }
    let mount_point = format!("mkdir {}", esp::MOUNT_POINT);
    debugfs(&disk, &["-w"], &mount_point, directory)?;
    // Enabled, whatever command line a boot loader's entry has.
    let wants = "/etc/systemd/system/multi-user.target.wants";
    let enable = format!("symlink {wants}/{AGENT_UNIT} ../{AGENT_UNIT}");
    debugfs(&disk, &["-w"], &enable, directory).map(drop)
}

/// Writes one file into a disk's file system.
fn add(disk: &Path, scratch: &Path, path: &str, contents: &str) -> Result<()> {
    let source = scratch.join("addition");
    fs::write(&source, contents).with_context(|| format!("cannot write {}", source.display()))?;
    debugfs(disk, &["-w"], &format!("write addition {path}"), scratch)?;
    debugfs(
        disk,
        &["-w"],
        &format!("set_inode_field {path} uid 0"),
        scratch,
    )?;
    debugfs(
        disk,
        &["-w"],
        &format!("set_inode_field {path} gid 0"),
        scratch,
    )?;
    // debugfs succeeds whatever happens: only reading back tells.
    let written = debugfs(disk, &[], &format!("cat {path}"), scratch)?;
    if written != contents {
        bail!("debugfs could not write {path} into {}", disk.display());
    }
    fs::remove_file(&source).with_context(|| format!("cannot remove {}", source.display()))
}

fn debugfs(disk: &Path, options: &[&str], request: &str, directory: &Path) -> Result<String> {
    process::output_of(
        Command::new(tool("debugfs")?)
            .args(options)
            .args(["-R", request])
            .arg(disk)
            .current_dir(directory),
    )
}

/// Copies the image's kernel and initial RAM disk out of its tree.
pub fn copy_kernel(tree: &Path, directory: &Path) -> Result<()> {
    for name in [super::command::KERNEL, super::command::INITRD] {
        let stem = name.split('.').next().unwrap_or(name);
        let source = boot_file(&tree.join("boot"), stem)?;
        fs::copy(&source, directory.join(name))
            .with_context(|| format!("cannot copy {}", source.display()))?;
    }
    Ok(())
}

/// The file `STEM…-VERSION` in /boot of an image; there is one kernel in it.
pub fn boot_file(boot: &Path, stem: &str) -> Result<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(boot)
        .with_context(|| format!("cannot read {}", boot.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with(stem))
        })
        .collect();
    match (found.pop(), found.is_empty()) {
        (Some(path), true) => Ok(path),
        (None, _) => bail!("no {stem} in {}: the image has no kernel", boot.display()),
        (Some(_), false) => bail!("more than one {stem} in {}", boot.display()),
    }
}

/// The product as a disk: a file without a name that exists as long as this value.
///
/// The payload changes with each build and the snapshot does not. So the guest mounts this disk after it was
/// restored; nothing of it was in the guest's caches when the snapshot was made.
#[derive(Debug)]
pub struct PayloadDisk(File);

impl PayloadDisk {
    /// With the contents of the folder `payload`.
    pub fn with(payload: &Path) -> Result<Self> {
        Self::make(|disk| {
            make_file_system(disk, payload, true).with_context(|| {
                format!(
                    "cannot put the payload {} on a disk of {} MiB",
                    payload.display(),
                    PAYLOAD_SIZE >> 20
                )
            })?;
            // A folder that only root may read: a scenario that copies the payload would trip over it.
            debugfs(disk, &["-w"], "rmdir lost+found", Path::new("/")).map(drop)
        })
    }

    /// With nothing on it, for the machine that becomes the snapshot.
    pub fn empty() -> Result<Self> {
        Self::make(|_| Ok(()))
    }

    fn make(fill: impl FnOnce(&Path) -> Result<()>) -> Result<Self> {
        let named = tempfile::NamedTempFile::new().context("cannot create a temporary file")?;
        named
            .as_file()
            .set_len(PAYLOAD_SIZE)
            .context("cannot size a temporary file")?;
        fill(named.path())?;
        let file = File::open(named.path())
            .with_context(|| format!("cannot open {}", named.path().display()))?;
        Ok(Self(file))
    }

    /// Where another process of ours opens it (proc_pid_fd(5)).
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!(
            "/proc/{}/fd/{}",
            std::process::id(),
            self.0.as_raw_fd()
        ))
    }
}

/// A file of zeros that takes no room.
pub fn sized(path: &Path, size: u64) -> Result<()> {
    File::create(path)
        .and_then(|file| file.set_len(size))
        .with_context(|| format!("cannot create {}", path.display()))
}

/// Makes a file system with the contents of `tree` on `disk`, which has its size already.
///
/// A tree of another user's namespace (`ours` false) is read from within that namespace. There `disk` belongs to
/// nobody, and its folder may be closed: hence it is handed over open, and writable for everybody meanwhile.
fn make_file_system(disk: &Path, tree: &Path, ours: bool) -> Result<()> {
    let mke2fs = tool("mke2fs")?;
    let mut command = if ours {
        Command::new(mke2fs)
    } else {
        unshared(&mke2fs)
    };
    let permissions = |mode| {
        fs::set_permissions(disk, fs::Permissions::from_mode(mode))
            .with_context(|| format!("cannot change the mode of {}", disk.display()))
    };
    if !ours {
        permissions(0o666)?;
    }
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(disk)
        .with_context(|| format!("cannot open {}", disk.display()))?;
    let output = command
        .args(FEATURES)
        .args(["-E", EXTENDED, "-d"])
        .arg(tree)
        .arg("/proc/self/fd/0")
        .stdin(file)
        .output()
        .context("cannot start mke2fs")?;
    if !ours {
        permissions(0o600)?;
    }
    if !output.status.success() {
        bail!(
            "mke2fs could not make a disk of {} ({}): {}",
            tree.display(),
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(())
}

/// `program` in the user namespace in which mmdebstrap made the image: there the tree's owners are root and the users
/// that they are for the guest.
fn unshared(program: &Path) -> Command {
    let mut command = Command::new("mmdebstrap");
    command.arg("--unshare-helper").arg(program);
    command
}

/// The path of a program of [`packages::MACHINE`] or [`packages::LOADER`].
pub fn tool(name: &str) -> Result<PathBuf> {
    packages::find(name).ok_or_else(|| anyhow!("{name} is missing on this machine"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_kernel_of_an_image_is_found() {
        let boot = tempfile::tempdir().unwrap();
        let error = boot_file(boot.path(), "vmlinuz").unwrap_err();
        assert!(error.to_string().contains("no kernel"), "{error:#}");
        for name in ["vmlinuz-6.12", "config-6.12", "initrd.img-6.12"] {
            fs::write(boot.path().join(name), "").unwrap();
        }
        assert_eq!(
            boot_file(boot.path(), "vmlinuz").unwrap(),
            boot.path().join("vmlinuz-6.12")
        );
        assert_eq!(
            boot_file(boot.path(), "initrd").unwrap(),
            boot.path().join("initrd.img-6.12")
        );
        fs::write(boot.path().join("vmlinuz-6.13"), "").unwrap();
        assert!(boot_file(boot.path(), "vmlinuz").is_err());
    }

    #[test]
    fn a_payload_disk_has_the_files_and_no_name() {
        let payload = tempfile::tempdir().unwrap();
        fs::write(payload.path().join("hello"), "from the host\n").unwrap();
        let disk = PayloadDisk::with(payload.path()).unwrap();
        assert_eq!(fs::metadata(disk.path()).unwrap().len(), PAYLOAD_SIZE);
        let text = debugfs(&disk.path(), &[], "cat /hello", Path::new("/")).unwrap();
        assert_eq!(text, "from the host\n");
        let listed = debugfs(&disk.path(), &[], "ls -p /", Path::new("/")).unwrap();
        assert!(!listed.contains("lost+found"), "{listed}");
        let target = fs::read_link(disk.path()).unwrap();
        assert!(
            target.to_string_lossy().ends_with(" (deleted)"),
            "{}",
            target.display()
        );
    }

    #[test]
    fn a_file_added_to_a_disk_reads_back() {
        let folder = tempfile::tempdir().unwrap();
        let disk = folder.path().join("disk");
        sized(&disk, 16 << 20).unwrap();
        let tree = tempfile::tempdir().unwrap();
        fs::create_dir(tree.path().join("etc")).unwrap();
        make_file_system(&disk, tree.path(), true).unwrap();
        add(&disk, folder.path(), "/etc/new", "text\n").unwrap();
        let error = add(&disk, folder.path(), "/no-such-folder/new", "text\n").unwrap_err();
        assert!(
            error.to_string().contains("/no-such-folder/new"),
            "{error:#}"
        );
    }
}
