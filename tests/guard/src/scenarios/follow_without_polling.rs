//! `status --follow` tells what happens by signals: it sleeps while nothing does, and outlives the guard.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{CONTAINER, Scenario};
use crate::harness::command;
use crate::harness::guard::{Guard, QUIET};
use crate::harness::load::load;
use crate::harness::outcome::{Verdict, step};
use crate::harness::session::Session;
use crate::harness::wait::{PATIENCE, hold, until_true};

pub const SCENARIO: Scenario = Scenario {
    name: "follow-without-polling",
    tiers: CONTAINER,
    quick: true,
    full: false,
    exclusive: false,
    timeout_s: 120,
    run,
};

/// Twelve samples of the guard's.
const STILL: Duration = Duration::from_secs(3);

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, QUIET)?;
    let nest = load(&["nest", "1"]).slice("app.slice").property("Delegate=yes").start()?;
    let mut following = Following::start()?;
    let first = following.next()?;
    ensure!(first["event"] == "status" && first["status"]["state"].is_string(), "{first}");

    // While the guard samples on, the follower is not even woken.
    let mut last = String::new();
    until_true("it sleeps", PATIENCE, || {
        let before = following.switches()?;
        let still = hold("it is not woken", STILL, || {
            let now = following.switches()?;
            ensure!(now == before, "threads and how often each slept: {before:?}, then {now:?}");
            Ok(())
        });
        last = still.as_ref().map_or_else(|error| format!("{error:#}"), |()| String::new());
        Ok(still.is_ok())
    })
    .with_context(|| last)?;
    step(format_args!("not woken once in {STILL:?}"));

    let child = nest.member()?;
    guard.attach(&[child], "heavy", "")?;
    following.tells("routed", |event| event["pid"] == child && event["class"] == "heavy")?;
    guard.release(child)?;
    following.tells("recovered", |event| event["pid"] == child)?;

    let cookie = command::ok(&["workload-guard", "pause", "a", "demo"])?;
    // In the order in which the guard tells them.
    following.tells("state", |event| event["state"] == "paused")?;
    following.tells("state-reasons", |event| event["state_reasons"].to_string().contains("a demo"))?;
    following.tells("held", |event| {
        event["hold"]["kind"] == "pause"
            && event["hold"]["reason"] == "a demo"
            && cookie.starts_with(&format!("hold {};", event["hold"]["id"]))
    })?;
    command::ok(&["workload-guard", "resume"])?;
    following.tells("unheld", |event| event["hold"]["reason"] == "a demo")?;
    step("routed, recovered, held, state, unheld");

    let work = load(&["spin", "--idle"]).slice("app.slice").start()?;
    let pid = work.pid;
    guard.attach(&[pid], "heavy", "")?;
    following.tells("routed", |event| event["pid"] == pid)?;
    drop(work);
    following.tells("ended", |event| event["pid"] == pid && event["class"] == "heavy")?;

    guard.kill_and_wait_for_the_next()?;
    following.tells("stopped", |_| true)?;
    following.tells("started", |event| event["status"]["state"].is_string())?;
    guard.attach(&[child], "heavy", "")?;
    following.tells("routed", |event| event["pid"] == child)?;
    step("ended; the guard killed and back, and followed again");
    Ok(())
}

struct Following {
    child: Child,
    lines: Receiver<String>,
}

impl Following {
    fn start() -> Result<Following> {
        let mut child = Command::new("workload-guard")
            .args(["status", "--follow", "--json"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("workload-guard")?;
        let out = BufReader::new(child.stdout.take().context("no pipe")?);
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Following { child, lines })
    }

    fn next(&mut self) -> Result<Value> {
        let line = self.lines.recv_timeout(PATIENCE).context("nothing more is told")?;
        serde_json::from_str(&line).with_context(|| line.clone())
    }

    /// Waits for one event, past others.
    fn tells(&mut self, name: &str, which: impl Fn(&Value) -> bool) -> Result<()> {
        let mut passed = Vec::new();
        loop {
            let event = self.next().with_context(|| format!("no {name}, but {passed:#?}"))?;
            if event["event"] == name && which(&event) {
                return Ok(());
            }
            passed.push(event);
        }
    }

    /// How often each of its threads has gone to sleep so far, but for those that zbus keeps for blocking calls:
    /// they look for work twice a second, and there is none.
    fn switches(&self) -> Result<BTreeMap<String, u64>> {
        let mut all = BTreeMap::new();
        for task in std::fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let path = task?.path();
            let status = std::fs::read_to_string(path.join("status"))?;
            let value = |name: &str| {
                let line = status.lines().find_map(|line| line.strip_prefix(name));
                line.map(|text| text.trim().to_owned()).context("an unknown status")
            };
            let name = value("Name:")?;
            if name.starts_with("blocking-") {
                continue;
            }
            let thread = format!("{name} {}", path.display());
            all.insert(thread, value("voluntary_ctxt_switches:")?.parse()?);
        }
        Ok(all)
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
