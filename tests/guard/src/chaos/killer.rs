//! Kills the guard with SIGKILL, again and again, at moments that nobody can foresee.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use workload_guard_dbus::names::GUARD_UNIT;

use crate::harness::cgroup;
use crate::harness::dice::Dice;
use crate::harness::home;
use crate::harness::units;
use crate::harness::wait::{PATIENCE, until};

/// From a start on: within this it starts and takes over what the one before left.
const WHILE_IT_STARTS: Duration = Duration::from_millis(150);
/// Within this it samples, moves and brings back.
const WHILE_IT_WORKS: Duration = Duration::from_millis(1500);
/// Between two looks for the next one.
const LOOK: Duration = Duration::from_millis(2);

/// Lets systemd start the guard again at once and as often as it takes.
pub fn start_limits_off() -> Result<()> {
    home::write(
        &home::unit_dir().join(format!("{GUARD_UNIT}.d/start-limits-off.conf")),
        "[Unit]\nStartLimitIntervalSec=0\n[Service]\nRestartSec=50ms\n",
    )?;
    units::systemctl(&["daemon-reload"]).map(|_| ())
}

/// Who kills it, and how often it has.
#[derive(Debug)]
pub struct Killer {
    dice: Dice,
    procs: PathBuf,
    last: Option<i32>,
    /// Kills so far.
    pub kills: u32,
}

impl Killer {
    /// For the guard that runs.
    pub fn new(dice: Dice) -> Result<Killer> {
        let group = units::property(GUARD_UNIT, "ControlGroup")?;
        Ok(Killer {
            dice,
            procs: cgroup::dir(&group).join("cgroup.procs"),
            last: None,
            kills: 0,
        })
    }

    /// Waits for the next guard, then for a random moment, and kills it. Each third time that moment is
    /// within its start.
    pub fn strike(&mut self) -> Result<()> {
        let pid = until("systemd starts the guard again", PATIENCE, || {
            Ok(self.running().filter(|pid| Some(*pid) != self.last))
        })?;
        let most = match self.dice.one_in(3) {
            true => WHILE_IT_STARTS,
            false => WHILE_IT_WORKS,
        };
        let moment = Instant::now() + self.dice.up_to(most);
        while Instant::now() < moment {
            std::thread::sleep(LOOK.min(moment - Instant::now()));
        }
        match kill(Pid::from_raw(pid), Signal::SIGKILL) {
            Ok(()) | Err(Errno::ESRCH) => {}
            Err(error) => return Err(error).context("cannot kill the guard"),
        }
        self.last = Some(pid);
        self.kills += 1;
        Ok(())
    }

    fn running(&self) -> Option<i32> {
        let text = fs::read_to_string(&self.procs).ok()?;
        text.lines().next()?.parse().ok()
    }
}
