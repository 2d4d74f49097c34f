//! `install --system` brings the bench half to a machine that has the older tools, upgrades it, and takes it away again:
//! what was there is backed up and renamed, and the rest is as it was.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};

use super::{CONTAINER, Scenario};
use crate::harness::call::{self, Order};
use crate::harness::command::{self, Ended};
use crate::harness::files::{self, Listing};
use crate::harness::outcome::{Verdict, step};
use crate::harness::service;

pub const SCENARIO: Scenario = Scenario {
    name: "bench-install-and-uninstall",
    tiers: CONTAINER,
    quick: false,
    full: false,
    exclusive: false,
    timeout_s: 120,
    boots: &[run],
};

const MACHINE: &str = "/etc/bench-profile/machine.toml";
const OLD_CONF: &str = "/usr/local/lib/bench-profile/machine.conf";
const CONF: &str = "# shellcheck disable=SC2034
BENCH_CPUS=\"2-3\"
HOUSEKEEPING_CPUS=\"0-1\"
SINGLE_CORE_CPU=2
PARKED_CPUS=\"1\"
EXPECTED_ONLINE_CPUS=\"0-3\"
KERNEL_ENTRY_MATCH=\"linux\"
MASKED_UNITS=(cron.service)
NOISY_UNITS=(cron.service)
CANARY_SPEEDUP_DIVISOR=2
";

/// The files of the older tools that get another name.
const OLD: [&str; 4] = [
    "/usr/local/bin/bench-prep",
    "/usr/local/bin/bench-profile-status",
    "/etc/boot/hooks/post.d/95-add-benchmark-boot-entries",
    "/etc/systemd/system/bench-prep.service",
];

fn run() -> Verdict {
    let clean = look()?;
    for path in OLD {
        files::write(Path::new(path), "#!/bin/sh\n")?;
    }
    files::write(Path::new(OLD_CONF), CONF)?;
    files::write(Path::new("/boot/limine.conf"), "timeout: 5\n")?;
    let before = look()?;

    step(install(&[])?.said());
    for path in OLD {
        ensure!(
            Path::new(&format!("{path}.superseded")).exists(),
            "{path} was not renamed"
        );
    }
    let backed_up = command::ok(&["find", "/var/backups/bench-profile", "-type", "f"])?;
    for path in OLD.iter().chain(&[OLD_CONF, "/boot/limine.conf"]) {
        ensure!(
            backed_up.lines().any(|line| line.ends_with(path)),
            "{path} is not among the backups: {backed_up}"
        );
    }
    let config = command::ok(&["/usr/local/bin/workload-guard", "bench", "config"])?;
    ensure!(
        config.contains("bench = \"2-3\"") && config.contains("cron.service"),
        "the older machine file was not taken over: {config}"
    );
    ensure!(
        service::property("bench-prep.service", "UnitFileState")? == "enabled",
        "bench-prep.service is not enabled"
    );
    // The bus starts the service, and its policy and polkit's actions are in force.
    let version = command::ok(&[
        "busctl",
        "get-property",
        call::INTERFACE,
        workload_guard_dbus::names::BENCH_PATH,
        call::INTERFACE,
        "Version",
    ])?;
    step(format_args!("bench-prepd answers: {version}"));
    call::refused(
        crate::harness::user::UID,
        &Order::restore(),
        "org.workloadguard.Error.NotAuthorized",
    )?;
    let status = command::run(&["/usr/local/bin/bench-profile-status"])?;
    ensure!(status.status == 0, "status: {}", status.said());

    // An upgrade keeps what the person decided.
    files::write(
        Path::new(MACHINE),
        &format!("# mine\n{}", std::fs::read_to_string(MACHINE)?),
    )?;
    command::ok(&["systemctl", "disable", "bench-prep.service"])?;
    let mine = look()?;
    step(install(&[])?.said());
    let changed = files::difference(&mine, &look()?);
    ensure!(changed.is_empty(), "an upgrade changed {changed:#?}");

    step(xtask(&["uninstall", "--system"])?.said());
    let after = files::difference(&before, &look()?);
    let unexpected: Vec<&String> = after
        .iter()
        .filter(|line| {
            !(line.contains("/var/backups")
                || line.contains("/etc/bench-profile")
                || line.contains(".superseded")
                || OLD.iter().any(|path| **line == format!("- {path}"))
                || line.starts_with("- /usr/local/lib/bench-profile"))
        })
        .collect();
    ensure!(unexpected.is_empty(), "left behind: {unexpected:#?}");
    ensure!(
        service::property("bench-prepd.service", "LoadState")? == "not-found",
        "systemd still knows bench-prepd.service"
    );
    step(format_args!("uninstalled; kept: {after:#?}"));

    // On a machine without the older tools.
    for path in OLD {
        std::fs::remove_file(format!("{path}.superseded"))?;
    }
    for folder in [
        "/usr/local/lib/bench-profile.superseded",
        "/var/backups/bench-profile",
        "/etc/bench-profile",
    ] {
        std::fs::remove_dir_all(folder)?;
    }
    std::fs::remove_file("/boot/limine.conf")?;
    for folder in ["/etc/boot/hooks/post.d", "/etc/boot/hooks", "/etc/boot"] {
        std::fs::remove_dir(folder)?;
    }
    step(install(&["--part=bench", "--part=guard"])?.said());
    step(xtask(&["uninstall", "--system", "--purge"])?.said());
    let left = files::difference(&clean, &look()?);
    ensure!(left.is_empty(), "a purge left {left:#?}");
    Ok(())
}

fn look() -> Result<Listing> {
    files::listing(&[
        "/etc",
        "/usr/local",
        "/usr/lib/systemd",
        "/usr/share/dbus-1",
        "/usr/share/polkit-1",
        "/boot",
        "/var/backups",
        "/var/lib/polkit-1",
    ])
}

fn install(options: &[&str]) -> Result<Ended> {
    let mut words = vec!["install", "--system", "--dist", "/opt/workload-guard"];
    words.extend(options);
    xtask(&words)
}

fn xtask(words: &[&str]) -> Result<Ended> {
    let ended = command::finish(Command::new("/opt/workload-guard/xtask").args(words))?;
    ensure!(
        ended.status == 0,
        "xtask {} ended with {}: {}",
        words.join(" "),
        ended.status,
        ended.said()
    );
    Ok(ended)
}
