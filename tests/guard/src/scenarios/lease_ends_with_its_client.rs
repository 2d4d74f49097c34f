//! What a client holds ends with it, however it ends, and also when the guard does not run at that moment.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;

use super::{CONTAINER, Scenario};
use crate::harness::command;
use crate::harness::guard::{Guard, HEAVY, QUIET};
use crate::harness::load::{load, signal};
use crate::harness::outcome::{Verdict, step};
use crate::harness::session::Session;
use crate::harness::units;
use crate::harness::wait::{PATIENCE, until_true};

pub const SCENARIO: Scenario = Scenario {
    name: "lease-ends-with-its-client",
    tiers: CONTAINER,
    quick: true,
    full: false,
    exclusive: false,
    timeout_s: 120,
    run,
};

const AGENT: &str = include_str!("lease_ends_with_its_client/agent.py");
/// The promise, which one of so many tries must keep on a machine that does other things as well.
const PROMISE: Duration = Duration::from_secs(1);
const TRIES: u32 = 3;

/// Starts the agent, and answers once it has its lease and its pause.
fn agent(pid: u32) -> Result<Child> {
    let mut child = Command::new("python3")
        .args(["-c", AGENT, &pid.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("python3")?;
    let mut lines = BufReader::new(child.stdout.take().context("no pipe")?).lines();
    let workload = lines.next().context("the agent got no lease")??;
    let pause = lines.next().context("the agent got no hold")??;
    ensure!(workload.starts_with('/') && pause.parse::<u64>().is_ok(), "{workload} {pause}");
    Ok(child)
}

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, QUIET)?;
    let load = load(&["spin", "--idle"]).slice("app.slice").start()?;

    let mut best = Duration::MAX;
    for _ in 0..TRIES {
        let mut agent = agent(load.pid)?;
        ensure!(load.now_in()?.contains(HEAVY), "leased, it is in {}", load.now_in()?);
        ensure!(guard.state()? == "paused", "state: {}", guard.state()?);
        let holds = guard.holds()?;
        ensure!(
            holds.len() == 2
                && holds.iter().all(|row| {
                    row.owner.starts_with(':')
                        && row.owner_pid == agent.id()
                        && row.owner_command.contains("python3")
                        && row.reason == "an agent at work"
                }),
            "{holds:#?}"
        );
        signal(agent.id(), Signal::SIGKILL)?;
        let begin = Instant::now();
        until_true("nothing is held any more", PATIENCE, || Ok(guard.holds()?.is_empty()))?;
        let took = begin.elapsed();
        step(format_args!("kill -9: no hold left after {:.0} ms", took.as_secs_f64() * 1e3));
        best = best.min(took);
        agent.wait()?;
        ensure!(load.now_in()? == load.cgroup, "released, it is in {}", load.now_in()?);
        ensure!(guard.state()? != "paused", "still paused");
    }
    ensure!(best < PROMISE, "at best {best:?}");

    // While the guard is away.
    let mut agent = agent(load.pid)?;
    command::ok(&["workload-guard", "pause", "a", "meeting"])?;
    units::systemctl(&["stop", "workload-guard.service"])?;
    ensure!(load.now_in()?.contains(HEAVY), "stopped, it is in {}", load.now_in()?);
    signal(agent.id(), Signal::SIGKILL)?;
    agent.wait()?;
    guard.start()?;
    until_true("what the dead client held has ended", PATIENCE, || {
        let holds = guard.holds()?;
        ensure!(
            holds.len() == 1 && holds[0].reason == "a meeting" && holds[0].owner.is_empty(),
            "{holds:#?}"
        );
        Ok(true)
    })?;
    ensure!(load.now_in()? == load.cgroup, "released, it is in {}", load.now_in()?);
    step("a client that leaves while the guard is away; a person's pause stays");

    // A lease of time.
    let pid = load.pid.to_string();
    command::ok(&["workload-guard", "attach", &pid, "--class", "heavy", "--for", "1s"])?;
    until_true("a second is over", PATIENCE, || Ok(load.now_in()? == load.cgroup))?;
    step("a lease of a second");
    Ok(())
}
