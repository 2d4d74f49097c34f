//! What systemd says of a slice against what the kernel enforces.

use std::path::PathBuf;

use guard_policy::health::Problem;

use crate::cgroup::{CgroupFs, CpuMax};
use crate::units::UnitView;

/// How systemd spells "not set" in unsigned properties.
const UNSET: u64 = u64::MAX;
/// The smallest quota that the kernel takes, in microseconds; systemd rounds up to it.
const MIN_QUOTA_USEC: u64 = 1000;
/// The weight of a group that was given none.
const DEFAULT_WEIGHT: u64 = 100;

/// The budget of a slice by systemd's properties.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    /// `CPUQuotaPerSecUSec`: microseconds of CPU per second.
    pub quota_usec_per_sec: Option<u64>,
    /// `CPUWeight`.
    pub weight: Option<u64>,
}

/// The same by the kernel's files; `None` where the controller is not enabled for the group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Enforced {
    /// `cpu.max`.
    pub max: Option<CpuMax>,
    /// `cpu.weight`.
    pub weight: Option<u64>,
}

impl Wanted {
    /// From the unit's properties.
    pub(super) fn of(view: &UnitView) -> Wanted {
        let set = |name| view.number(name).filter(|&value| value != UNSET);
        Wanted {
            quota_usec_per_sec: set("CPUQuotaPerSecUSec"),
            weight: set("CPUWeight"),
        }
    }
}

impl Enforced {
    /// Reads the files of the group.
    pub(super) fn read(cgroups: &CgroupFs, cgroup: &str) -> Enforced {
        Enforced {
            max: cgroups.cpu_max(cgroup),
            weight: cgroups.cpu_weight(cgroup),
        }
    }

    /// The quota in percent of one logical CPU.
    pub(super) fn quota_percent(&self) -> Option<f64> {
        self.max.as_ref()?.quota_percent()
    }
}

/// Each value that the kernel does not hold as systemd says it.
pub(super) fn differences(
    unit: &str,
    folder: PathBuf,
    wanted: Wanted,
    enforced: &Enforced,
) -> Vec<Problem> {
    let problem =
        |file: &str, kernel: Option<String>, systemd: String| Problem::BudgetNotInKernel {
            unit: unit.to_owned(),
            file: folder.join(file).display().to_string(),
            kernel: kernel.unwrap_or_else(|| "nothing (there is no such file)".to_owned()),
            systemd,
        };
    let mut problems = Vec::new();
    if !quota_holds(wanted.quota_usec_per_sec, enforced.max.as_ref()) {
        let systemd = wanted
            .quota_usec_per_sec
            .map_or("no limit".to_owned(), percent);
        problems.push(problem(
            "cpu.max",
            enforced.max.as_ref().map(|max| max.raw.clone()),
            systemd,
        ));
    }
    if !weight_holds(wanted.weight, enforced.weight) {
        let systemd = wanted
            .weight
            .map_or("no weight".to_owned(), |weight| weight.to_string());
        problems.push(problem(
            "cpu.weight",
            enforced.weight.map(|weight| weight.to_string()),
            systemd,
        ));
    }
    problems
}

/// A slice without a quota has `max`, or no file where nothing needs the controller.
pub(super) fn quota_holds(wanted: Option<u64>, enforced: Option<&CpuMax>) -> bool {
    let kernel = enforced.and_then(|max| Some((max.quota_usec?, max.period_usec)));
    match (wanted, kernel) {
        (None, None) => true,
        (Some(per_sec), Some((quota, period))) => {
            // systemd chooses the period, then rounds.
            let exact = u128::from(per_sec) * u128::from(period) / 1_000_000;
            let exact = (exact as u64).max(MIN_QUOTA_USEC);
            exact.abs_diff(quota) <= 1
        }
        _ => false,
    }
}

fn weight_holds(wanted: Option<u64>, enforced: Option<u64>) -> bool {
    match wanted {
        Some(weight) => enforced == Some(weight),
        None => enforced.is_none_or(|weight| weight == DEFAULT_WEIGHT),
    }
}

/// As CPUQuota= is written.
fn percent(usec_per_sec: u64) -> String {
    format!("CPUQuota={}%", usec_per_sec as f64 / 10_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn max(quota_usec: Option<u64>, period_usec: u64) -> Option<CpuMax> {
        let text = quota_usec.map_or("max".to_owned(), |quota| quota.to_string());
        Some(CpuMax {
            raw: format!("{text} {period_usec}"),
            quota_usec,
            period_usec,
        })
    }

    #[test]
    fn a_quota_holds_whatever_the_period_is() {
        for (per_sec, quota, period) in [
            (4_000_000, 400_000, 100_000),
            (1_000, 1_000, 1_000_000),
            (1_500_000, 75_000, 50_000),
            (333_333, 33_333, 100_000),
            // Below what the kernel takes: systemd gives the least.
            (5_000, 1_000, 100_000),
        ] {
            assert!(
                quota_holds(Some(per_sec), max(Some(quota), period).as_ref()),
                "{per_sec}"
            );
        }
        assert!(!quota_holds(
            Some(4_000_000),
            max(Some(150_000), 100_000).as_ref()
        ));
        assert!(!quota_holds(Some(4_000_000), max(None, 100_000).as_ref()));
        assert!(!quota_holds(Some(4_000_000), None));
        assert!(!quota_holds(None, max(Some(150_000), 100_000).as_ref()));
        assert!(quota_holds(None, max(None, 100_000).as_ref()) && quota_holds(None, None));
    }

    #[test]
    fn a_weight_holds_when_it_is_the_same() {
        assert!(weight_holds(Some(1000), Some(1000)) && weight_holds(Some(0), Some(0)));
        assert!(!weight_holds(Some(1000), Some(100)) && !weight_holds(Some(1000), None));
        assert!(
            weight_holds(None, None)
                && weight_holds(None, Some(100))
                && !weight_holds(None, Some(1000))
        );
    }

    #[test]
    fn a_difference_names_the_file_and_both_values() {
        let wanted = Wanted {
            quota_usec_per_sec: Some(4_000_000),
            weight: Some(1000),
        };
        let enforced = Enforced {
            max: max(None, 100_000),
            weight: None,
        };
        let problems = differences(
            "heavy.slice",
            PathBuf::from("/sys/fs/cgroup/heavy.slice"),
            wanted,
            &enforced,
        );
        let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(texts.len(), 2);
        assert!(
            texts[0].starts_with("/sys/fs/cgroup/heavy.slice/cpu.max says max 100000, though systemd says CPUQuota=400%;"),
            "{}",
            texts[0]
        );
        assert!(texts[1].contains(
            "cpu.weight says nothing (there is no such file), though systemd says 1000;"
        ));
    }
}
