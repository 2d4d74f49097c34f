//! The examples for authors of apps, in Python and in Rust: each attaches itself, gets its budget, reads the pressure,
//! and what it attached is released when it dies.

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;

use super::{CONTAINER, Scenario};
use crate::harness::guard::{Guard, HEAVY, QUIET};
use crate::harness::load::signal;
use crate::harness::outcome::{Verdict, step};
use crate::harness::proc;
use crate::harness::session::{Session, this_program};
use crate::harness::wait::{PATIENCE, until_true};

pub const SCENARIO: Scenario = Scenario {
    name: "example-apps",
    tiers: CONTAINER,
    quick: true,
    full: false,
    exclusive: false,
    timeout_s: 120,
    run,
};

const PYTHON: &str = include_str!("../../../../dbus-interfaces/examples/app.py");

/// An app that runs, and what it prints.
struct App {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl App {
    /// In a scope of app.slice, as a desktop starts it.
    fn start(words: &[&str]) -> Result<App> {
        let mut child = Command::new("systemd-run")
            .args(["--user", "--scope", "--quiet", "--collect", "--slice=app.slice", "-pDelegate=yes", "--"])
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("systemd-run")?;
        let lines = BufReader::new(child.stdout.take().context("no pipe")?).lines();
        Ok(App { child, lines })
    }

    fn says(&mut self, key: &str) -> Result<String> {
        let line = self.lines.next().with_context(|| format!("it ended before its {key}"))??;
        step(&line);
        let value = line.strip_prefix(&format!("{key}: "));
        Ok(value.with_context(|| format!("{line:?} instead of its {key}"))?.to_owned())
    }
}

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, QUIET)?;
    let program = this_program()?;
    for words in [&["python3", "-c", PYTHON][..], &[&program, "example-app"]] {
        let mut app = App::start(words)?;
        let worker: u32 = app.says("worker")?.parse()?;
        let source = proc::cgroup_of(worker)?;
        let workload = app.says("workload")?;
        // A scope's program is what systemd-run becomes.
        let pid = app.child.id();
        let row = guard.workload_of(pid)?.context("it is in no workload")?;
        ensure!(row.path.as_str() == workload && row.reason == "placed", "{row:?}");
        let budget = app.says("budget")?;
        ensure!(budget == "none" || budget.ends_with(HEAVY), "{budget}");
        let pressure = app.says("pressure")?;
        ensure!(pressure.starts_with("some avg10=") || pressure.starts_with("not told here"), "{pressure}");
        for member in [pid, worker] {
            let now = proc::cgroup_of(member)?;
            ensure!(now == row.control_group && now.contains(HEAVY), "{member} is in {now}");
        }
        signal(pid, Signal::SIGKILL)?;
        app.child.wait()?;
        until_true("what the app attached is released", PATIENCE, || {
            let now = proc::cgroup_of(worker)?;
            ensure!(now == source, "its worker is in {now}, not in {source}");
            Ok(guard.holds()?.is_empty() && guard.workloads()?.is_empty())
        })?;
        signal(worker, Signal::SIGKILL)?;
        step(format_args!("{}: attached, and released when it died", words[0]));
    }
    Ok(())
}
