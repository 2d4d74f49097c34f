//! The bench service in a guest: installed as a package would, set up otherwise for one scenario.

use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Context, Result};

use super::command;

/// Where every guest has the product, read-only.
const PAYLOAD: &str = "/opt/workload-guard";
/// The service's unit.
pub const UNIT: &str = "bench-prepd.service";
/// Its own settings for one scenario.
const DROP_IN: &str = "/etc/systemd/system/bench-prepd.service.d/scenario.conf";

/// Programs, which `/usr/bin` links to.
const PROGRAMS: [&str; 2] = ["workload-guard", "bench-prepd"];
/// Files of the payload, and the folders that they belong in.
const FILES: [(&str, &str); 5] = [
    (
        "units/system/bench-prepd.service",
        "/usr/lib/systemd/system",
    ),
    ("units/system/bench-prep.service", "/usr/lib/systemd/system"),
    (
        "units/system/dbus-1/org.workloadguard.BenchPrep1.conf",
        "/usr/share/dbus-1/system.d",
    ),
    (
        "units/system/dbus-1/org.workloadguard.BenchPrep1.service",
        "/usr/share/dbus-1/system-services",
    ),
    (
        "polkit/org.workloadguard.policy",
        "/usr/share/polkit-1/actions",
    ),
];

/// Installs it; nothing runs yet.
pub fn install() -> Result<()> {
    for program in PROGRAMS {
        symlink(
            format!("{PAYLOAD}/{program}"),
            format!("/usr/bin/{program}"),
        )
        .with_context(|| format!("/usr/bin/{program}"))?;
    }
    for (file, folder) in FILES {
        std::fs::create_dir_all(folder)?;
        let name = Path::new(file).file_name().expect("a file");
        std::fs::copy(Path::new(PAYLOAD).join(file), Path::new(folder).join(name))
            .with_context(|| format!("{file} to {folder}"))?;
    }
    reload()?;
    // dbus-daemon sees new files in these folders by itself; dbus-broker does not.
    command::ok(&[
        "busctl",
        "call",
        "org.freedesktop.DBus",
        "/org/freedesktop/DBus",
        "org.freedesktop.DBus",
        "ReloadConfig",
    ])?;
    Ok(())
}

/// Gives the service's unit these `[Service]` lines for the rest of the scenario.
pub fn set(lines: &str) -> Result<()> {
    std::fs::create_dir_all(Path::new(DROP_IN).parent().expect("a folder"))?;
    std::fs::write(DROP_IN, format!("[Service]\n{lines}\n"))?;
    reload()
}

/// Takes them away again.
pub fn unset() -> Result<()> {
    std::fs::remove_file(DROP_IN)?;
    reload()
}

fn reload() -> Result<()> {
    command::ok(&["systemctl", "daemon-reload"]).map(drop)
}

/// A property of a unit, as systemctl shows it.
pub fn property(unit: &str, name: &str) -> Result<String> {
    command::ok(&["systemctl", "show", "--value", "--property", name, unit])
}
