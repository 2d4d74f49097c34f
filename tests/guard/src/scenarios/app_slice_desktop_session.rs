//! A desktop's apps with app.slice watched: the builds that are started in them are routed and come back; each
//! terminal, editor, browser and sandbox stays, also while it burns.
//!
//! Units are named and nested as gnome-shell, VTE and Plasma make them (systemd's DESKTOP_ENVIRONMENTS.md).

mod desktop;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use workload_guard_dbus::scope::{Origin, ScopeName};

use super::{CONTAINER, Scenario};
use crate::harness::command;
use crate::harness::guard::Guard;
use crate::harness::home;
use crate::harness::load::{busy, idle};
use crate::harness::outcome::{Verdict, step};
use crate::harness::proc;
use crate::harness::session::Session;
use crate::harness::signals::Routed;
use crate::harness::units;
use crate::harness::wait::{PATIENCE, hold};
use desktop::Desktop;

pub const SCENARIO: Scenario = Scenario {
    name: "app-slice-desktop-session",
    tiers: CONTAINER,
    quick: false,
    full: false,
    exclusive: false,
    timeout_s: 240,
    run,
};

/// As `FAST`, for eleven busy processes on two shared CPUs; and the scenario itself, which is in app.slice, too, is none of the desktop's apps.
const SETTINGS: &[(&str, &str)] = &[
    ("WORKLOAD_GUARD_SAMPLE_SEC", "0.25"),
    ("WORKLOAD_GUARD_CPU_THRESHOLD", "5"),
    ("WORKLOAD_GUARD_SUSTAINED_SAMPLES", "3"),
    ("WORKLOAD_GUARD_RECOVERY_CPU_THRESHOLD", "1"),
    ("WORKLOAD_GUARD_RECOVERY_SAMPLES", "2"),
    ("WORKLOAD_GUARD_RECOVERY_DWELL_SEC", "0.5"),
    ("WORKLOAD_GUARD_COOLDOWN_SEC", "1"),
    ("WORKLOAD_GUARD_EXCLUDE_PATTERNS", "in-session"),
];

/// Far longer than the three samples that detection takes.
const WINDOW: Duration = Duration::from_secs(4);

/// Who is started by whom, and what is to become of it: `Some` is the reason of its route.
const BUILDS: &[(&str, &str, &str)] = &[
    ("app-gnome-org.gnome.Terminal-4711.scope", "build", "known-heavy"),
    ("vte-spawn-9d5a6e0c-1f2b-4a57-8a4e-0d3c5b7e9f11.scope", "build", "sustained-cpu"),
    ("app-org.kde.konsole-5012.scope", "build", "sustained-cpu"),
    ("app-org.kde.konsole@6f1c2d3e4b5a.service", "build", "known-heavy"),
    ("app-gnome-code-6001.scope", "task", "known-heavy"),
];

/// Parts of apps that burn and stay.
const APPS_OWN: &[(&str, &str)] = &[
    ("app-gnome-code-6001.scope", "language-server"),
    ("app-gnome-firefox-6100.scope", "renderer-1"),
    ("app-gnome-firefox-6100.scope", "renderer-2"),
    ("app-flatpak-org.gimp.GIMP-6200.scope", "filter"),
    ("snap.firefox.firefox-0b9a8c7d.scope", "renderer"),
];

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, SETTINGS)?;
    let said = command::ok(&["workload-guard", "watch", "app.slice"])?;
    ensure!(said.contains("watch --remove app.slice"), "{said}");
    let desktop = Desktop::start()?;
    let at_start = desktop.places()?;

    // Everything of the apps burns, and beside them a scope that is no app's: it shows that detection sees as much.
    for (unit, name) in APPS_OWN {
        busy(desktop.pid(unit, name)?)?;
    }
    let control = desktop.pid("crunch.scope", "main")?;
    let route = guard.routed_by_load(control)?;
    ensure!(route.reason == "sustained-cpu", "{route:?}");
    stays(&guard, &desktop, &at_start, &[control])?;
    for (unit, name) in APPS_OWN {
        idle(desktop.pid(unit, name)?)?;
    }
    guard.recovered_when_idle(control)?;
    step("apps that burn stay; a scope that is no app's does not");

    let mut routed: BTreeMap<u32, Routed> = BTreeMap::new();
    let mark = guard.signals.mark();
    desktop.start_builds()?;
    for (unit, name, reason) in BUILDS {
        let pid = desktop.pid(unit, name)?;
        let (_, route) = guard.signals.routed_after(mark, pid, PATIENCE)?;
        ensure!(route.reason == *reason, "{unit}: {route:?}");
        ensure!(route.source.ends_with(unit), "{unit}: {route:?}");
        step(format_args!("{unit}: {} routed, {}", route.command, route.reason));
        routed.insert(pid, route);
    }
    let builds: Vec<u32> = routed.keys().copied().collect();
    stays(&guard, &desktop, &at_start, &[builds.as_slice(), &[control]].concat())?;

    for (unit, name, _) in BUILDS {
        let pid = desktop.pid(unit, name)?;
        let back = guard.recovered_when_idle(pid)?;
        let (slice, scope) = back.destination.rsplit_once('/').context("no slash")?;
        let source = &routed[&pid].source;
        ensure!(
            Some(slice) == source.rsplit_once('/').map(|(slice, _)| slice),
            "{unit}: {back:?} from {source}"
        );
        // The app goes on in its unit, which takes no process back.
        let name: ScopeName = scope
            .parse()
            .map_err(|_| anyhow::anyhow!("{scope} is no scope of the guard"))?;
        ensure!(!back.exact && name.origin == Origin::Returned, "{unit}: {back:?}");
    }
    stays(&guard, &desktop, &at_start, &[builds.as_slice(), &[control]].concat())?;
    for unit in desktop.units() {
        let state = units::active_state(unit)?;
        ensure!(state == "active", "{unit} is {state}");
    }
    step("all builds are back beside their apps, which are where they were");

    command::ok(&["workload-guard", "watch", "--remove", "app.slice"])?;
    let watched: Vec<String> = zbus::block_on(guard.proxy().watched())?
        .into_iter()
        .map(|row| row.unit)
        .collect();
    ensure!(watched == ["protected-workload.slice"], "{watched:?}");
    let file = home::config_dir().join("guard.toml.d/50-watch.toml");
    ensure!(!file.exists(), "{} is still there", file.display());
    Ok(())
}

/// All but `moved` are where they were, and only those were routed.
fn stays(
    guard: &Guard,
    desktop: &Desktop,
    at_start: &BTreeMap<u32, String>,
    moved: &[u32],
) -> Result<()> {
    hold("apps stay where they are", WINDOW, || {
        for (pid, place) in at_start.iter().filter(|(pid, _)| !moved.contains(pid)) {
            let now = proc::cgroup_of(*pid)?;
            ensure!(now == *place, "{} is in {now}, not in {place}", desktop.name(*pid));
        }
        for row in guard.workloads()? {
            ensure!(moved.contains(&row.pid), "routed: {row:?}");
        }
        Ok(())
    })
}
