//! The running machine's own settings, read past the product.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use super::command;

/// Everything that a profile may change.
const CHANGED: [&str; 9] = [
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/cpu/smt/control",
    "/sys/devices/virtual/workqueue/cpumask",
    "/proc/irq/default_smp_affinity",
    "/proc/sys/kernel/watchdog_cpumask",
    "/proc/sys/kernel/sched_autogroup_enabled",
    "/proc/sys/kernel/perf_event_paranoid",
    "/proc/sys/kernel/kptr_restrict",
    "/proc/sys/vm/stat_interval",
];

/// Some of what no profile changes: part of what is measured.
const LEFT_ALONE: [&str; 6] = [
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/kernel/mm/transparent_hugepage/defrag",
    "/proc/sys/kernel/randomize_va_space",
    "/proc/sys/vm/swappiness",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    "/sys/devices/system/cpu/vulnerabilities/spectre_v2",
];

/// A swap file, and the file behind a swap partition.
const SWAPS: [&str; 2] = ["/var/swap", "/var/swap-partition"];

/// Files with their exact bytes.
pub type State = BTreeMap<String, String>;

/// Everything that a profile may change and this kernel has, each interrupt's mask and the swap areas among it.
pub fn changed() -> Result<State> {
    let mut state = read(&CHANGED);
    for folder in std::fs::read_dir("/proc/irq")? {
        let mask = folder?.path().join("smp_affinity");
        if let Ok(text) = std::fs::read_to_string(&mask) {
            state.insert(mask.display().to_string(), text);
        }
    }
    state.insert("swap".into(), swaps()?.join(" "));
    ensure!(state.len() > CHANGED.len(), "too little to see: {state:?}");
    Ok(state)
}

/// What no profile changes.
pub fn left_alone() -> Result<State> {
    let state = read(&LEFT_ALONE);
    ensure!(state.len() > 2, "too little to see: {state:?}");
    Ok(state)
}

fn read(files: &[&str]) -> State {
    files
        .iter()
        .filter_map(|file| Some(((*file).to_owned(), std::fs::read_to_string(file).ok()?)))
        .collect()
}

/// Fails with each file that differs.
pub fn is_same(before: &State, now: &State) -> Result<()> {
    let differing: Vec<String> = before
        .iter()
        .filter(|(name, text)| now.get(*name) != Some(text))
        .map(|(name, text)| format!("{name}: {text:?}, now {:?}", now.get(name)))
        .collect();
    ensure!(differing.is_empty(), "{}", differing.join("\n"));
    Ok(())
}

/// Fails unless a file says `word`.
pub fn says(file: &str, word: &str) -> Result<()> {
    let text = std::fs::read_to_string(file).with_context(|| file.to_owned())?;
    ensure!(text.trim() == word, "{file} says {text:?}, not {word:?}");
    Ok(())
}

/// The CPUs of a mask file, as bits.
pub fn mask(file: &str) -> Result<u64> {
    let text = std::fs::read_to_string(file).with_context(|| file.to_owned())?;
    // Words of 32 bits between commas.
    Ok(u64::from_str_radix(&text.trim().replace(',', ""), 16)?)
}

/// The swap areas in use: name and priority, in no order of the kernel's.
pub fn swaps() -> Result<Vec<String>> {
    let text = std::fs::read_to_string("/proc/swaps")?;
    let area = |line: &str| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words.as_slice() {
            [name, _, _, _, priority] => Ok(format!("{name} {priority}")),
            _ => bail!("/proc/swaps has {line:?}"),
        }
    };
    let mut areas: Vec<String> = text.lines().skip(1).map(area).collect::<Result<_>>()?;
    areas.sort();
    Ok(areas)
}

/// Takes a swap file and a partition into use, each with a priority of its own.
pub fn swap_on() -> Result<()> {
    for file in SWAPS {
        command::ok(&["fallocate", "--length", "16M", file])?;
        command::ok(&["chmod", "600", file])?;
    }
    command::ok(&["modprobe", "loop"])?;
    let device = command::ok(&["losetup", "--find", "--show", SWAPS[1]])?;
    for (area, priority) in [(SWAPS[0], "7"), (device.as_str(), "5")] {
        command::ok(&["mkswap", area])?;
        command::ok(&["swapon", "--priority", priority, area])?;
    }
    let expected = [format!("{device} 5"), format!("{} 7", SWAPS[0])];
    ensure!(swaps()? == expected, "{:?}", swaps()?);
    Ok(())
}

/// Writes the machine file that `bench plan` proposes, for emulated CPUs: the host gives them two real ones at most.
pub fn plan(cli: &str) -> Result<()> {
    let plan = command::ok(&[cli, "bench", "plan"])?;
    let lax: Vec<String> = plan
        .lines()
        .map(|line| match line.trim_start().starts_with("divisor") {
            true => "divisor = 3".to_owned(),
            false => line.to_owned(),
        })
        .collect();
    let file = Path::new("/etc/bench-profile/machine.toml");
    std::fs::create_dir_all(file.parent().expect("a folder"))?;
    Ok(std::fs::write(file, lax.join("\n"))?)
}
