//! Bus names, object paths and their spelling.

use zvariant::{ObjectPath, OwnedObjectPath};

/// The well-known name of the guard on the user bus.
pub const GUARD_NAME: &str = "org.workloadguard.Guard1";
/// The guard's object.
pub const GUARD_PATH: &str = "/org/workloadguard/Guard1";
/// Parent of the workload objects; it carries the `ObjectManager`.
pub const WORKLOADS_PATH: &str = "/org/workloadguard/Guard1/workload";
/// The well-known name of the bench service on the system bus.
pub const BENCH_NAME: &str = "org.workloadguard.BenchPrep1";
/// The bench service's object.
pub const BENCH_PATH: &str = "/org/workloadguard/BenchPrep1";
/// The unit of the bench service.
pub const BENCH_UNIT: &str = "bench-prepd.service";
/// The polkit action behind `Apply`.
pub const ACTION_APPLY: &str = "org.workloadguard.bench.apply";
/// The polkit action behind `Restore`.
pub const ACTION_RESTORE: &str = "org.workloadguard.bench.restore";
/// The polkit action behind `RegenerateBootEntries`.
pub const ACTION_REGENERATE: &str = "org.workloadguard.bench.regenerate-boot-entries";
/// The polkit action behind `SetNextBoot`.
pub const ACTION_NEXT_BOOT: &str = "org.workloadguard.bench.set-next-boot";
/// What every error name of ours starts with.
pub const ERROR_PREFIX: &str = "org.workloadguard.Error";
/// The unit of the guard.
pub const GUARD_UNIT: &str = "workload-guard.service";

/// The object path of the workload that lives in `unit` (`lwg-….scope`).
///
/// Every byte that a path element may not hold becomes `_` and two hex digits, as systemd does it.
pub fn workload_path(unit: &str) -> OwnedObjectPath {
    let mut path = String::with_capacity(WORKLOADS_PATH.len() + 1 + unit.len() + 8);
    path.push_str(WORKLOADS_PATH);
    path.push('/');
    for byte in unit.bytes() {
        if byte.is_ascii_alphanumeric() {
            path.push(char::from(byte));
        } else {
            path.push_str(&format!("_{byte:02x}"));
        }
    }
    ObjectPath::try_from(path)
        .expect("only alphanumerics and underscores were put in")
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_name_becomes_a_valid_path_element() {
        assert_eq!(
            workload_path("lwg-heavy-routed-12-34.scope").as_str(),
            "/org/workloadguard/Guard1/workload/lwg_2dheavy_2drouted_2d12_2d34_2escope"
        );
    }

    #[test]
    fn different_units_never_share_a_path() {
        assert_ne!(workload_path("a_b.scope"), workload_path("a-b.scope"));
        assert_ne!(workload_path("a_2d.scope"), workload_path("a-.scope"));
    }
}
