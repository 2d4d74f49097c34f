//! The kernel's files that the knobs are about, read at one moment.

use std::collections::BTreeMap;

use bench_profile::cpus::CpuSet;
use bench_profile::requested::{STOPPED, SYSCTLS};

use crate::hands::Hands;
use crate::root::Root;

/// The CPUs' folder.
pub const CPUS: &str = "sys/devices/system/cpu";
/// The frequency policies' folder.
pub const CPUFREQ: &str = "sys/devices/system/cpu/cpufreq";
/// The list of swap areas.
pub const SWAPS: &str = "proc/swaps";

/// Files by path below the root, with their exact bytes. What cannot be read is not in it: a file that
/// is not there and one that the kernel does not let us read are alike not offered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    files: BTreeMap<String, String>,
    units: BTreeMap<String, bool>,
}

impl Snapshot {
    /// Reads all of them.
    pub fn read(root: &Root, hands: &mut dyn Hands) -> Self {
        let mut snapshot = Snapshot::default();
        for path in paths(root) {
            if let Ok(Some(text)) = root.read(&path) {
                snapshot.files.insert(path, text);
            }
        }
        for unit in STOPPED {
            if let Ok(active) = hands.unit_is_active(unit) {
                snapshot.units.insert(unit.to_owned(), active);
            }
        }
        snapshot
    }

    /// A file's exact text.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// A file's text without the line break.
    pub fn word(&self, path: &str) -> Option<&str> {
        self.text(path).map(str::trim)
    }

    /// Whether a unit runs; `None` where nobody can tell.
    pub fn unit(&self, unit: &str) -> Option<bool> {
        self.units.get(unit).copied()
    }

    /// Numbers of the interrupts, the lowest first.
    pub fn interrupts(&self) -> Vec<u32> {
        self.numbered("proc/irq/", "/smp_affinity")
    }

    /// The CPUs that can go offline, the lowest first.
    pub fn cpus(&self) -> Vec<u32> {
        self.numbered(&format!("{CPUS}/cpu"), "/online")
    }

    fn numbered(&self, prefix: &str, suffix: &str) -> Vec<u32> {
        let mut numbers: Vec<u32> = self
            .files
            .keys()
            .filter_map(|path| number(path.strip_suffix(suffix)?, prefix))
            .collect();
        numbers.sort_unstable();
        numbers
    }

    /// The frequency policies, by number, with the CPUs that each governs.
    pub fn policies(&self) -> BTreeMap<u32, CpuSet> {
        let prefix = format!("{CPUFREQ}/policy");
        self.files
            .iter()
            .filter_map(|(path, text)| {
                let number = path.strip_prefix(&prefix)?.strip_suffix("/related_cpus")?;
                // The one list of the kernel's with blanks between (cpufreq_show_cpus).
                let cpus = text.trim().replace(' ', ",").parse().ok()?;
                Some((number.parse().ok()?, cpus))
            })
            .collect()
    }
}

/// The whole machine's.
const SINGLE: [&str; 6] = [
    "sys/devices/system/cpu/smt/control",
    "sys/devices/system/cpu/intel_pstate/no_turbo",
    "sys/devices/system/cpu/cpufreq/boost",
    "sys/devices/virtual/workqueue/cpumask",
    "proc/irq/default_smp_affinity",
    "proc/sys/kernel/watchdog_cpumask",
];
/// Those of a frequency policy that may change.
const OF_A_POLICY: [&str; 3] = ["scaling_governor", "energy_performance_preference", "boost"];
/// Those of a policy that are only read.
const ABOUT_A_POLICY: [&str; 3] = [
    "related_cpus",
    "scaling_driver",
    "scaling_available_governors",
];

fn paths(root: &Root) -> Vec<String> {
    let mut paths: Vec<String> = SINGLE.map(str::to_owned).into();
    paths.extend(["proc/meminfo", SWAPS].map(str::to_owned));
    paths.extend(SYSCTLS.iter().map(|(name, _)| sysctl(name)));
    let names = |folder: &str| root.names(folder).unwrap_or_default();
    for name in names(CPUFREQ) {
        if number(&name, "policy").is_some() {
            let files = ABOUT_A_POLICY.iter().chain(&OF_A_POLICY);
            paths.extend(files.map(|file| format!("{CPUFREQ}/{name}/{file}")));
        }
    }
    for name in names(CPUS) {
        if number(&name, "cpu").is_some() {
            paths.push(format!("{CPUS}/{name}/online"));
        }
    }
    for name in names("proc/irq") {
        if number(&name, "").is_some() {
            paths.push(format!("proc/irq/{name}/smp_affinity"));
        }
    }
    paths
}

/// Whether a file is one that a profile may change.
pub fn is_known(path: &str) -> bool {
    let part = |path: &str, prefix: &str, suffix: &str| -> Option<u32> {
        number(path.strip_suffix(suffix)?, prefix)
    };
    let mut of_policies = OF_A_POLICY.iter();
    SINGLE.contains(&path)
        || SYSCTLS.iter().any(|(name, _)| sysctl(name) == path)
        || of_policies
            .any(|file| part(path, &format!("{CPUFREQ}/policy"), &format!("/{file}")).is_some())
        || part(path, &format!("{CPUS}/cpu"), "/online").is_some()
        || part(path, "proc/irq/", "/smp_affinity").is_some()
}

/// The number that follows `prefix`, and nothing else.
fn number(name: &str, prefix: &str) -> Option<u32> {
    let digits = name.strip_prefix(prefix)?;
    digits
        .bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| digits.parse().ok())?
}

/// The file of a sysctl.
pub fn sysctl(name: &str) -> String {
    format!("proc/sys/{}", name.replace('.', "/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_the_profiles_are_known() {
        for path in [
            "proc/irq/30/smp_affinity",
            "proc/irq/default_smp_affinity",
            "proc/sys/vm/stat_interval",
            "sys/devices/system/cpu/cpu31/online",
            "sys/devices/system/cpu/cpufreq/policy0/boost",
        ] {
            assert!(is_known(path), "{path}");
        }
        for path in [
            "etc/shadow",
            "proc/irq/30/../../sys/kernel/core_pattern",
            "proc/irq/../smp_affinity",
            "proc/irq//smp_affinity",
            "proc/sys/kernel/core_pattern",
            "proc/sys/kernel/randomize_va_space",
            "/proc/sys/vm/stat_interval",
            "sys/devices/system/cpu/cpufreq/policy0/scaling_driver",
            "sys/devices/system/cpu/cpu+1/online",
            "sys/devices/system/cpu/cpu/online",
        ] {
            assert!(!is_known(path), "{path}");
        }
    }
}
