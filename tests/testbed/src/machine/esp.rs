//! A disk with an EFI system partition, made without mounting anything: systemd-boot, and one entry with the image's
//! kernel. It is only what the first boot takes: in the guest, that boot puts in their place what a Debian would have.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::disk;
use super::firmware::ESP;
use crate::process;

/// Of the disk, in bytes; sparse. Room for several kernels, and enough for FAT32.
const SIZE: u64 = 512 << 20;
/// Where the partition begins.
const START: u64 = 1 << 20;
/// Of the partition: a copy of the partition table is at the disk's end.
const PARTITION: u64 = SIZE - 2 * START;
/// The type of an EFI system partition (UEFI specification, 5.3.3).
const TYPE: &str = "C12A7328-F81F-11D2-BA4B-00A0C93EC93B";

/// The file system's label, by which the guest mounts it.
pub const LABEL: &str = "ESP";
/// Where the guest mounts it.
pub const MOUNT_POINT: &str = "/boot/efi";
/// Folder and entry of the first boot.
const FIRST: &str = "first";

/// Names systemd-boot as what firmware boots without knowing anything of the disk.
const FALLBACK: &str = "EFI/BOOT/BOOTX64.EFI";
/// Of the image's tree; its file name's end tells whether it is signed.
const SYSTEMD_BOOT: &str = "usr/lib/systemd/boot/efi";

/// As much as a Debian has on it; nobody is there to choose.
const LOADER: &str = "timeout 0\n";

/// The kernel's command line of the first boot; kernel-install takes it over.
///
/// no_timer_check: where the host is busy, an emulated timer looks broken, and the kernel would go on with another way
/// of interrupts that loses some.
const COMMAND_LINE: &str = "root=/dev/vda rw console=ttyS0 quiet panic=-1 psi=1 no_timer_check";

/// Makes it in the folder `directory`, with what it takes from the image's `tree`.
pub fn make(tree: &Path, directory: &Path) -> Result<()> {
    let disk = directory.join(ESP);
    disk::sized(&disk, SIZE)?;
    partition(&disk, directory)?;
    process::output_of(
        Command::new(disk::tool("mkfs.vfat")?)
            .args(["-F", "32", "-n", LABEL, "--offset"])
            .arg((START / 512).to_string())
            .arg(&disk)
            .arg((PARTITION / 1024).to_string()),
    )?;
    let volume = format!("{}@@{START}", disk.display());
    for folder in ["EFI", "EFI/BOOT", "loader", "loader/entries", FIRST] {
        mtool("mmd", &volume, &[Path::new(&format!("::{folder}"))])?;
    }
    let put = |source: &Path, name: &str| {
        mtool("mcopy", &volume, &[source, Path::new(&format!("::{name}"))])
    };
    put(&systemd_boot(tree)?, FALLBACK)?;
    put(
        &disk::boot_file(&tree.join("boot"), "vmlinuz")?,
        &format!("{FIRST}/linux"),
    )?;
    put(
        &disk::boot_file(&tree.join("boot"), "initrd")?,
        &format!("{FIRST}/initrd"),
    )?;
    let text = directory.join("addition");
    for (name, contents) in [
        ("loader/loader.conf", LOADER.to_owned()),
        (&format!("loader/entries/{FIRST}.conf"), first_entry()),
    ] {
        fs::write(&text, contents).with_context(|| format!("cannot write {}", text.display()))?;
        put(&text, name)?;
    }
    fs::remove_file(&text).with_context(|| format!("cannot remove {}", text.display()))
}

/// The entry of the first boot.
pub fn first_entry() -> String {
    format!("title {FIRST}\nlinux /{FIRST}/linux\ninitrd /{FIRST}/initrd\noptions {COMMAND_LINE}\n")
}

/// Writes a partition table with the one partition.
fn partition(disk: &Path, scratch: &Path) -> Result<()> {
    let layout = scratch.join("layout");
    fs::write(
        &layout,
        format!(
            "label: gpt\nstart={}, size={}, type={TYPE}\n",
            START / 512,
            PARTITION / 512
        ),
    )
    .with_context(|| format!("cannot write {}", layout.display()))?;
    let output = Command::new(disk::tool("sfdisk")?)
        .arg("--quiet")
        .arg(disk)
        .stdin(Stdio::from(File::open(&layout)?))
        .output()
        .context("cannot start sfdisk")?;
    fs::remove_file(&layout).with_context(|| format!("cannot remove {}", layout.display()))?;
    if !output.status.success() {
        bail!(
            "sfdisk could not partition {} ({}): {}",
            disk.display(),
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(())
}

/// Runs one of mtools on the file system `volume`.
fn mtool(name: &str, volume: &str, arguments: &[&Path]) -> Result<()> {
    process::output_of(
        Command::new(disk::tool(name)?)
            .args(["-i", volume])
            .args(arguments),
    )
    .map(drop)
}

/// The image's systemd-boot, signed or not: nobody checks it here.
fn systemd_boot(tree: &Path) -> Result<PathBuf> {
    let folder = tree.join(SYSTEMD_BOOT);
    let name = fs::read_dir(&folder)
        .with_context(|| format!("cannot read {}", folder.display()))?
        .flatten()
        .map(|entry| entry.file_name())
        .find(|name| name.to_string_lossy().starts_with("systemd-bootx64.efi"))
        .with_context(|| format!("no systemd-boot in {}", folder.display()))?;
    Ok(folder.join(name))
}

/// Run in the guest at the end of its first boot: what Debian's systemd-boot package does when it is installed where
/// there is an EFI system partition. The kernel's entry comes from kernel-install, by the command line of this boot.
pub fn settle() -> String {
    format!(
        r#"
set -eu
bootctl --quiet --make-entry-directory=yes install
bootctl is-installed >/dev/null
for kernel in /boot/vmlinuz-*; do
    kernel-install add "${{kernel#/boot/vmlinuz-}}" "$kernel"
done
# Where the host is busy, a boot may find the clock's frequency to be a twentieth of what it is, and the guest's time
# flies. What this boot has found and refined, those to come are told; else the kernel watches its clock.
clock=$(journalctl --boot --dmesg --output=cat |
    sed -n 's/^tsc: Refined TSC clocksource calibration: \([0-9]*\)\.\([0-9]\{{3\}}\) MHz$/\1\2/p')
if [ -n "$clock" ]; then
    sed -i "s/^options .*/& tsc_early_khz=$clock tsc=reliable/" {MOUNT_POINT}/loader/entries/*-*.conf
fi
rm -r {MOUNT_POINT}/{FIRST} {MOUNT_POINT}/loader/entries/{FIRST}.conf
[ "$(ls {MOUNT_POINT}/loader/entries | wc -l)" = 1 ]
sync
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_entry_names_what_is_on_the_partition() {
        let entry = first_entry();
        for line in ["linux /first/linux", "initrd /first/initrd"] {
            assert!(entry.lines().any(|found| found == line), "{entry}");
        }
        assert!(
            entry.contains(&format!("options {COMMAND_LINE}\n")),
            "{entry}"
        );
        assert!(!COMMAND_LINE.contains("bench"), "a normal boot");
    }

    #[test]
    fn systemd_boot_is_found_signed_or_not() {
        for name in ["systemd-bootx64.efi", "systemd-bootx64.efi.signed"] {
            let tree = tempfile::tempdir().unwrap();
            let folder = tree.path().join(SYSTEMD_BOOT);
            fs::create_dir_all(&folder).unwrap();
            assert!(systemd_boot(tree.path()).is_err());
            fs::write(folder.join("linuxx64.efi.stub"), "").unwrap();
            fs::write(folder.join(name), "").unwrap();
            assert_eq!(systemd_boot(tree.path()).unwrap(), folder.join(name));
        }
    }
}
