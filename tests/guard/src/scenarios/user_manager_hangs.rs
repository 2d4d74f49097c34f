//! The user manager or the bus stops to answer: no call and no start of the guard waits for ever.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use nix::sys::signal::Signal;
use workload_guard_dbus::GuardError;
use workload_guard_dbus::names::GUARD_UNIT;

use super::{CONTAINER, Scenario};
use crate::harness::guard::{FAST, Guard};
use crate::harness::load::{load, signal};
use crate::harness::outcome::{Verdict, step};
use crate::harness::proc;
use crate::harness::session::{Session, payload};
use crate::harness::units;
use crate::harness::wait::PATIENCE;

pub const SCENARIO: Scenario = Scenario {
    name: "user-manager-hangs",
    tiers: CONTAINER,
    quick: true,
    full: false,
    exclusive: false,
    timeout_s: 240,
    run,
};

/// The guard's deadline of one call, and a good deal for a machine that others use as well.
const DEADLINE: Duration = Duration::from_secs(50);
/// The exit status of a service that lacks what it needs (sysexits(3)).
const UNAVAILABLE: i32 = 69;

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, FAST)?;
    let its_pid = guard.pid()?;
    let manager = proc::user_manager()?;
    let bus: u32 = units::property("dbus.service", "MainPID")?.parse()?;
    let load = load(&["spin", "--idle"]).start()?;
    {
        let _stopped = Stopped::stop(manager)?;
        match guard.route(load.pid, "heavy") {
            Err(GuardError::Timeout(text)) => step(format_args!("a move: {text}")),
            other => bail!("a move without a manager: {other:?}"),
        }
        ensure!(load.now_in()? == load.cgroup, "it was moved");
        guard.state()?;
    }
    guard.routed_by_load(load.pid)?;
    let recovered = guard.recovered_when_idle(load.pid)?;
    ensure!(
        recovered.exact && recovered.destination == load.cgroup,
        "{recovered:?}"
    );
    ensure!(guard.pid()? == its_pid, "the guard was started again");
    step("the manager goes on, and so does the guard");
    drop(load);
    units::no_scope_of_ours_left(session, PATIENCE)?;

    units::systemctl(&["stop", GUARD_UNIT])?;
    for (who, pid) in [("the user manager", manager), ("the bus", bus)] {
        let _stopped = Stopped::stop(pid)?;
        let took = start_in_vain()?;
        step(format_args!("{who} stopped: a start gives up after {:.1} s", took.as_secs_f64()));
    }
    guard.start()
}

/// Starts the daemon, which cannot work, and tells how long it took to say so.
fn start_in_vain() -> Result<Duration> {
    let begin = Instant::now();
    let mut child = Command::new(payload("workload-guardd")).spawn()?;
    loop {
        if let Some(status) = child.try_wait()? {
            ensure!(status.code() == Some(UNAVAILABLE), "it ended with {status}");
            return Ok(begin.elapsed());
        }
        if begin.elapsed() > DEADLINE {
            child.kill()?;
            child.wait()?;
            bail!("it still waits after {DEADLINE:?}");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A stopped process; goes on in the end, come what may.
struct Stopped(u32);

impl Stopped {
    fn stop(pid: u32) -> Result<Stopped> {
        signal(pid, Signal::SIGSTOP)?;
        Ok(Stopped(pid))
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = signal(self.0, Signal::SIGCONT);
    }
}
