//! Processes that end while they are moved: the call says so, nothing is left behind, the guard goes on.

use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use nix::sys::signal::Signal;
use workload_guard_dbus::GuardError;

use super::{CONTAINER, Scenario};
use crate::harness::guard::{FAST, Guard};
use crate::harness::load::{load, signal};
use crate::harness::outcome::{Verdict, step};
use crate::harness::session::Session;
use crate::harness::units;
use crate::harness::wait::{PATIENCE, until_true};

pub const SCENARIO: Scenario = Scenario {
    name: "dead-pid-in-the-middle-of-a-move",
    tiers: CONTAINER,
    quick: false,
    full: false,
    exclusive: false,
    timeout_s: 120,
    run,
};

/// Moves during which the process is killed, each a bit later than the one before.
const ROUNDS: u32 = 30;
const LATER: Duration = Duration::from_micros(700);

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, FAST)?;
    let its_pid = guard.pid()?;

    let mut moved = 0;
    let mut refused = 0;
    for round in 0..ROUNDS {
        let load = load(&["spin", "--idle"]).start()?;
        let pid = load.pid;
        let killer = std::thread::spawn(move || {
            let begin = Instant::now();
            while begin.elapsed() < LATER * round {
                std::thread::yield_now();
            }
            signal(pid, Signal::SIGKILL)
        });
        match guard.route(pid, "heavy") {
            Ok(_) => moved += 1,
            Err(GuardError::NoSuchProcess(_)) => refused += 1,
            Err(other) => bail!("round {round}: {other:?}"),
        }
        killer
            .join()
            .map_err(|_| anyhow::anyhow!("the killer panicked"))??;
    }
    step(format_args!(
        "{ROUNDS} killed during the move: {moved} moved first, {refused} told as gone"
    ));

    let nest = load(&["zombie"]).start()?;
    match guard.route(nest.member()?, "heavy") {
        Err(GuardError::NoSuchProcess(text)) => step(format_args!("a zombie: {text}")),
        other => bail!("a zombie: {other:?}"),
    }

    for _ in 0..5 {
        let forker = load(&["forker"]).start()?;
        let (_, routed) = guard.signals.routed(forker.pid, PATIENCE)?;
        let now = forker.now_in()?;
        ensure!(now == routed.destination, "the forker is in {now}");
    }
    step("5 trees whose children come and go all the time: routed");

    until_true("no workload is listed", PATIENCE, || {
        let left = guard.workloads()?;
        ensure!(left.is_empty(), "{left:?}");
        Ok(true)
    })?;
    units::no_scope_of_ours_left(session, PATIENCE)?;
    ensure!(guard.pid()? == its_pid, "the guard was started again");
    Ok(())
}
