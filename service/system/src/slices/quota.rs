//! The CPU quota of one slice: read, and set until the user logs out.

use std::path::PathBuf;

use guard_policy::action::Failure;
use workload_guard_dbus::systemd1::error_name;
use zbus::Connection;
use zvariant::Value;

use super::budget::{Enforced, Wanted, quota_holds};
use super::{manager, set_properties, words};
use crate::cgroup::{CgroupFs, CpuMax};
use crate::units::{self, UnitView};

/// The file that SetUnitProperties(runtime) writes a quota into; drop-ins count in the order of their
/// names, whatever folder they are in (systemd.unit(5)).
const DROP_IN: &str = "50-CPUQuota.conf";
/// How systemd spells "no limit".
const UNSET: u64 = u64::MAX;

/// A slice's quota by systemd and by the kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SliceQuota {
    /// `CPUQuotaPerSecUSec`: microseconds of CPU per second; none for no limit.
    pub usec_per_sec: Option<u64>,
    /// `cpu.max`; none where the slice has no control group or not the cpu controller.
    pub kernel: Option<CpuMax>,
    /// Whether the kernel's limit is systemd's, by whatever period.
    pub holds: bool,
    /// The slice's control group; none while it is stopped.
    pub cgroup: Option<String>,
    /// A drop-in that sets the quota and outranks a runtime value at the next daemon-reload.
    pub outranked_by: Option<PathBuf>,
}

impl SliceQuota {
    /// systemd's quota in percent of one logical CPU; none for no limit.
    pub fn percent(&self) -> Option<f64> {
        self.usec_per_sec.map(|usec| usec as f64 / 10_000.0)
    }

    fn read(cgroups: &CgroupFs, view: &UnitView) -> SliceQuota {
        let wanted = Wanted::of(view).quota_usec_per_sec;
        let cgroup = view.text("ControlGroup");
        let enforced = match cgroup {
            "" => Enforced::default(),
            cgroup => Enforced::read(cgroups, cgroup),
        };
        SliceQuota {
            usec_per_sec: wanted,
            holds: quota_holds(wanted, enforced.max.as_ref()),
            kernel: enforced.max,
            cgroup: (!cgroup.is_empty()).then(|| cgroup.to_owned()),
            outranked_by: outranking(&view.list("DropInPaths")),
        }
    }
}

/// Reads a slice's quota.
pub async fn quota(
    connection: &Connection,
    cgroups: &CgroupFs,
    slice: &str,
) -> zbus::Result<SliceQuota> {
    let view = units::view(connection, slice).await?;
    // systemd has the property for each slice; without it nothing is known, which is not "no limit". Nor
    // is that of a masked one, which has its own again when it is not masked any more.
    match view.number("CPUQuotaPerSecUSec") {
        Some(_) if view.text("LoadState") != "masked" => Ok(SliceQuota::read(cgroups, &view)),
        _ => Err(zbus::Error::Failure(format!(
            "systemd tells no quota of {slice}, which is {}",
            view.text("LoadState")
        ))),
    }
}

/// Sets a slice's quota, none for no limit, and reads it back from systemd and the kernel. Where the
/// kernel lags behind, it is set once more, and then what is there is answered.
///
/// # Errors
///
/// What systemd said when it did not take the value, or that it is away.
pub async fn set_quota(
    connection: &Connection,
    cgroups: &CgroupFs,
    slice: &str,
    usec_per_sec: Option<u64>,
) -> Result<SliceQuota, Failure> {
    let failed = |error: zbus::Error| match units::error_name(&error) {
        Some(error_name::NO_REPLY) | None => Failure::Timeout(format!(
            "systemd's user manager did not answer: {}",
            words(&error)
        )),
        Some(_) => Failure::SystemdRefused(format!(
            "systemd does not set the quota of {slice}: {}",
            words(&error)
        )),
    };
    let manager = manager(connection).await.map_err(failed)?;
    let value = usec_per_sec.unwrap_or(UNSET);
    let mut found = SliceQuota::default();
    for _ in 0..2 {
        let property = [("CPUQuotaPerSecUSec", Value::from(value))];
        let view = set_properties(connection, &manager, slice, &property)
            .await
            .map_err(failed)?;
        found = SliceQuota::read(cgroups, &view);
        // A slice that is stopped has nothing to hold it, and will have it when it starts.
        if found.holds || found.cgroup.is_none() {
            break;
        }
    }
    Ok(found)
}

/// The last drop-in that sets the quota and is not the runtime one: the next reload lets it win when its
/// name is not before [`DROP_IN`]. The same name elsewhere hides the runtime one.
fn outranking(drop_ins: &[String]) -> Option<PathBuf> {
    let is_runtime = |path: &PathBuf| path.starts_with("/run");
    drop_ins
        .iter()
        .map(PathBuf::from)
        .filter(|path| {
            path.file_name()
                .is_some_and(|name| name >= std::ffi::OsStr::new(DROP_IN))
        })
        .filter(|path| !is_runtime(path))
        .rfind(|path| sets_quota(path))
}

/// A drop-in that is gone or cannot be read sets nothing that one could name.
fn sets_quota(path: &std::path::Path) -> bool {
    let is_file = std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() < 1 << 20);
    is_file
        && std::fs::read_to_string(path).is_ok_and(|text| {
            text.lines()
                .any(|line| line.trim_start().starts_with("CPUQuota="))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drop_in_outranks_the_runtime_value_by_its_name_and_only_when_it_sets_the_quota() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("written");
            path.display().to_string()
        };
        let before = file("10-quota.conf", "[Slice]\nCPUQuota=50%\n");
        let same = file(DROP_IN, "[Slice]\nCPUQuota=50%\n");
        let after = file("override.conf", "[Slice]\n CPUQuota=50%\n");
        let other = file("zz.conf", "[Slice]\nCPUWeight=5\n");
        let runtime = "/run/user/1000/systemd/user.control/x.slice.d/50-CPUQuota.conf".to_owned();
        assert_eq!(outranking(&[before.clone(), runtime.clone()]), None);
        assert_eq!(outranking(&[before, runtime.clone(), other]), None);
        assert_eq!(outranking(std::slice::from_ref(&same)), Some(same.into()));
        assert_eq!(outranking(&[runtime, after.clone()]), Some(after.into()));
        assert_eq!(outranking(&["/nonexistent/60-x.conf".to_owned()]), None);
    }
}
