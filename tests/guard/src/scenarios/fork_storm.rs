//! A fork storm in what is watched costs the guard little, and leaves it correct.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use super::{MACHINE, Scenario};
use crate::harness::guard::{Guard, Settings};
use crate::harness::load::load;
use crate::harness::outcome::{Verdict, step};
use crate::harness::proc;
use crate::harness::session::{HOME, Session};
use crate::harness::wait::{PATIENCE, until};

pub const SCENARIO: Scenario = Scenario {
    name: "fork-storm",
    tiers: MACHINE,
    quick: false,
    full: true,
    exclusive: true,
    timeout_s: 180,
    run,
};

/// The defaults, but the storm is not routed for its CPU: it is to stay where it hurts.
const SETTINGS: Settings<'static> = &[("WORKLOAD_GUARD_SUSTAINED_SAMPLES", "1000")];
const SECONDS: u64 = 10;
/// Of one CPU.
const MOST: f64 = 0.10;

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, SETTINGS)?;
    ensure!(guard.has_exec_events()?, "no exec events");
    let pid = guard.pid()?;
    let out = Path::new(HOME).join("storm.log");
    let before = (proc::cpu_time(pid)?, Instant::now());
    let storm = load(&["storm", &out.to_string_lossy(), &SECONDS.to_string()]).start()?;
    let text = until("the storm is over", Duration::from_secs(60), || {
        Ok(Some(fs::read_to_string(&out)?))
    })?;
    let used = proc::cpu_time(pid)?.saturating_sub(before.0).as_secs_f64();
    let share = used / before.1.elapsed().as_secs_f64();
    let (count, seconds) = text.trim().split_once(' ').context("two figures")?;
    let (count, seconds): (f64, f64) = (count.parse()?, seconds.parse()?);
    let lost = zbus::block_on(guard.proxy().exec_events_lost())?;
    step(format_args!(
        "{count:.0} programs in {seconds:.1} s: {:.0} a second on {} CPUs; the guard used {:.1} % of a CPU (at most {:.0} %); {lost} events lost",
        count / seconds,
        proc::cpus()?,
        share * 100.0,
        MOST * 100.0,
    ));
    ensure!(storm.now_in()? == storm.cgroup, "the storm was moved");
    ensure!(share < MOST, "the guard used {:.1} % of a CPU", share * 100.0);
    ensure!(guard.pid()? == pid, "the guard was started again");
    drop(storm);
    let begin = Instant::now();
    let make = load(&["spin", "--idle"]).named("make").start()?;
    let (at, _) = guard.signals.routed(make.pid, PATIENCE)?;
    step(format_args!(
        "afterwards a known-heavy program is routed {:.0} ms after it was asked for",
        (at - begin).as_secs_f64() * 1000.0
    ));
    Ok(())
}
