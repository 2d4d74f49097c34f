//! The state of the isolating profiles, as the kernel itself shows it: the older tools' table of what each changes.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::command;
use super::kernel;
use super::product::CLI;

/// What the machine file says, as `bench config` understood it.
pub struct Config(Value);

impl Config {
    /// Of this machine.
    pub fn read() -> Result<Config> {
        let text = command::ok(&[CLI, "bench", "config", "--json"])?;
        Ok(Config(serde_json::from_str(&text)?))
    }

    /// A set of CPUs, as bits.
    pub fn cpus(&self, name: &str) -> Result<u64> {
        let hex = self.mask(name)?["mask"].as_str().context("no mask")?;
        Ok(u64::from_str_radix(&hex.replace(',', ""), 16)?)
    }

    /// The same as a list.
    pub fn list(&self, name: &str) -> Result<&str> {
        self.mask(name)?["cpus"].as_str().context("no list")
    }

    /// The units that a profile masks.
    pub fn masked(&self) -> Result<Vec<&str>> {
        let units = self.0["machine"]["masked_units"].as_array();
        let units = units.context("no units")?.iter();
        units.map(|unit| unit.as_str().context("no name")).collect()
    }

    fn mask(&self, name: &str) -> Result<&Value> {
        let masks = self.0["masks"].as_array().context("no masks")?;
        let mask = masks.iter().find(|mask| mask["name"] == name);
        mask.with_context(|| format!("no mask of {name}"))
    }
}

/// Fails unless the machine is as both isolating profiles want it, with the CPUs offline that multi-core parks or not.
pub fn isolating(parked: bool) -> Result<()> {
    let config = Config::read()?;
    let off = if parked { config.cpus("parked")? } else { 0 };
    ensure!(off != 0 || !parked, "the machine file parks nothing");
    let housekeeping = config.cpus("housekeeping")? & !off;
    for file in [
        "/proc/irq/default_smp_affinity",
        "/sys/devices/virtual/workqueue/cpumask",
    ] {
        let mask = kernel::mask(file)?;
        ensure!(
            mask == housekeeping,
            "{file} is {mask:x}, not {housekeeping:x}"
        );
    }
    let (online, expected) = (online()?, config.cpus("expected_online")? & !off);
    ensure!(online == expected, "online: {online:x}, not {expected:x}");
    kernel::says("/sys/devices/system/cpu/smt/control", "off")?;
    settings()
}

/// Fails unless the kernel's settings are those that all profiles share.
pub fn settings() -> Result<()> {
    kernel::says("/proc/sys/vm/stat_interval", "120")?;
    kernel::says("/proc/sys/kernel/perf_event_paranoid", "-1")?;
    kernel::says("/proc/sys/kernel/kptr_restrict", "0")?;
    ensure!(kernel::swaps()?.is_empty(), "{:?}", kernel::swaps()?);
    Ok(())
}

/// The CPUs that are online, as bits.
pub fn online() -> Result<u64> {
    bits(&std::fs::read_to_string("/sys/devices/system/cpu/online")?)
}

/// A list of CPUs as bits.
pub fn bits(list: &str) -> Result<u64> {
    let mut bits = 0;
    for part in list.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        for cpu in first.parse::<u32>()?..=last.parse()? {
            bits |= 1 << cpu;
        }
    }
    Ok(bits)
}
