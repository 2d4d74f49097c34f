//! A recorded tree that the service prepares in a container, where no knob of the kernel may be touched.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use super::service;

/// Where it lies.
pub const TREE: &str = "/var/lib/bench-tree";
/// The machine file that suits it.
const MACHINE: &str = "/opt/workload-guard/config/machine.toml";

/// What the tree has beside the topology: a normal boot, and settings as a distribution has them.
const FILES: [(&str, &str); 6] = [
    ("proc/cmdline", "root=/dev/nvme0n1p2 rw quiet\n"),
    ("proc/swaps", "Filename\tType\tSize\tUsed\tPriority\n"),
    ("proc/sys/vm/stat_interval", "1\n"),
    ("proc/sys/kernel/numa_balancing", "1\n"),
    ("proc/sys/kernel/perf_event_paranoid", "2\n"),
    ("proc/irq/default_smp_affinity", "ffffffff\n"),
];

/// Installs the service and has it prepare a Ryzen 9 9950X that is nothing but files.
pub fn install() -> Result<()> {
    bench_trees::expand(bench_trees::topology("ryzen-9950x"), Path::new(TREE))?;
    for (name, text) in FILES {
        write(name, text)?;
    }
    write(
        "etc/bench-profile/machine.toml",
        &std::fs::read_to_string(MACHINE)?,
    )?;
    service::install()?;
    service::set(&format!(
        "ExecStart=\nExecStart=/usr/bin/bench-prepd --root {TREE}"
    ))
}

/// A file of the tree.
pub fn path(name: &str) -> PathBuf {
    Path::new(TREE).join(name)
}

/// Writes one.
pub fn write(name: &str, text: &str) -> Result<()> {
    let path = path(name);
    std::fs::create_dir_all(path.parent().expect("a folder"))?;
    Ok(std::fs::write(path, text)?)
}

/// Fails unless the settings are those of a normal boot, byte for byte.
pub fn is_untouched() -> Result<()> {
    for (name, text) in FILES.iter().filter(|(name, _)| *name != "proc/cmdline") {
        let now = std::fs::read_to_string(path(name))?;
        ensure!(now == *text, "{name} is {now:?}, not {text:?}");
    }
    Ok(())
}

/// Fails unless they are those of an isolating profile.
pub fn is_prepared() -> Result<()> {
    for (name, text) in [
        ("proc/sys/vm/stat_interval", "120"),
        ("proc/sys/kernel/numa_balancing", "0"),
        ("proc/sys/kernel/perf_event_paranoid", "-1"),
    ] {
        let now = std::fs::read_to_string(path(name))?;
        ensure!(now.trim() == text, "{name} is {now:?}, not {text:?}");
    }
    Ok(())
}
