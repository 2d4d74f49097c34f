//! systemd-boot boots multi-core from an entry that our hooks wrote, once and unattended, and the next boot is normal
//! again. A kernel that is installed meanwhile gets entries for the profiles, and a normal entry without any of this
//! boot's command line.

use anyhow::{Context, Result, ensure};

use super::{LOADER, Scenario};
use crate::harness::boots::{self, ENTRIES};
use crate::harness::command;
use crate::harness::outcome::{Verdict, step};

pub const SCENARIO: Scenario = Scenario {
    name: "bench-boot-multi-core-once",
    tiers: LOADER,
    quick: false,
    full: true,
    exclusive: false,
    timeout_s: 600,
    boots: &[prepare, in_the_profile, boots::is_normal],
};

/// The entries as they were before the first restart.
const BEFORE: &str = "/var/lib/scenario-entries";

fn prepare() -> Verdict {
    boots::set_up()?;
    let normal = only_normal()?;
    boots::regenerate()?;
    ensure!(only_normal()? == normal, "the normal entry is another one");
    ensure!(boots::entries()?.len() == 1 + boots::PROFILES.len(), "{:?}", boots::entries()?.keys());
    boots::regenerate()?;
    std::fs::write(BEFORE, serde_json::to_string(&boots::entries()?)?)?;
    boots::restart_into("multi-core")
}

fn in_the_profile() -> Verdict {
    boots::is_in("multi-core")?;
    install_a_kernel()?;
    let before: std::collections::BTreeMap<String, String> =
        serde_json::from_str(&std::fs::read_to_string(BEFORE)?)?;
    let now = boots::entries()?;
    for (name, text) in &before {
        let new = now.get(name).with_context(|| format!("{name} is gone"))?;
        ensure!(words(new) == words(text), "{name} was\n{text}\nand is now\n{new}");
    }
    ensure!(now.len() == before.len(), "{:?}", now.keys());
    step("a kernel installed in the profile leaves every entry as it was, the normal one clean");
    boots::restart()
}

/// As the installation of the running kernel's package does it, which is there: its hooks have kernel-install(8) write
/// a normal entry, and that one takes the command line of the running boot.
fn install_a_kernel() -> Result<()> {
    ensure!(
        !std::path::Path::new("/etc/kernel/cmdline").exists(),
        "kernel-install would not look at the running boot"
    );
    let release = command::ok(&["uname", "--kernel-release"])?;
    let normal: Vec<String> = boots::entries()?.into_keys().filter(|name| is_normal(name)).collect();
    for name in &normal {
        std::fs::remove_file(format!("{ENTRIES}/{name}"))?;
    }
    // The initial RAM disk is there and stays: making it anew takes minutes under emulation, and is not what is tried.
    let said = command::ok(&[
        "env",
        "INITRD=No",
        "DEBIAN_FRONTEND=noninteractive",
        "dpkg-reconfigure",
        &format!("linux-image-{release}"),
    ])?;
    step(format_args!("dpkg-reconfigure linux-image-{release}: {said}"));
    Ok(())
}

fn only_normal() -> Result<(String, String)> {
    let mut normal = boots::entries()?.into_iter().filter(|(name, _)| is_normal(name));
    let one = normal.next().context("no normal entry")?;
    ensure!(normal.next().is_none(), "more than one kernel");
    Ok(one)
}

/// The words of each line: how many blanks are between them is nobody's matter.
fn words(entry: &str) -> Vec<Vec<&str>> {
    entry
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect()
}

fn is_normal(name: &str) -> bool {
    !name.contains("-bench-")
}
