//! 600 processes that exit while they are routed: no empty scope stays behind. Done naively, 57 to 489 do.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::Signal;
use workload_guard_dbus::GuardError;

use super::{CONTAINER, Scenario};
use crate::harness::dice::Dice;
use crate::harness::guard::{Guard, QUIET};
use crate::harness::load::signal;
use crate::harness::outcome::{Verdict, step};
use crate::harness::session::Session;
use crate::harness::units;
use crate::harness::wait::PATIENCE;

pub const SCENARIO: Scenario = Scenario {
    name: "exits-while-routed",
    tiers: CONTAINER,
    quick: true,
    full: false,
    exclusive: false,
    timeout_s: 240,
    run,
};

const PROCESSES: usize = 600;
/// The first moments of exit are spread over this; after that over twice what the calls take here.
const AT_FIRST: Duration = Duration::from_millis(10);

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, QUIET)?;
    let its_pid = guard.pid()?;
    let mut dice = Dice::cast();
    let (mut moved, mut gone) = (0, 0);
    let mut spread = AT_FIRST;
    // Half of them stay zombies until the end: those systemd takes for living, and skips in silence.
    let mut unreaped = Vec::new();
    for round in 0..PROCESSES {
        let mut child = Command::new("sleep")
            .arg("infinity")
            .stdin(Stdio::null())
            .spawn()?;
        let pid = child.id();
        let moment = dice.up_to(spread);
        let keep = dice.one_in(2);
        let begin = Instant::now();
        let killer = std::thread::spawn(move || -> Result<_> {
            while begin.elapsed() < moment {
                std::thread::yield_now();
            }
            signal(pid, Signal::SIGKILL)?;
            if !keep {
                child.wait()?;
            }
            Ok(child)
        });
        let answer = match dice.one_in(2) {
            true => guard.route(pid, "heavy"),
            false => guard.attach(&[pid], "heavy", ""),
        };
        let took = begin.elapsed();
        match answer {
            Ok(_) => moved += 1,
            Err(GuardError::NoSuchProcess(_)) => gone += 1,
            Err(other) => bail!("process {round}: {other:?}"),
        }
        // Half before the end of the call, half after it, on machines of any speed.
        spread = (spread * 7 + took * 2) / 8;
        let child = killer
            .join()
            .map_err(|_| anyhow::anyhow!("the killer panicked"))?
            .context("the killer")?;
        if keep {
            unreaped.push(child);
        }
    }
    step(format_args!(
        "{PROCESSES} exited: {moved} moved first, {gone} told as gone; exits within {spread:?}, {} unreaped",
        unreaped.len()
    ));
    ensure!(
        moved.min(gone) >= PROCESSES / 10,
        "no race: {moved} moved, {gone} gone"
    );
    // While there are zombies, and without a reload, which would collect empty scopes.
    units::no_scope_of_ours_left(session, PATIENCE)?;
    let rows = guard.workloads()?;
    ensure!(rows.is_empty(), "{rows:?}");
    for mut child in unreaped {
        child.wait()?;
    }
    units::none_failed()?;
    ensure!(guard.pid()? == its_pid, "the guard was started again");
    Ok(())
}
