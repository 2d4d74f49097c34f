//! Memory, IO and tasks of a slice, by the kernel's files against systemd's properties.

use std::path::Path;

use guard_policy::budget::{Property, UnitSetting};
use guard_policy::health::Problem;

use crate::cgroup::CgroupFs;
use crate::units::UnitView;

/// How systemd spells "not set" in unsigned properties.
const UNSET: u64 = u64::MAX;

/// What the kernel holds; `None` where it holds none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Limits {
    /// `memory.high`, in bytes.
    pub memory_high: Option<u64>,
    /// `io.weight`.
    pub io_weight: Option<u64>,
    /// `pids.max`.
    pub tasks_max: Option<u64>,
}

impl Limits {
    /// Reads the files of the group.
    pub(super) fn read(cgroups: &CgroupFs, cgroup: &str) -> Limits {
        Limits {
            memory_high: cgroups.memory_high(cgroup).flatten(),
            io_weight: cgroups.io_weight(cgroup),
            tasks_max: cgroups.pids_max(cgroup).flatten(),
        }
    }
}

/// What the kernel does not hold as systemd says it, of a property that the settings set.
pub(super) fn difference(
    cgroups: &CgroupFs,
    view: &UnitView,
    setting: &UnitSetting,
) -> Option<Problem> {
    let wanted = view.number(setting.property.name()).unwrap_or(UNSET);
    let cgroup = view.text("ControlGroup");
    // A file that is absent, and one that says `max`, are not the same.
    let (file, kernel) = match setting.property {
        Property::MemoryHigh => ("memory.high", cgroups.memory_high(cgroup).map(or_unset)),
        Property::IoWeight => ("io.weight", cgroups.io_weight(cgroup)),
        Property::TasksMax => ("pids.max", cgroups.pids_max(cgroup).map(or_unset)),
        // Compared for every slice: `budget`.
        Property::Quota | Property::Weight => return None,
    };
    if kernel.is_some_and(|kernel| holds(setting.property, wanted, kernel)) {
        return None;
    }
    let file = cgroups
        .file(cgroup, file)
        .unwrap_or_else(|_| Path::new(file).to_owned());
    Some(Problem::BudgetNotInKernel {
        unit: setting.unit.clone(),
        file: file.display().to_string(),
        kernel: kernel.map_or("nothing (there is no such file)".to_owned(), shown),
        systemd: format!("{}={}", setting.property.name(), shown(wanted)),
    })
}

fn or_unset(limit: Option<u64>) -> u64 {
    limit.unwrap_or(UNSET)
}

fn shown(number: u64) -> String {
    match number {
        UNSET => "max".to_owned(),
        number => number.to_string(),
    }
}

/// The kernel counts memory in pages, of at most 64 KiB on the machines that systemd runs on.
fn holds(property: Property, wanted: u64, kernel: u64) -> bool {
    let slack = match property {
        Property::MemoryHigh if wanted != UNSET => 64 << 10,
        _ => 0,
    };
    wanted.abs_diff(kernel) <= slack
}

#[cfg(test)]
mod tests {
    use std::fs;

    use guard_policy::budget::Amount;

    use super::*;

    #[test]
    fn memory_is_counted_in_pages_and_an_absent_file_is_no_limit_at_all() {
        let root = tempfile::tempdir().expect("a folder");
        let group = root.path().join("x.slice");
        fs::create_dir(&group).expect("made");
        let cgroups = CgroupFs::rooted(root.path());
        let differs = |property, number: u64| {
            let properties = [("ControlGroup", zvariant::Value::from("/x.slice"))]
                .into_iter()
                .chain([(Property::name(property), zvariant::Value::from(number))])
                .map(|(name, value)| (name.to_owned(), value.try_into().expect("plain")))
                .collect();
            let setting = UnitSetting {
                unit: "x.slice".to_owned(),
                property,
                value: Amount::Infinity,
                class: "x".to_owned(),
            };
            difference(&cgroups, &UnitView::new("x.slice", properties), &setting)
                .map(|problem| problem.to_string())
        };
        let told = differs(Property::MemoryHigh, 5000).expect("no file");
        assert!(
            told.contains("memory.high says nothing (there is no such file), though systemd says MemoryHigh=5000;"),
            "{told}"
        );
        for (file, text) in [
            ("memory.high", "4096\n"),
            ("pids.max", "max\n"),
            ("io.weight", "default 50\n8:0 70\n"),
        ] {
            fs::write(group.join(file), text).expect("written");
        }
        assert_eq!(differs(Property::MemoryHigh, 5000), None);
        assert_eq!(differs(Property::TasksMax, u64::MAX), None);
        assert_eq!(differs(Property::IoWeight, 50), None);
        assert!(differs(Property::TasksMax, 512).is_some());
        assert!(differs(Property::MemoryHigh, u64::MAX).is_some());
    }
}
