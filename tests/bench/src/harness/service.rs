//! The bench service in a guest: installed as a package would, set up otherwise for one scenario.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};

use super::command;

/// Where every guest has the product, read-only.
const PAYLOAD: &str = "/opt/workload-guard";
/// The service's unit.
pub const UNIT: &str = "bench-prepd.service";
/// Its own settings for one scenario.
const DROP_IN: &str = "/etc/systemd/system/bench-prepd.service.d/scenario.conf";

/// Installs it; nothing runs yet.
pub fn install() -> Result<()> {
    let ended = command::finish(
        Command::new(format!("{PAYLOAD}/xtask"))
            .args(["install", "--system", "--prefix=/usr", "--dist", PAYLOAD])
            .env("DESTDIR", "/"),
    )?;
    ensure!(ended.status == 0, "it is not installed: {}", ended.said());
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
