//! bash, zsh and fish complete words of ours, PIDs, classes and profiles; without a guard they complete nothing of
//! its and start none.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use workload_guard_dbus::names::GUARD_UNIT;

use super::{CONTAINER, Scenario};
use crate::harness::command;
use crate::harness::guard::{Guard, QUIET};
use crate::harness::load::load;
use crate::harness::outcome::{Verdict, step};
use crate::harness::session::Session;
use crate::harness::units;

pub const SCENARIO: Scenario = Scenario {
    name: "completions-in-three-shells",
    tiers: CONTAINER,
    quick: true,
    full: false,
    exclusive: false,
    timeout_s: 180,
    run,
};

const TYPE: &str = include_str!("completions_in_three_shells/type.py");
/// Far more than it takes, on a machine that does other things as well.
const BEARABLE: Duration = Duration::from_millis(500);

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, QUIET)?;
    let load = load(&["spin", "--idle"]).slice("app.slice").start()?;
    guard.attach(&[load.pid], "heavy", "")?;
    let pid = load.pid.to_string();
    // So much of a word that nothing else begins so; after no letter the options are offered as well.
    let (digit, _) = pid.split_at(1);
    let cases = [
        ("workload-guard rele".to_owned(), "workload-guard release".to_owned()),
        (format!("workload-guard release {digit}"), format!("workload-guard release {pid}")),
        ("workload-guard route --class h".to_owned(), "workload-guard route --class heavy".to_owned()),
        ("workload-guard bench apply m".to_owned(), "workload-guard bench apply multi-core".to_owned()),
    ];
    for shell in ["bash", "zsh"] {
        for (typed, wanted) in &cases {
            let line = command::ok(&["python3", "-c", TYPE, shell, typed])?;
            ensure!(line == *wanted, "{shell}: {typed:?} became {line:?}, not {wanted:?}");
        }
        step(format_args!("{shell} completes a command, a workload's PID, a class and a profile"));
    }
    for (typed, wanted) in &cases {
        let word = wanted.rsplit(' ').next().unwrap_or_default();
        let said = fish(typed)?;
        let found = said.lines().any(|line| {
            let value = line.split('\t').next().unwrap_or_default();
            value == word
        });
        ensure!(found, "fish: {typed:?} offers {said:?}, not {word}");
    }
    let own = fish(&format!("workload-guard explain {pid}"))?;
    ensure!(own.starts_with(&pid) && own.contains("load"), "fish: {own:?}");
    let elsewhere = fish("workload-guard -H somewhere release ")?;
    ensure!(!elsewhere.contains(&pid), "fish offers our PIDs for another machine: {elsewhere}");
    step("fish completes the same, with what each is");

    let answer = || -> Result<(String, Duration)> {
        let begin = Instant::now();
        let mut command = Command::new("workload-guard");
        command.env("_WORKLOAD_GUARD_COMPLETE", "fish");
        let ended = command::finish(command.args(["--", "workload-guard", "release", ""]))?;
        ensure!(ended.status == 0 && ended.stderr.is_empty(), "{ended:?}");
        Ok((ended.stdout, begin.elapsed()))
    };
    let mut best = Duration::MAX;
    for _ in 0..10 {
        let (said, took) = answer()?;
        ensure!(said.starts_with(&pid), "{said}");
        best = best.min(took);
    }
    step(format_args!("an answer at best in {:.1} ms", best.as_secs_f64() * 1e3));
    ensure!(best < BEARABLE, "{best:?}");

    units::systemctl(&["stop", GUARD_UNIT])?;
    let (said, _) = answer()?;
    ensure!(!said.lines().any(|line| line.starts_with(char::is_numeric)), "of no guard: {said:?}");
    let classes = fish("workload-guard route --class ")?;
    ensure!(!classes.contains("heavy"), "of no guard: {classes:?}");
    let state = units::active_state(GUARD_UNIT)?;
    ensure!(state == "inactive", "the guard is {state} after a completion");
    step("without a guard nothing, and none was started");
    Ok(())
}

fn fish(line: &str) -> Result<String> {
    let ask = format!("complete -C {}", quoted(line));
    command::ok(&["fish", "--private", "-c", &ask])
}

fn quoted(text: &str) -> String {
    format!("'{text}'")
}
