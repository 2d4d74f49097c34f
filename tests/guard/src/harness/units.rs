//! Units of the user manager, as `systemctl --user` shows them.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use workload_guard_dbus::scope;
use zbus::block_on;

use super::command;
use super::session::Session;
use super::wait;

/// `systemctl --user` with these arguments; its trimmed output.
pub fn systemctl(args: &[&str]) -> Result<String> {
    let mut argv = vec!["systemctl", "--user"];
    argv.extend(args);
    command::ok(&argv)
}

/// A property as `systemctl show` prints it; empty when the unit has none.
pub fn property(unit: &str, name: &str) -> Result<String> {
    systemctl(&["show", unit, "--property", name, "--value"])
}

/// Several properties, by name.
pub fn properties(unit: &str, names: &[&str]) -> Result<BTreeMap<String, String>> {
    Ok(systemctl(&["show", unit, "--property", &names.join(",")])?
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect())
}

/// `ActiveState`, such as `active`; `inactive` for a unit that is not loaded.
pub fn active_state(unit: &str) -> Result<String> {
    property(unit, "ActiveState")
}

/// Version of the user manager: the number before the first dot or dash.
pub fn systemd_version(session: &Session) -> Result<u32> {
    let version = block_on(async {
        session
            .systemd()?
            .version()
            .await
            .map_err(anyhow::Error::from)
    })?;
    let digits: String = version.chars().take_while(char::is_ascii_digit).collect();
    Ok(digits.parse()?)
}

/// Scopes of ours that are loaded, with their active state.
pub fn our_scopes(session: &Session) -> Result<Vec<(String, String)>> {
    let rows = block_on(async {
        session
            .systemd()?
            .list_units_by_patterns(&[], &[scope::PATTERN])
            .await
            .map_err(anyhow::Error::from)
    })?;
    Ok(rows.into_iter().map(|row| (row.0, row.3)).collect())
}

/// Waits until none of our scopes is left, whatever its state.
pub fn no_scope_of_ours_left(session: &Session, patience: Duration) -> Result<()> {
    wait::until_true("no scope of the guard is left", patience, || {
        let left = our_scopes(session)?;
        anyhow::ensure!(left.is_empty(), "left: {left:?}");
        Ok(true)
    })
}

/// No unit is in failed state.
pub fn none_failed() -> Result<()> {
    let failed = systemctl(&["list-units", "--failed", "--plain", "--no-legend"])?;
    anyhow::ensure!(failed.is_empty(), "failed units: {failed}");
    Ok(())
}

/// Waits for a state of a unit.
pub fn becomes(unit: &str, state: &str, patience: Duration) -> Result<()> {
    wait::until_true(&format!("{unit} is {state}"), patience, || {
        let now = active_state(unit)?;
        anyhow::ensure!(now == state, "it is {now}");
        Ok(true)
    })
}
