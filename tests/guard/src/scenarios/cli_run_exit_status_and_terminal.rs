//! `workload-guard run` becomes the command: in the class's slice, with its exit status and its terminal.

use anyhow::ensure;

use super::{CONTAINER, Scenario};
use crate::harness::command;
use crate::harness::guard::{Guard, HEAVY, PROTECTED, QUIET};
use crate::harness::outcome::{Verdict, step};
use crate::harness::session::Session;
use crate::harness::units;
use crate::harness::wait::PATIENCE;

pub const SCENARIO: Scenario = Scenario {
    name: "cli-run-exit-status-and-terminal",
    tiers: CONTAINER,
    quick: true,
    full: false,
    exclusive: false,
    timeout_s: 90,
    run,
};

fn run(session: &Session) -> Verdict {
    let _guard = Guard::install(session, QUIET)?;
    for (words, slice) in [
        (&["workload-guard", "run"][..], HEAVY),
        (&["workload-guard", "protect"], PROTECTED),
        (&["run-workload"], HEAVY),
    ] {
        let mut argv = words.to_vec();
        argv.extend(["sh", "-c", "cat /proc/self/cgroup; exit 7"]);
        let ended = command::run(&argv)?;
        ensure!(ended.status == 7, "{words:?}: {}: {}", ended.status, ended.said());
        ensure!(
            ended.stdout.contains(slice),
            "{words:?} ran in {}",
            ended.stdout
        );
        ensure!(ended.stderr.is_empty(), "{words:?} said {}", ended.stderr);
        step(format_args!("{words:?}: status 7 from {}", ended.stdout.trim()));
    }

    let ended = command::run(&["workload-guard", "run", "sh", "-c", "kill -KILL $$"])?;
    ensure!(ended.status == 137, "killed: {}", ended.status);
    let ended = command::run(&["workload-guard", "run", "no-such-command"])?;
    ensure!(
        ended.status == 127 && ended.stderr.contains("no-such-command"),
        "not found: {}: {}",
        ended.status,
        ended.said()
    );
    let ended = command::run(&["workload-guard", "run", "/etc/passwd"])?;
    ensure!(
        ended.status == 126 && ended.stderr.contains("/etc/passwd"),
        "not executable: {}: {}",
        ended.status,
        ended.said()
    );
    step("killed 137, not found 127, not executable 126");

    // As `run --help` says: no file that the command opens becomes its standard input by chance.
    let said = command::ok(&["sh", "-c", "workload-guard run readlink /proc/self/fd/0 <&-"])?;
    ensure!(said.trim() == "/dev/null", "closed standard input: {said}");

    // script(1) gives it a terminal.
    let said = command::ok(&[
        "script",
        "--quiet",
        "--return",
        "--command",
        "workload-guard run sh -c 'test -t 0 && test -t 1 && test -t 2 && ps -o tpgid= -p $$ && echo $$ && cat /proc/self/cgroup'",
        "/dev/null",
    ])?;
    ensure!(said.contains(HEAVY), "on a terminal: {said}");
    let numbers: Vec<&str> = said.split_whitespace().take(2).collect();
    ensure!(
        numbers.len() == 2 && numbers[0] == numbers[1],
        "the command is not in the terminal's foreground: {said}"
    );

    // Without a command, an interactive shell that reads what is typed.
    let said = command::ok(&[
        "sh",
        "-c",
        "printf 'cat /proc/self/cgroup\\nexit 0\\n' | script --quiet --return --command 'run-workload' /dev/null",
    ])?;
    ensure!(said.contains(HEAVY), "the shell: {said}");
    step("the terminal is the command's; without a command a shell");
    units::no_scope_of_ours_left(session, PATIENCE)
}
