//! A build whose processes all live briefly is adopted at `make`: not at the script that started it, and not
//! together with the editor beside it. No rule names anything here.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::{BOTH, Scenario};
use crate::harness::command;
use crate::harness::guard::{Guard, HEAVY, PROTECTED, Settings};
use crate::harness::home;
use crate::harness::outcome::{Verdict, step};
use crate::harness::proc;
use crate::harness::session::{HOME, Session};
use crate::harness::signals::Signal;
use crate::harness::wait::hold;

pub const SCENARIO: Scenario = Scenario {
    name: "tree-adopted-at-make",
    tiers: BOTH,
    quick: false,
    full: false,
    exclusive: true,
    timeout_s: 300,
    run,
};

/// The shipped files of rules, each of which an empty one of the user's takes away.
const SHIPPED: &[&str] = &[
    "50-ai.toml",
    "50-containers.toml",
    "50-javascript.toml",
    "50-jvm.toml",
    "50-languages.toml",
    "50-media.toml",
    "50-native.toml",
    "50-python.toml",
    "50-rust.toml",
];
/// Six sample periods at default settings.
const IN_TIME: Duration = Duration::from_secs(12);
/// Source of lua5.4, where the image has it.
const LUA: &str = "/usr/src/lua5.4";
const UNIT: &str = "terminal-of-a-build.scope";
/// What a shell in a terminal does: an editor in the background, a build, and waiting for it.
const SCRIPT: &str = r#"sleep infinity & echo "$!"; cd "$1" && shift; "$@" >/dev/null 2>&1 & echo "$!"; wait"#;
/// Stands for a compiler: all of a CPU for some tenths of a second.
const SHORT: &str = "awk 'BEGIN { for (i = 0; i < 3000000; i++) x += i }'";

/// The script with what it started. All of it ends when this is dropped.
struct Terminal {
    child: Child,
    editor: u32,
    build: u32,
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The work goes with its source, wherever it is.
        let _ = command::run(&["systemctl", "--user", "stop", UNIT]);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn run(session: &Session) -> Verdict {
    for name in SHIPPED {
        home::write(&home::config_dir().join("rules.d").join(name), "")?;
    }
    let real = has_real_build()?;
    let (folder, words) = build(real)?;
    let guard = Guard::install(session, settings(real))?;
    let begin = Instant::now();
    let terminal = start(&folder, &words)?;
    let source = proc::cgroup_of(terminal.editor)?;

    let (at, routed) = guard
        .signals
        .after(0, "any route", IN_TIME, |heard| match &heard.signal {
            Signal::Routed(routed) => Some((heard.at, routed.clone())),
            _ => None,
        })?;
    // Where make calls make, the lowest one that explains the load.
    let (is_make, line) = (is_make(&routed.command), proc::tree(terminal.build)?);
    ensure!(
        is_make && (routed.pid == terminal.build || line.contains(&routed.pid)),
        "not make was adopted: {routed:?}; the build is {} with {line:?}",
        terminal.build
    );
    step(format_args!(
        "{} adopted after {:.1} s: {}",
        routed.command,
        at.duration_since(begin).as_secs_f64(),
        routed.reason
    ));
    ensure!(routed.reason == "sustained-cpu", "reason: {}", routed.reason);
    ensure!(routed.source == source, "source: {}", routed.source);
    let now = proc::cgroup_of(routed.pid)?;
    ensure!(now == routed.destination && now.contains(HEAVY), "{now}");
    ensure!(guard.routed_total()? == 1, "more than make was adopted");
    hold("editor and script stay", Duration::from_secs(3), || {
        for pid in [terminal.editor, terminal.child.id()] {
            let now = proc::cgroup_of(pid)?;
            ensure!(now == source, "{pid} is in {now}, not in {source}");
        }
        Ok(())
    })
}

/// Make, or the script that stands for it.
fn is_make(command: &str) -> bool {
    command.starts_with("make ") || command.starts_with("sh make ")
}

/// Whether the real thing can be built, and takes long enough. Outside of the machine, which emulates its
/// CPUs, it is over before the defaults count to four.
fn has_real_build() -> Result<bool> {
    let container = command::run(&["systemd-detect-virt", "--container", "--quiet"])?;
    Ok(container.status != 0 && Path::new(LUA).is_dir())
}

/// The defaults with the real build. For the one that stands for it the thresholds alone are lower: several
/// guests may share two CPUs, and it asks for no more than that.
fn settings(real: bool) -> Settings<'static> {
    if real {
        return &[];
    }
    &[
        ("WORKLOAD_GUARD_CPU_THRESHOLD", "20"),
        ("WORKLOAD_GUARD_RECOVERY_CPU_THRESHOLD", "5"),
    ]
}

/// Where to build what: the real thing where the image has it, else one that is as busy.
fn build(real: bool) -> Result<(PathBuf, Vec<String>)> {
    let folder = Path::new(HOME).join("tree-build");
    let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect();
    if real {
        command::ok(&["cp", "--recursive", LUA, &folder.to_string_lossy()])?;
        return Ok((folder, words(&["make", "-j8", "linux"])));
    }
    if command::run(&["make", "--version"]).is_ok() {
        let jobs: String = (0..2000).map(|n| format!(" job{n}")).collect();
        let text = format!("all:{jobs}\njob%:\n\t@{}\n", SHORT);
        home::write(&folder.join("Makefile"), &text)?;
        return Ok((folder, words(&["make", "-j8"])));
    }
    // No make in this image: a script of that name that starts and waits for as much.
    let text = format!("while :; do {SHORT} & {SHORT} & wait; done\n");
    home::write(&folder.join("make"), &text)?;
    Ok((folder, words(&["sh", "make", "-j2"])))
}

fn start(folder: &Path, words: &[String]) -> Result<Terminal> {
    let mut child = Command::new("systemd-run")
        .args(["--user", "--scope", "--quiet", "--collect"])
        .arg(format!("--unit={UNIT}"))
        .arg(format!("--slice={PROTECTED}"))
        .args(["--", "sh", "-c", SCRIPT, "script"])
        .arg(folder)
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start systemd-run")?;
    let mut lines = BufReader::new(child.stdout.take().context("no pipe")?).lines();
    let mut terminal = Terminal {
        child,
        editor: 0,
        build: 0,
    };
    let mut pid = || -> Result<u32> {
        let line = lines.next().context("the script ended")??;
        line.trim().parse().context("a PID")
    };
    terminal.editor = pid()?;
    terminal.build = pid()?;
    Ok(terminal)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn every_shipped_file_is_taken_away() -> Result<()> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/rules.d");
        let mut names = Vec::new();
        for entry in fs::read_dir(folder)? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        assert_eq!(names, SHIPPED);
        Ok(())
    }
}
