//! The Debian packages in a guest: installed, used, upgraded with work routed, removed and purged. After that the file
//! system is as it was before.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::{CONTAINER, Scenario};
use crate::harness::call;
use crate::harness::command;
use crate::harness::files::{self, Listing};
use crate::harness::outcome::{Verdict, step};
use crate::harness::service;
use crate::harness::wait::{PATIENCE, until_true};

pub const SCENARIO: Scenario = Scenario {
    name: "packages-come-and-go",
    tiers: CONTAINER,
    quick: false,
    full: false,
    exclusive: false,
    timeout_s: 180,
    boots: &[run],
};

const PACKAGES: [&str; 3] = ["workload-guard-common", "workload-guard", "workload-guard-bench"];
const SETTINGS: &str = "/etc/linux-workload-guard/guard.toml";
const MACHINE: &str = "/etc/bench-profile/machine.toml";
const GUARD: &str = "workload-guard.service";

fn run() -> Verdict {
    let old = build("1~old").context("the older packages")?;
    let new = build("1").context("the newer packages")?;
    step(format_args!("built {}", new.join(" ")));
    let before = look()?;

    dpkg(&["--install"], &old)?;
    step(format_args!("installed: {}", old.join(" ")));
    let enabled = command::run(&["systemctl", "--global", "is-enabled", GUARD])?;
    ensure!(enabled.stdout.trim() == "enabled", "{GUARD}: {}", enabled.said());
    ensure!(
        service::property("bench-prep.service", "UnitFileState")? == "enabled",
        "bench-prep.service is not enabled"
    );
    // The first call of a user starts the guard.
    let status = as_dev(&["workload-guard", "status"])?;
    ensure!(status.contains("heavy-workload.slice"), "status says {status:?}");
    as_dev(&["run-workload", "true"])?;
    let version = command::ok(&[
        "busctl",
        "get-property",
        call::INTERFACE,
        workload_guard_dbus::names::BENCH_PATH,
        call::INTERFACE,
        "Version",
    ])?;
    step(format_args!("both answer; bench-prepd {version}"));
    command::ok(&["bench-profile-status"])?;
    for program in ["workload-guard", "bench-prepd", "workload-guardd"] {
        let missing = command::ok(&["ldd", &format!("/usr/bin/{program}")])
            .map(|libraries| libraries.contains("not found"))
            .unwrap_or(false);
        ensure!(!missing, "{program} lacks a library");
    }

    // What an upgrade has to keep: settings, a machine file, a decision, and a route.
    let shipped = std::fs::read_to_string(SETTINGS)?;
    let settings = shipped.replacen("#cpu_threshold = 70", "cpu_threshold = 60", 1);
    ensure!(settings != shipped, "{SETTINGS} has no such line");
    std::fs::write(SETTINGS, &settings)?;
    let machine = std::fs::read_to_string("/opt/workload-guard/config/machine.toml")?;
    files::write(Path::new(MACHINE), &machine)?;
    command::ok(&["systemctl", "disable", "bench-prep.service"])?;
    let sleeper = as_dev(&[
        "systemd-run",
        "--user",
        "--quiet",
        "--unit=work",
        "--slice=app.slice",
        "sleep",
        "600",
    ]);
    sleeper?;
    let pid = as_dev(&["systemctl", "--user", "show", "--value", "--property=MainPID", "work"])?;
    as_dev(&["workload-guard", "attach", &pid, "--class", "heavy"])?;
    let guard = main_pid()?;
    dpkg(&["--install"], &new)?;
    for package in PACKAGES {
        let version = command::ok(&["dpkg-query", "--show", "--showformat=${Version}", package])?;
        ensure!(!version.contains("old"), "{package} is still {version}");
    }
    ensure!(std::fs::read_to_string(SETTINGS)? == settings, "the settings were changed");
    ensure!(Path::new(MACHINE).exists(), "the machine file is gone");
    ensure!(
        service::property("bench-prep.service", "UnitFileState")? == "disabled",
        "the upgrade enabled what was disabled"
    );
    until_true("the upgrade restarts the guard", PATIENCE, || {
        let now = main_pid()?;
        ensure!(now != guard && now != "0", "its process is {now}");
        Ok(true)
    })?;
    let status = as_dev(&["workload-guard", "status"])?;
    ensure!(status.contains(&pid), "the route of {pid} is lost: {status}");
    let config = as_dev(&["workload-guard", "config"])?;
    ensure!(
        config.lines().any(|line| line.contains("routing.cpu_threshold") && line.contains("60")),
        "the settings for all users are not in force: {config}"
    );
    step("upgraded: settings, decision and route are kept, the guard is the new one");

    let names = PACKAGES.map(str::to_owned);
    dpkg(&["--remove"], &names)?;
    ensure!(Path::new(&format!("/proc/{pid}")).exists(), "the removal ended the user's work");
    ensure!(Path::new(SETTINGS).exists() && Path::new(MACHINE).exists(), "a removal takes no settings");
    ensure!(!Path::new("/usr/bin/workload-guard").exists(), "the program is still there");
    ensure!(main_pid()? == "0", "the guard still runs");
    // dpkg has forgotten the one that has no settings.
    dpkg(&["--purge"], &names[1..])?;
    let left = files::difference(&before, &look()?);
    ensure!(left.is_empty(), "a purge left: {left:#?}");
    step("purged: the file system is as it was before");
    as_dev(&["systemctl", "--user", "stop", "work"])?;
    Ok(())
}

/// Everything that packages touch, without dpkg's own records.
fn look() -> Result<Listing> {
    files::listing(&["/etc", "/usr", "/boot", "/var/backups", "/var/lib/systemd", "/home/dev"]).map(|mut all| {
        all.retain(|path, _| !path.starts_with("/var/lib/systemd/coredump") && !path.starts_with("/var/lib/systemd/timers"));
        all
    })
}

/// Builds the packages of this revision, in the guest.
fn build(revision: &str) -> Result<Vec<String>> {
    let out = format!("/run/packages-{revision}");
    command::ok(&[
        "/opt/workload-guard/xtask",
        "package",
        "deb",
        "--dist=/opt/workload-guard",
        "--out",
        &out,
        "--revision",
        revision,
        "--compression=none",
    ])?;
    let mut packages = Vec::new();
    for entry in std::fs::read_dir(&out)? {
        packages.push(entry?.path().to_str().context("a name that is no text")?.to_owned());
    }
    packages.sort();
    ensure!(packages.len() == PACKAGES.len(), "built {packages:?}");
    Ok(packages)
}

fn dpkg(action: &[&str], what: &[String]) -> Result<()> {
    let mut argv = vec!["dpkg"];
    argv.extend(action);
    argv.extend(what.iter().map(String::as_str));
    let ended = command::run(&argv)?;
    ensure!(ended.status == 0, "dpkg {action:?} ended with {}: {}", ended.status, ended.said());
    ensure!(
        !ended.said().to_lowercase().contains("warning") && !ended.said().contains("Failed"),
        "dpkg {action:?} complains: {}",
        ended.said()
    );
    Ok(())
}

fn as_dev(words: &[&str]) -> Result<String> {
    let mut argv = vec![
        "runuser",
        "-u",
        "dev",
        "--",
        "env",
        "--chdir=/home/dev",
        "HOME=/home/dev",
        "XDG_RUNTIME_DIR=/run/user/1000",
        "DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/1000/bus",
    ];
    argv.extend(words);
    command::ok(&argv)
}

fn main_pid() -> Result<String> {
    as_dev(&["systemctl", "--user", "show", "--value", "--property=MainPID", GUARD])
}
