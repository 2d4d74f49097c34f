//! A known-heavy program is in the heavy slice milliseconds after its start, where the kernel tells of it; the
//! scan alone takes half an interval. Beside it cgrulesengd, which root runs, which knows a program by its file's name
//! alone, and which writes to the control group itself.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use workload_guard_dbus::names::GUARD_UNIT;

use super::{MACHINE, Scenario};
use crate::harness::cgroup;
use crate::harness::guard::{Guard, Settings};
use crate::harness::home;
use crate::harness::load::load;
use crate::harness::outcome::{Verdict, step};
use crate::harness::root;
use crate::harness::session::{HOME, Session};
use crate::harness::stats::{median, quantile};
use crate::harness::units;
use crate::harness::wait::{PATIENCE, until, until_true};

pub const SCENARIO: Scenario = Scenario {
    name: "exec-to-heavy-latency",
    tiers: MACHINE,
    quick: false,
    full: true,
    exclusive: true,
    timeout_s: 900,
    run,
};

/// The defaults; what comes back in between would only be in the way.
const SETTINGS: Settings<'static> = &[("WORKLOAD_GUARD_RECOVERY_SAMPLES", "1000")];
const WITH_EVENTS: u64 = 200;
/// Each takes two seconds with its share of the spread.
const WITH_SCAN: u64 = 40;
/// Starts are spread over the default sampling interval, with events and without.
const SPREAD_MS: u64 = 2000;
/// Of cgrulesengd.
const WITH_PEER: u64 = 40;
/// The event median is at most this part of the scan's.
const PART: f64 = 0.1;
/// Takes netlink from the unit, which is how exec events come.
const NO_NETLINK: &str = "[Service]\nRestrictAddressFamilies=\nRestrictAddressFamilies=AF_UNIX\n";

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, SETTINGS)?;
    ensure!(
        guard.has_exec_events()?,
        "no exec events: {}",
        zbus::block_on(guard.proxy().exec_events())?
    );
    let events = measure("events", WITH_EVENTS)?;

    let unit_dir = Path::new(HOME).join(".config/systemd/user");
    let drop_in = unit_dir.join(format!("{GUARD_UNIT}.d/no-netlink.conf"));
    home::write(&drop_in, NO_NETLINK)?;
    units::systemctl(&["daemon-reload"])?;
    units::systemctl(&["restart", GUARD_UNIT])?;
    guard.answers()?;
    let why = zbus::block_on(guard.proxy().exec_events())?;
    ensure!(!guard.has_exec_events()?, "there are exec events without netlink");
    ensure!(why.contains("netlink"), "the reason is told: {why}");
    step(format_args!("the scan alone: {why}"));
    let scan = measure("scan", WITH_SCAN)?;

    units::systemctl(&["stop", GUARD_UNIT])?;
    start_peer(&units::property("heavy-workload.slice", "ControlGroup")?)?;
    measure("cgrulesengd", WITH_PEER)?;
    ensure!(
        events <= scan * PART,
        "median with events {events:.1} ms, with the scan alone {scan:.1} ms: more than a tenth"
    );
    Ok(())
}

/// Starts cgrulesengd (libcgroup), which moves what the launcher starts into a group within `heavy`.
fn start_peer(heavy: &str) -> Result<()> {
    /// There when it listens for events.
    const SOCKET: &str = "/run/cgred.socket";
    let group = format!("{}/peer", heavy.trim_start_matches('/'));
    let folder = cgroup::dir(&group);
    let folder = folder.display();
    root::ok(&[
        "sh",
        "-ec",
        &format!(
            "mkdir -p {folder} /etc/cgconfig.d; echo +cpu > {folder}/../cgroup.subtree_control
             : > /etc/cgconfig.conf; echo 'dev:sleep cpu {group}' > /etc/cgrules.conf; rm -f {SOCKET}"
        ),
    ])?;
    root::spawn("exec cgrulesengd -n")?;
    until_true("cgrulesengd listens", PATIENCE, || Ok(Path::new(SOCKET).exists()))
}

/// The median in milliseconds.
fn measure(name: &str, runs: u64) -> Result<f64> {
    let out = Path::new(HOME).join(format!("{name}.log"));
    let launcher = load(&[
        "launcher",
        &out.to_string_lossy(),
        &runs.to_string(),
        &SPREAD_MS.to_string(),
    ])
    .start()?;
    let patience = std::time::Duration::from_secs(5 * runs.max(24));
    let text = until("all runs are done", patience, || {
        ensure!(crate::harness::proc::alive(launcher.pid), "the launcher ended");
        Ok(Some(fs::read_to_string(&out)?))
    })?;
    let ms: Vec<f64> = text
        .lines()
        .map(|line| line.parse().context("a figure"))
        .collect::<Result<_>>()?;
    ensure!(ms.len() as u64 == runs, "{} of {runs} runs", ms.len());
    ensure!(launcher.now_in()? == launcher.cgroup, "the launcher was moved");
    let median = median(&ms).context("no figure")?;
    step(format_args!(
        "exec to heavy slice, {name}: p50 {median:.1} ms, p99 {:.1} ms, max {:.1} ms ({runs} runs)",
        quantile(&ms, 0.99).unwrap_or_default(),
        quantile(&ms, 1.0).unwrap_or_default(),
    ));
    Ok(median)
}
