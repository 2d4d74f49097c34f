//! Host packages: missing ones are printed, then installed when we may, else named in one error.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use anyhow::{Result, bail};

use crate::process::{self, Ended};
use crate::progress;
use crate::tail::Tail;

/// For a download over a slow line.
const DEADLINE: Duration = Duration::from_secs(15 * 60);

/// A Debian package, with the file that shows that it is there.
#[derive(Debug, Clone, Copy)]
pub struct Package {
    name: &'static str,
    /// A program, looked for on the PATH and in the sbin folders; or an absolute path.
    evidence: &'static str,
}

const fn package(name: &'static str, evidence: &'static str) -> Package {
    Package { name, evidence }
}

const MMDEBSTRAP: Package = package("mmdebstrap", "mmdebstrap");
const KEYRING: Package = package(
    "debian-archive-keyring",
    "/usr/share/keyrings/debian-archive-keyring.gpg",
);

/// What building an image takes.
pub const IMAGES: &[Package] = &[MMDEBSTRAP, KEYRING];

/// What building an image takes without root: a range of subordinate user ids, too.
pub const IMAGES_UNPRIVILEGED: &[Package] = &[MMDEBSTRAP, KEYRING, package("uidmap", "newuidmap")];

/// What the container tier takes.
pub const CONTAINER: &[Package] = &[package("systemd-container", "systemd-nspawn")];

/// What the machine tier takes.
pub const MACHINE: &[Package] = &[package("e2fsprogs", "mke2fs")];

/// What the loader tier takes beside: firmware for the guest, which is a plain file, and what makes its partition.
pub const LOADER: &[Package] = &[
    package("ovmf", "/usr/share/OVMF/OVMF_CODE_4M.fd"),
    package("fdisk", "sfdisk"),
    package("dosfstools", "mkfs.vfat"),
    package("mtools", "mcopy"),
];

/// What looks for mistakes in Debian packages.
pub const LINTIAN: &[Package] = &[package("lintian", "lintian")];

/// Makes sure that the packages are there.
///
/// # Errors
/// When some are missing and we are not root or not on Debian or Ubuntu: one error with the command to run.
pub fn require(packages: &[&[Package]]) -> Result<()> {
    let missing = missing(packages);
    if missing.is_empty() {
        return Ok(());
    }
    let command = format!(
        "apt-get install --no-install-recommends {}",
        missing.join(" ")
    );
    if !super::is_root() || !super::is_debian_like() || find("apt-get").is_none() {
        bail!(
            "packages are missing on this machine: {}; as root on Debian or Ubuntu: {command}",
            missing.join(", ")
        );
    }
    progress::say(&format!("missing host packages, installing: {command}"));
    install(&missing)
}

fn missing(packages: &[&[Package]]) -> Vec<&'static str> {
    packages
        .iter()
        .copied()
        .flatten()
        .filter(|package| find(package.evidence).is_none())
        .map(|package| package.name)
        .collect()
}

/// Where a program (or the file of an absolute path) is.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        // An ordinary user's PATH lacks the sbin folders, where mke2fs lives.
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(program))
        .find(|candidate| candidate.is_file())
}

fn install(names: &[&str]) -> Result<()> {
    if !lists_are_fresh(Path::new("/var/lib/apt/lists"), SystemTime::now()) {
        update()?;
    }
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    // Nothing that the machine's owner has is taken away for this.
    if apt_get_install(&names, &["--no-remove"])?.is_ok() {
        return Ok(());
    }
    // A mirror may have dropped what the lists still name.
    update()?;
    if let Err(output) = apt_get_install(&names, &[])? {
        bail!(
            "apt-get could not install {}; it says:\n{output}",
            names.join(" ")
        );
    }
    Ok(())
}

fn update() -> Result<()> {
    progress::say("apt-get update");
    if let Err(output) = apt_get(&["update"])? {
        bail!("apt-get update failed; it says:\n{output}");
    }
    Ok(())
}

fn apt_get_install(names: &[String], options: &[&str]) -> Result<Result<(), String>> {
    let mut arguments = vec!["install", "--yes", "--no-install-recommends"];
    arguments.extend(options);
    arguments.extend(names.iter().map(String::as_str));
    apt_get(&arguments)
}

/// Runs apt-get; the inner error is the end of its output.
fn apt_get(arguments: &[&str]) -> Result<Result<(), String>> {
    let mut command = Command::new("apt-get");
    command
        .args(["--quiet", "-o", "Dpkg::Use-Pty=0"])
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .env("LC_ALL", "C.UTF-8");
    let mut output = Tail::default();
    let ended = process::stream(command, DEADLINE, &mut |bytes| {
        output.feed(bytes, &mut |line| progress::hint(&format!("{line:.100}")));
    })?;
    progress::clear_hint();
    Ok(match ended {
        Ended::Exited(status) if status.success() => Ok(()),
        Ended::Exited(_) => Err(output.text()),
        Ended::TimedOut => Err(format!(
            "{}\n(no end within {} min)",
            output.text(),
            DEADLINE.as_secs() / 60
        )),
    })
}

/// Whether apt's lists exist and are younger than a week: older ones often name packages that are gone.
fn lists_are_fresh(folder: &Path, now: SystemTime) -> bool {
    const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);
    std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().contains("_Packages"))
        .filter_map(|entry| entry.metadata().ok()?.modified().ok())
        // A list from the future (a clock that was set back) is as good as a new one.
        .any(|modified| now.duration_since(modified).unwrap_or_default() < WEEK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_on_the_path_and_files_by_their_path() {
        assert!(find("sh").is_some());
        assert_eq!(find("/etc/passwd"), Some(PathBuf::from("/etc/passwd")));
        assert_eq!(find("no-such-program-anywhere"), None);
    }

    #[test]
    fn a_missing_package_is_named_by_its_package_name() {
        const NEEDED: &[Package] = &[
            package("bash", "sh"),
            package("the-package", "no-such-program-anywhere"),
        ];
        assert_eq!(missing(&[NEEDED, &[]]), ["the-package"]);
    }

    #[test]
    fn lists_are_fresh_for_a_week_only() {
        let folder = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        assert!(!lists_are_fresh(folder.path(), now));
        std::fs::write(folder.path().join("lock"), "").unwrap();
        assert!(!lists_are_fresh(folder.path(), now));
        std::fs::write(
            folder
                .path()
                .join("deb.debian.org_main_binary-amd64_Packages"),
            "",
        )
        .unwrap();
        assert!(lists_are_fresh(folder.path(), now));
        assert!(!lists_are_fresh(
            folder.path(),
            now + Duration::from_secs(8 * 24 * 3600)
        ));
        assert!(!lists_are_fresh(&folder.path().join("missing"), now));
    }
}
