//! Boots into profiles and back: a scenario of several boots is one function for each, which ends by restarting.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::command::{self, Ended};
use super::kernel;
use super::outcome::step;
use super::prepared::{self, Config};
use super::product::{CLI, bench, ended_with, said};
use super::service::{self, property};
use super::wait;

/// All profiles.
pub const PROFILES: [&str; 3] = ["single-core", "multi-core", "unlimited"];

/// For a boot to end after the agent is there, and for a canary that finds the host's CPUs busy.
pub const PATIENCE: Duration = Duration::from_secs(240);

/// What applies the booted profile.
pub const PREP: &str = "bench-prep.service";
/// Something that a normal boot starts, and that the machine file has masked.
const NOISE: &str = "scenario-noise.service";
const NOISE_UNIT: &str =
    "[Service]\nExecStart=/usr/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n";
/// What a normal boot swaps to.
const SWAP: &str = "/var/swap";
/// Where systemd-boot's entries are.
pub const ENTRIES: &str = "/boot/efi/loader/entries";

/// Installs the product with its hooks for this boot and those to come, on a machine that swaps and has a unit to mask.
pub fn set_up() -> Result<()> {
    service::install()?;
    command::ok(&["systemctl", "enable", "--quiet", PREP])?;
    std::fs::write(format!("/etc/systemd/system/{NOISE}"), NOISE_UNIT)?;
    command::ok(&["systemctl", "enable", "--quiet", NOISE])?;
    kernel::plan(CLI)?;
    edit(Path::new("/etc/bench-profile/machine.toml"), |text| {
        text.replace("masked = [\n", &format!("masked = [\n    \"{NOISE}\",\n"))
    })?;
    ensure!(Config::read()?.masked()?.contains(&NOISE), "no {NOISE}");
    command::ok(&["fallocate", "--length", "16M", SWAP])?;
    command::ok(&["chmod", "600", SWAP])?;
    command::ok(&["mkswap", SWAP])?;
    edit(Path::new("/etc/fstab"), |text| {
        format!("{text}{SWAP} none swap sw 0 0\n")
    })
}

/// Rewrites a file; fails where that changes nothing.
pub fn edit(path: &Path, change: impl FnOnce(&str) -> String) -> Result<()> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let new = change(&text);
    ensure!(new != text, "{} needs no change: {text}", path.display());
    Ok(std::fs::write(path, new)?)
}

/// Has the product write the boot entries.
pub fn regenerate() -> Result<()> {
    let ended = bench(&["boot-entries", "regenerate"])?;
    ended_with(&ended, 0, "boot-entries regenerate")?;
    step(format_args!("{}", ended.said()));
    Ok(())
}

/// Restarts into `profile`, once.
pub fn restart_into(profile: &str) -> Result<()> {
    let ended = bench(&["reboot", "--once", profile])?;
    ended_with(&ended, 0, "reboot --once")?;
    step(format_args!("restarting into {profile}"));
    Ok(())
}

/// Restarts into whatever comes.
pub fn restart() -> Result<()> {
    command::ok(&["systemctl", "reboot"])?;
    step("restarting");
    Ok(())
}

/// Fails unless this boot is into `profile`, prepared before anybody could log in, asserted by `bench status`, and in
/// the state that the kernel itself shows.
pub fn is_in(profile: &str) -> Result<()> {
    is_up()?;
    let line = std::fs::read_to_string("/proc/cmdline")?;
    step(format_args!("booted with {}", line.trim()));
    prepared_before_logins()?;
    ensure!(bench(&["which"])?.stdout.trim() == profile, "{line}");
    let asserted = wait::until("the host has time for the canary", PATIENCE, || {
        again_where_the_host_is_busy()?;
        let ended = bench(&["status", "--expect", profile])?;
        Ok((!is_of_a_busy_host(&ended)).then_some(ended))
    })?;
    ended_with(&asserted, 0, &format!("--expect {profile}"))?;
    step(format_args!("--expect {profile} holds"));
    for other in PROFILES.iter().filter(|other| **other != profile) {
        let ended = bench(&["status", "--expect", other])?;
        ended_with(&ended, 1, &format!("--expect {other}"))?;
        said(&ended, &format!("booted into {profile}, not {other}"))?;
    }
    step("the other profiles are refused");
    shows(profile)
}

/// Fails unless this is a normal boot, in which no profile is asserted.
pub fn is_normal() -> Result<()> {
    is_up()?;
    let line = std::fs::read_to_string("/proc/cmdline")?;
    for ours in [
        "bench_profile",
        "nosmt",
        "isolcpus",
        "nohz_full",
        "systemd.mask",
    ] {
        ensure!(!line.contains(ours), "{line}");
    }
    for (unit, property, state) in [
        (NOISE, "ActiveState", "active"),
        (PREP, "ConditionResult", "no"),
        (PREP, "ActiveState", "inactive"),
    ] {
        let now = service::property(unit, property)?;
        ensure!(now == state, "{unit}: {property} is {now}, not {state}");
    }
    for profile in PROFILES {
        let ended = bench(&["status", "--expect", profile])?;
        ended_with(&ended, 1, &format!("--expect {profile} on a normal boot"))?;
        for reason in [
            format!("a normal boot, not {profile}"),
            format!("the kernel's command line lacks bench_profile={profile}"),
            format!("swap: on: {SWAP}"),
            "vm.stat_interval is 1; expected: 120".to_owned(),
        ] {
            said(&ended, &reason)?;
        }
    }
    kernel::says("/sys/devices/system/cpu/smt/control", "on")?;
    ensure!(isolated()?.is_empty(), "isolated: {}", isolated()?);
    ensure!(kernel::swaps()?.len() == 1, "{:?}", kernel::swaps()?);
    step("a normal boot, and every profile is refused with its reasons");
    Ok(())
}

/// Waits until the boot has come to its end.
fn is_up() -> Result<()> {
    wait::until_true("multi-user.target is reached", PATIENCE, || {
        Ok(property("multi-user.target", "ActiveState")? == "active")
    })
}

/// bench-prep.service, as the boot started it, has come to its end before multi-user.target is reached.
fn prepared_before_logins() -> Result<()> {
    let at = |unit, name| -> Result<u64> { Ok(property(unit, name)?.parse()?) };
    let ended = at(PREP, "ExecMainExitTimestampMonotonic")?;
    let reached = at("multi-user.target", "ActiveEnterTimestampMonotonic")?;
    ensure!(ended > 0, "{PREP} has not run");
    ensure!(
        ended <= reached,
        "{PREP} ended at {ended}, multi-user.target was reached at {reached}"
    );
    step(format_args!(
        "{PREP} ended {} ms before multi-user.target",
        (reached - ended) / 1000
    ));
    Ok(())
}

/// Applies once more where the canary alone failed. The host's two CPUs are this machine's eight, and others may use
/// them: then work spreads, and is no faster for it.
fn again_where_the_host_is_busy() -> Result<()> {
    if property(PREP, "ActiveState")? == "active" {
        return Ok(());
    }
    let said = command::ok(&["journalctl", "--boot", "--unit", PREP, "--output", "cat"])?;
    ensure!(said.contains("CANARY FAILED"), "{PREP}: {said}");
    step("the canary found the host busy");
    command::run(&["systemctl", "restart", PREP]).map(drop)
}

fn is_of_a_busy_host(ended: &Ended) -> bool {
    ended.status == 1 && ended.said().contains("CANARY FAILED")
}

/// What the kernel shows of the profile, past the product.
fn shows(profile: &str) -> Result<()> {
    let config = Config::read()?;
    let bench = config.list("bench")?;
    let (out_of_balance, without_tick) = match profile {
        "single-core" => (bench, bench),
        "multi-core" => ("", bench),
        _ => ("", ""),
    };
    ensure!(isolated()? == out_of_balance, "isolated: {}", isolated()?);
    let tick = cpu_file("nohz_full")?;
    ensure!(tick == without_tick, "nohz_full: {tick}");
    if profile == "unlimited" {
        let all = (1 << 8) - 1;
        ensure!(prepared::online()? == all, "{:x}", prepared::online()?);
        kernel::says("/sys/devices/system/cpu/smt/control", "on")?;
        let mask = kernel::mask("/proc/irq/default_smp_affinity")?;
        ensure!(mask == all, "default_smp_affinity: {mask:x}");
        prepared::settings()?;
    } else {
        prepared::isolating(profile == "multi-core")?;
        let bench = config.cpus("bench")?;
        for file in [SERIAL, "/proc/sys/kernel/watchdog_cpumask"] {
            let cpus = std::fs::read_to_string(file).with_context(|| file.to_owned())?;
            let on = prepared::bits(&cpus)?;
            ensure!(on & bench == 0, "{file} is {cpus}");
        }
    }
    for unit in config.masked()? {
        let state = property(unit, "LoadState")?;
        ensure!(state == "masked", "{unit} is {state}, not masked");
    }
    ensure!(
        property(NOISE, "ActiveState")? == "inactive",
        "{NOISE} runs"
    );
    step("CPUs, interrupts, settings, swap and units are the profile's");
    Ok(())
}

/// The serial port's interrupt, which can be steered.
const SERIAL: &str = "/proc/irq/4/smp_affinity_list";

fn isolated() -> Result<String> {
    cpu_file("isolated")
}

/// A list of CPUs; some kernels write an empty one as "(null)".
fn cpu_file(name: &str) -> Result<String> {
    let text = std::fs::read_to_string(format!("/sys/devices/system/cpu/{name}"))?;
    Ok(text.trim().replace("(null)", ""))
}

/// systemd-boot's entries: file name and text.
pub fn entries() -> Result<BTreeMap<String, String>> {
    let mut entries = BTreeMap::new();
    for entry in std::fs::read_dir(ENTRIES)? {
        let path = entry?.path();
        let name = path.file_name().context("no name")?.to_string_lossy();
        entries.insert(name.into_owned(), std::fs::read_to_string(&path)?);
    }
    Ok(entries)
}
