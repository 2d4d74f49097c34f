//! The shipped units and the code mean the same names, and the guard's unit asks for nothing that a user
//! manager ignores.

use std::path::Path;

use workload_guard_dbus::names::{GUARD_NAME, GUARD_PATH, GUARD_UNIT};

fn unit(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../units/user")
        .join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The values of a key, in order.
fn values<'a>(unit: &'a str, key: &str) -> Vec<&'a str> {
    let prefix = format!("{key}=");
    unit.lines()
        .filter_map(|line| line.strip_prefix(&prefix))
        .collect()
}

#[test]
fn the_bus_name_is_the_same_everywhere() {
    let service = unit(GUARD_UNIT);
    assert_eq!(values(&service, "BusName"), [GUARD_NAME]);
    assert_eq!(values(&service, "Type"), ["dbus"]);
    let reload = format!("busctl --user call {GUARD_NAME} {GUARD_PATH} {GUARD_NAME} Reload");
    assert_eq!(values(&service, "ExecReload"), [reload]);
    let activation = unit(&format!("dbus-1/{GUARD_NAME}.service"));
    assert_eq!(values(&activation, "Name"), [GUARD_NAME]);
    assert_eq!(values(&activation, "SystemdService"), [GUARD_UNIT]);
}

#[test]
fn budgets_are_on_the_inner_slices_and_weights_on_the_outer_ones_too() {
    for (outer, inner, quota, weight) in [
        ("protected", "protected-workload", "150%", "1000"),
        ("heavy", "heavy-workload", "400%", "100"),
        ("browser", "browser-automation", "200%", "100"),
    ] {
        let (outer, inner) = (
            unit(&format!("{outer}.slice")),
            unit(&format!("{inner}.slice")),
        );
        assert_eq!(values(&outer, "CPUWeight"), [weight]);
        assert_eq!(values(&inner, "CPUWeight"), [weight]);
        assert_eq!(values(&inner, "CPUQuota"), [quota]);
        assert!(values(&outer, "CPUQuota").is_empty());
    }
}

/// In a user manager these do nothing (252), or put the service into a user namespace, where the kernel sends
/// no exec events (257, 262), or make the start fail.
#[test]
fn the_unit_sets_nothing_that_costs_exec_events_or_is_ignored() {
    let service = unit(GUARD_UNIT);
    for key in [
        "PrivateUsers",
        "PrivateTmp",
        "PrivateDevices",
        "PrivateNetwork",
        "PrivateIPC",
        "PrivateMounts",
        "ProtectSystem",
        "ProtectHome",
        "ProtectProc",
        "ProcSubset",
        "ProtectClock",
        "ProtectHostname",
        "ProtectKernelLogs",
        "ProtectKernelModules",
        "ProtectKernelTunables",
        "ProtectControlGroups",
        "ReadWritePaths",
        "ReadOnlyPaths",
        "InaccessiblePaths",
        "BindPaths",
        "BindReadOnlyPaths",
        "TemporaryFileSystem",
        "ExecPaths",
        "NoExecPaths",
        "RootDirectory",
        "RootImage",
        "CapabilityBoundingSet",
        "AmbientCapabilities",
        "IPAddressDeny",
        "SocketBindDeny",
        "DevicePolicy",
        "DeviceAllow",
        "RestrictFileSystems",
        "DynamicUser",
        "User",
        "RemoveIPC",
    ] {
        assert!(values(&service, key).is_empty(), "{key}= is set");
    }
}
