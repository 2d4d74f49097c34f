//! GRUB boots multi-core from an entry of its generator, once and unattended, and the next boot is normal again.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::{LOADER, Scenario};
use crate::harness::boots;
use crate::harness::command;
use crate::harness::outcome::{Verdict, step};

pub const SCENARIO: Scenario = Scenario {
    name: "bench-boot-grub",
    tiers: LOADER,
    quick: false,
    full: true,
    exclusive: false,
    timeout_s: 600,
    boots: &[install_grub, prepare, in_the_profile, normal_again],
};

/// As Debian's package sets it up; nobody is there to choose.
const DEFAULTS: &str = r#"GRUB_DEFAULT=0
GRUB_TIMEOUT=0
GRUB_DISTRIBUTOR=Debian
GRUB_CMDLINE_LINUX_DEFAULT="quiet"
GRUB_TERMINAL=console
GRUB_DISABLE_OS_PROBER=true
"#;
/// What this boot was told and GRUB's generator says by itself.
const GENERATED: [&str; 5] = ["initrd=", "root=", "rw", "quiet", "systemd.machine_id="];
const CONFIGURATION: &str = "/boot/grub/grub.cfg";

/// Takes systemd-boot's place.
fn install_grub() -> Verdict {
    command::ok(&["bootctl", "--quiet", "remove"])?;
    std::fs::remove_dir_all("/boot/efi/loader").context("systemd-boot's folder")?;
    let line = std::fs::read_to_string("/proc/cmdline")?;
    let own: Vec<&str> = line
        .split_whitespace()
        .filter(|word| !GENERATED.iter().any(|generated| word.starts_with(generated)))
        .collect();
    let defaults = format!("{DEFAULTS}GRUB_CMDLINE_LINUX=\"{}\"\n", own.join(" "));
    std::fs::write("/etc/default/grub", defaults)?;
    command::ok(&[
        "grub-install",
        "--target=x86_64-efi",
        "--efi-directory=/boot/efi",
        "--bootloader-id=debian",
    ])?;
    command::ok(&["update-grub"])?;
    step("GRUB is installed");
    boots::restart()
}

fn prepare() -> Verdict {
    by_grub()?;
    boots::set_up()?;
    boots::regenerate()?;
    let made = std::fs::read_to_string(CONFIGURATION)?;
    // What a kernel's package runs gives the same.
    command::ok(&["update-grub"])?;
    let generated = std::fs::read_to_string(CONFIGURATION)?;
    for profile in boots::PROFILES {
        for text in [&made, &generated] {
            let line = text
                .lines()
                .find(|line| line.contains(&format!("bench_profile={profile}")));
            ensure!(line.is_some(), "no entry for {profile} in {text}");
        }
    }
    step("update-grub makes the entries too");
    boots::restart_into("multi-core")
}

fn in_the_profile() -> Verdict {
    by_grub()?;
    boots::is_in("multi-core")?;
    boots::restart()
}

fn normal_again() -> Verdict {
    by_grub()?;
    boots::is_normal()
}

/// Fails unless GRUB has booted this.
fn by_grub() -> Result<()> {
    let line = std::fs::read_to_string("/proc/cmdline")?;
    ensure!(line.starts_with("BOOT_IMAGE="), "{line}");
    ensure!(!Path::new("/boot/efi/EFI/systemd").exists(), "systemd-boot");
    Ok(())
}
