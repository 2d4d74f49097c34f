//! Reads the counters of one moment.

use std::collections::{BTreeMap, BTreeSet};

use bench_profile::cpus::CpuSet;

use super::interrupts::{BadInterrupts, Interrupts};
use crate::root::{FileError, Root};

/// Milliseconds in a tick of /proc/stat: USER_HZ is 100 on every architecture that Linux still has but Alpha.
pub const TICK_MS: u64 = 10;

/// Counters of Intel's thermal driver (drivers/thermal/intel/therm_throt.c); AMD has none.
const THROTTLES: [&str; 4] = [
    "core_throttle_count",
    "core_power_limit_count",
    "package_throttle_count",
    "package_power_limit_count",
];

/// The counters of one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// `/proc/interrupts`.
    pub interrupts: Interrupts,
    /// Interrupts that the kernel alone places.
    pub managed: BTreeSet<u32>,
    /// CPUs that are to have no timer tick while one task runs on them.
    pub nohz_full: CpuSet,
    /// Time that the hypervisor took, in ticks, by CPU.
    pub steal: BTreeMap<u32, u64>,
    /// Throttling by CPU and counter.
    pub throttles: BTreeMap<(u32, &'static str), u64>,
}

/// Why there is nothing to compare.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// A file is there and cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The kernel shows no interrupts, or in a form that is not known.
    #[error("the interrupts of this machine cannot be counted: {0}")]
    Interrupts(String),
}

impl From<BadInterrupts> for AuditError {
    fn from(error: BadInterrupts) -> Self {
        AuditError::Interrupts(error.to_string())
    }
}

/// Looks at what concerns `cpus`.
///
/// # Errors
///
/// `/proc/interrupts` is missing or unknown: without it there is no audit. All else may be missing.
pub fn look(root: &Root, cpus: &CpuSet) -> Result<Look, AuditError> {
    // First what does not count on its own; the interrupts as close to the run as can be.
    let nohz_full = root
        .read("sys/devices/system/cpu/nohz_full")?
        // "(null)" where the kernel was built for it and not told of any (measured on 6.12).
        .and_then(|text| text.parse().ok())
        .unwrap_or_default();
    let managed = managed(root);
    let throttles = throttles(root, cpus);
    let steal = root
        .read("proc/stat")?
        .map(|text| steal(&text))
        .unwrap_or_default();
    let text = root
        .read("proc/interrupts")?
        .ok_or_else(|| AuditError::Interrupts("there is no /proc/interrupts".into()))?;
    Ok(Look {
        interrupts: Interrupts::parse(&text)?,
        managed,
        nohz_full,
        steal,
        throttles,
    })
}

/// Field 8 of the lines `cpuN` (proc_stat(5)).
pub(super) fn steal(stat: &str) -> BTreeMap<u32, u64> {
    stat.lines()
        .filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            let cpu = words.next()?.strip_prefix("cpu")?.parse().ok()?;
            Some((cpu, words.nth(7)?.parse().ok()?))
        })
        .collect()
}

/// Interrupts whose mask nobody may write. The kernel makes their file read-only where it tells (6.11 and later);
/// its debug files tell earlier ones, to root.
fn managed(root: &Root) -> BTreeSet<u32> {
    use std::os::unix::fs::PermissionsExt;
    let names = root.names("proc/irq").unwrap_or_default();
    names
        .iter()
        .filter_map(|name| {
            let irq: u32 = name.parse().ok()?;
            let mask = root.path(&format!("proc/irq/{irq}/smp_affinity"));
            let fixed = std::fs::metadata(mask).ok()?.permissions().mode() & 0o200 == 0;
            (fixed || debug_says_managed(root, irq)).then_some(irq)
        })
        .collect()
}

fn debug_says_managed(root: &Root, irq: u32) -> bool {
    // Unreadable for all but root, and absent on most kernels: then nothing is known, which is no error.
    root.read(&format!("sys/kernel/debug/irq/irqs/{irq}"))
        .ok()
        .flatten()
        .is_some_and(|text| text.contains("IRQD_AFFINITY_MANAGED"))
}

fn throttles(root: &Root, cpus: &CpuSet) -> BTreeMap<(u32, &'static str), u64> {
    let mut counts = BTreeMap::new();
    for cpu in cpus.iter() {
        for name in THROTTLES {
            let file = format!("sys/devices/system/cpu/cpu{cpu}/thermal_throttle/{name}");
            let count = root
                .read(&file)
                .ok()
                .flatten()
                .and_then(|text| text.trim().parse().ok());
            if let Some(count) = count {
                counts.insert((cpu, name), count);
            }
        }
    }
    counts
}
