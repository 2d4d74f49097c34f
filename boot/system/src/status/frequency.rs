//! Clock policy, as cpufreq shows it.

use std::collections::BTreeMap;

use bench_profile::cpus::CpuSet;

use super::facts::text;
use crate::root::Root;

/// Boost, governors and energy preferences.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frequency {
    /// Whether CPUs may exceed their base clock, by the file that says so; none where no file does.
    pub boost: Option<(String, bool)>,
    /// The governor of each CPU that has one.
    pub governors: BTreeMap<u32, String>,
    /// The energy preference of each CPU that has one.
    pub preferences: BTreeMap<u32, String>,
}

impl Frequency {
    /// Of the CPUs that are online.
    pub fn read(root: &Root, online: Option<&CpuSet>) -> Frequency {
        let of_each = |name: &str| -> BTreeMap<u32, String> {
            online
                .into_iter()
                .flat_map(CpuSet::iter)
                .filter_map(|cpu| {
                    let file = format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/{name}");
                    Some((cpu, text(root, &file)?))
                })
                .collect()
        };
        Frequency {
            boost: boost(root, of_each("boost")),
            governors: of_each("scaling_governor"),
            preferences: of_each("energy_performance_preference"),
        }
    }
}

/// intel_pstate's switch is the other way round. Others have one for all, newer kernels one for each policy beside it:
/// boost is on when it is on for all.
fn boost(root: &Root, each: BTreeMap<u32, String>) -> Option<(String, bool)> {
    let no_turbo = "sys/devices/system/cpu/intel_pstate/no_turbo";
    if let Some(value) = text(root, no_turbo) {
        return Some((no_turbo.into(), value == "0"));
    }
    let all = "sys/devices/system/cpu/cpufreq/boost";
    match text(root, all) {
        Some(value) => Some((
            all.into(),
            value == "1" && each.values().all(|one| one == "1"),
        )),
        None if each.is_empty() => None,
        None => Some((
            "sys/devices/system/cpu/cpu*/cpufreq/boost".into(),
            each.values().all(|one| one == "1"),
        )),
    }
}
