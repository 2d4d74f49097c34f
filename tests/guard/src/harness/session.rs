//! The session of the user whose work is guarded, and how a scenario gets into it.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::unistd::Uid;
use workload_guard_dbus::systemd1::ManagerProxy;
use zbus::block_on;

use super::command;
use super::dice;
use super::root;

/// The user of the scenarios; lingering, so that the user manager runs from boot on.
pub const UID: u32 = 1000;
/// Its home.
pub const HOME: &str = "/home/dev";
/// Its runtime directory.
pub const RUNTIME_DIR: &str = "/run/user/1000";
/// Where every guest has the product, read-only.
pub const PAYLOAD: &str = "/opt/workload-guard";
/// Where a caller gives up on a call: longer than the guard's own deadlines, so that its answer is seen.
const CALL: Duration = Duration::from_secs(60);

/// Where the part of a scenario runs that is the user's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a scope of its user manager: out of what is watched, and inside the part of the tree that a user
    /// manager may move processes out of and into.
    Inside,
    /// In a scope of the system's: it sees the end of its user manager.
    Outside,
}

/// Runs `in-session WORDS` of this program as the user, with root's help at hand, and answers its exit status.
pub fn enter(place: Place, words: &[&str]) -> Result<i32> {
    ensure!(
        Uid::effective().is_root(),
        "scenarios start as root: they install as a user and play other users"
    );
    root::serve(UID)?;
    let mut command = logged_in(Command::new("systemd-run"));
    match place {
        Place::Inside => command.uid(UID).gid(UID).arg("--user"),
        Place::Outside => command.args([format!("--uid={UID}"), format!("--gid={UID}")]),
    };
    let status = command
        .args(["--scope", "--quiet", "--collect", "--unit=scenario", "--"])
        .arg(std::env::current_exe()?)
        .arg("in-session")
        .args(words)
        .status()
        .context("cannot start systemd-run")?;
    Ok(command::shell_status(status))
}

/// Gives a command what a login gives it: environment, directory.
fn logged_in(mut command: Command) -> Command {
    let seed = std::env::var(dice::SEED).map(|seed| (dice::SEED, seed));
    command
        .current_dir(HOME)
        .env_clear()
        .env("HOME", HOME)
        .env("USER", "dev")
        .env("LOGNAME", "dev")
        .env("SHELL", "/bin/bash")
        .env("LANG", "C.UTF-8")
        .env(
            "PATH",
            format!("{HOME}/.local/bin:/usr/local/bin:/usr/bin:/bin"),
        )
        .env("XDG_RUNTIME_DIR", RUNTIME_DIR)
        .env(
            "DBUS_SESSION_BUS_ADDRESS",
            format!("unix:path={RUNTIME_DIR}/bus"),
        )
        .envs(seed);
    command
}

/// A connection to the user's bus.
#[derive(Clone, Debug)]
pub struct Session {
    bus: zbus::Connection,
}

impl Session {
    /// Connects; the process must be the user's.
    pub fn open() -> Result<Session> {
        Session::with_patience(CALL)
    }

    /// A client that gives up on a call after so long.
    pub fn with_patience(patience: Duration) -> Result<Session> {
        let bus = block_on(async {
            zbus::connection::Builder::session()?
                .method_timeout(patience)
                .build()
                .await
        })
        .context("cannot connect to the user bus")?;
        Ok(Session { bus })
    }

    /// The connection.
    pub fn bus(&self) -> &zbus::Connection {
        &self.bus
    }

    /// A second, separate connection: another client.
    pub fn another(&self) -> Result<Session> {
        Session::open()
    }

    /// The user's systemd.
    pub fn systemd(&self) -> Result<ManagerProxy<'static>> {
        Ok(block_on(
            ManagerProxy::builder(&self.bus)
                .cache_properties(zbus::proxy::CacheProperties::No)
                .build(),
        )?)
    }
}

/// A program of the payload.
pub fn payload(program: &str) -> PathBuf {
    PathBuf::from(PAYLOAD).join(program)
}

/// This program, as a scenario starts it again for its loads.
pub fn this_program() -> Result<String> {
    let path = std::env::current_exe()?;
    path.into_os_string()
        .into_string()
        .map_err(|path| anyhow::anyhow!("{} is not text", path.display()))
}
