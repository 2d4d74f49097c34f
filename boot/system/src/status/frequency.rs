//! Clock policy, as cpufreq shows it.

use std::collections::BTreeMap;
use std::fmt;

use bench_profile::cpus::CpuSet;

use super::facts::text;
use crate::root::Root;

/// Boost, governors and energy preferences.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frequency {
    /// Whether CPUs may exceed their base clock; none where no file says so.
    pub boost: Option<Boost>,
    /// The governor of each CPU that has one.
    pub governors: BTreeMap<u32, String>,
    /// The energy preference of each CPU that has one.
    pub preferences: BTreeMap<u32, String>,
}

/// Whether CPUs may exceed their base clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boost {
    /// All of them.
    On,
    /// None.
    Off,
    /// Some, by the switches of their policies: neither what a profile with boost asks for nor one without.
    Mixed,
}

impl Boost {
    fn of(on: bool) -> Boost {
        if on { Boost::On } else { Boost::Off }
    }

    /// Whether it is on for all, or off for all.
    pub fn is(self, on: bool) -> bool {
        self == Boost::of(on)
    }
}

impl fmt::Display for Boost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Boost::On => "on",
            Boost::Off => "off",
            Boost::Mixed => "on for some CPUs and off for others",
        })
    }
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

/// intel_pstate's switch is the other way round. Others have one for all, and newer kernels one for each policy, which
/// count as long as that is on.
fn boost(root: &Root, each: BTreeMap<u32, String>) -> Option<Boost> {
    if let Some(value) = text(root, "sys/devices/system/cpu/intel_pstate/no_turbo") {
        return Some(Boost::of(value == "0"));
    }
    let all = text(root, "sys/devices/system/cpu/cpufreq/boost").map(|value| value == "1");
    let on = each.values().filter(|value| *value == "1").count();
    match all {
        None | Some(true) if !each.is_empty() => Some(match on {
            0 => Boost::Off,
            on if on == each.len() => Boost::On,
            _ => Boost::Mixed,
        }),
        all => all.map(Boost::of),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boost_of_some_policies_is_neither_on_nor_off() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Root::new(folder.path());
        let path = root.path("sys/devices/system/cpu/cpufreq/boost");
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        let seen = |values: &[&str]| {
            let each = values.iter().map(|value| (*value).to_owned());
            boost(&root, (0..).zip(each).collect())
        };
        assert_eq!(seen(&[]), None);
        assert_eq!(
            seen(&["1", "1"]),
            Some(Boost::On),
            "switches of policies alone"
        );
        for (all, each, expected) in [
            ("1", &["1", "0"][..], Boost::Mixed),
            ("1", &["0", "0"], Boost::Off),
            ("1", &["1", "1"], Boost::On),
            ("1", &[], Boost::On),
            ("0", &["1"], Boost::Off),
            ("0", &[], Boost::Off),
        ] {
            std::fs::write(&path, all).expect("a file");
            assert_eq!(seen(each), Some(expected), "{all} {each:?}");
        }
        assert!(!Boost::Mixed.is(true) && !Boost::Mixed.is(false));
    }
}
