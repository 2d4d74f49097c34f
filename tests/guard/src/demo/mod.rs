//! The product on real work: a parallel build, an unknown hog and an interactive program, side by side.

mod archive;
mod build;
mod facts;
mod report;
mod timeline;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use workload_guard_dbus::names::GUARD_UNIT;

use crate::harness::cgroup::{self, Meter};
use crate::harness::guard::{Guard, HEAVY, PROTECTED, install_product, write_settings};
use crate::harness::journal;
use crate::harness::load::{Load, load};
use crate::harness::outcome;
use crate::harness::proc;
use crate::harness::session::{HOME, Session};
use crate::harness::units;
use crate::load::read_latencies;
use archive::Archive;
use build::Builds;
use facts::Facts;
use report::{Checklist, Heavy, Probe};
use timeline::Timeline;

/// How long the probe is listened to before the guard starts, and at least how long once all is routed.
const BEFORE: Duration = Duration::from_secs(15);
const AFTER: Duration = Duration::from_secs(15);
/// What a build may take under emulation.
const BUILD: Duration = Duration::from_secs(150);
/// For detection and for the way back, with the settings below, on a slow machine.
const SOON: Duration = Duration::from_secs(40);

/// Runs the demo as the user; status 1 when a step was not observed.
pub fn run() -> Result<u8> {
    let session = Session::open()?;
    let facts = Facts::gather(&session)?;
    let mut timeline = Timeline::new();
    timeline.say(&facts.headline());

    timeline.say("installing the product as a user does; the guard does not run yet");
    write_settings(&facts.settings())?;
    install_product()?;
    units::systemctl(&["stop", GUARD_UNIT])?;
    // The budgets of the slices are systemd's: they are in force without the guard.
    units::systemctl(&["start", PROTECTED, HEAVY])?;
    let guard = Guard::connect(&session)?;

    let probe_file = Path::new(HOME).join("probe.log");
    let probe = load(&["probe", &probe_file.to_string_lossy()])
        .description("an interactive program: 0.25 ms of work every 20 ms")
        .start()?;
    let probe_start = Instant::now();
    let since_probe = || probe_start.elapsed().as_secs_f64();
    timeline.say(&format!(
        "started in {PROTECTED}: an interactive program (PID {})",
        probe.pid
    ));
    let builds = Builds::start()?;
    timeline.say(&format!(
        "started in {PROTECTED}: a real parallel build, `{}` of lua5.4",
        build::COMMAND.join(" ")
    ));
    let archive = Archive::start()?;
    timeline.say(&format!(
        "started in {PROTECTED}: an unknown hog (PID {}), `{}` of real files from {}",
        archive.pid,
        archive::COMMAND.join(" "),
        archive::FILES
    ));
    timeline.say(&format!(
        "listening to the interactive program for {} s, without the guard",
        BEFORE.as_secs()
    ));
    let before_from = since_probe();
    let before_protected = Meter::start(&units::property(PROTECTED, "ControlGroup")?)?;
    timeline.wait(&guard, BEFORE, || {
        Ok(since_probe() - before_from >= BEFORE.as_secs_f64())
    });
    let before_share = before_protected.percent()?;
    let before_to = since_probe();

    let mut steps = Checklist::default();
    timeline.guard_starts();
    guard.start()?;
    timeline.say("the guard has started");
    let build_routed = timeline.wait_routed(&guard, SOON, |routed| {
        routed.reason == "known-heavy" && routed.command.contains("make")
    });
    steps.add(
        "the build was recognised by its name and routed",
        build_routed,
    );
    let hog_routed = timeline.wait_routed(&guard, SOON, |routed| routed.pid == archive.pid);
    steps.add(
        "the unknown hog was recognised by its CPU use and routed",
        hog_routed,
    );

    timeline.say(&format!(
        "listening to the interactive program for {} s and until the build is done",
        AFTER.as_secs()
    ));
    let after_from = since_probe();
    let meter = Meter::start(&units::property(HEAVY, "ControlGroup")?)?;
    let limit = facts.heavy_limit()?;
    timeline.wait(&guard, AFTER, || {
        Ok(since_probe() - after_from >= AFTER.as_secs_f64())
    });
    // The window ends here: later the build runs dry, and the share would say nothing of the quota.
    let heavy_share = meter.percent()?;
    let after_to = since_probe();
    builds.no_more();
    timeline.say(
        "the hog's input ends for now: it waits, without CPU; the build that runs is the last",
    );
    archive.pause();
    let returned = timeline.wait_recovered(&guard, SOON, archive.pid);
    steps.add(
        "the hog, idle, was brought back to exactly where it came from",
        returned.is_some_and(|back| back.exact)
            && proc::cgroup_of(archive.pid).is_ok_and(|now| now == archive.cgroup),
    );
    timeline.wait(&guard, BUILD, || Ok(builds.idle()));
    let built = builds.finish();
    match &built {
        Ok(built) => timeline.say(built),
        Err(error) => timeline.say(&format!("the build failed: {error:#}")),
    }
    steps.add(
        "the build finished by itself with a program that runs",
        built.is_ok(),
    );
    let archived = archive.finish();
    steps.add(
        "the hog's work was not disturbed: it ended with status 0",
        archived.is_ok(),
    );
    let gone = units::no_scope_of_ours_left(&session, SOON);
    steps.add("nothing of the guard is left of any of it", gone.is_ok());

    let figures = |from: f64, to: f64| latencies(&probe_file, from, to);
    let before = Probe::of("without the guard", &figures(before_from, before_to)?);
    let after = Probe::of("with it, all routed", &figures(after_from, after_to)?);
    steps.add(
        "the interactive program stayed where it was",
        in_place(&probe),
    );
    let heavy = Heavy {
        limit,
        share: heavy_share,
        protected_before: before_share,
        cpus: proc::cpus()?,
    };
    if limit.is_some() {
        steps.add(
            "its p95 latency is lower with the guard",
            after.p95 < before.p95,
        );
        steps.add(
            "heavy work stayed within the kernel's limit",
            heavy.within_limit(),
        );
    }

    println!();
    print!("{}", timeline.table());
    print!("{}", report::probes(&[before, after]));
    print!("{}", heavy.text());
    print!("{}", steps.text());
    if !steps.all_seen() {
        print_journal();
    }
    Ok(if steps.all_seen() {
        outcome::PASS
    } else {
        outcome::FAIL
    })
}

/// The probe's latencies in milliseconds, between two moments of its own clock.
fn latencies(file: &Path, from: f64, to: f64) -> Result<Vec<f64>> {
    Ok(read_latencies(file)
        .context("the interactive program's figures")?
        .into_iter()
        .filter(|latency| (from..to).contains(&latency.at))
        .map(|latency| latency.ms)
        .collect())
}

/// What the guard itself says, to find out why a step was not seen.
fn print_journal() {
    println!("\nTHE GUARD'S JOURNAL");
    match journal::of_guard(&[]) {
        Ok(entries) => {
            for entry in entries {
                println!("  {}", entry.get("MESSAGE").map_or("", String::as_str));
            }
        }
        Err(error) => println!("  {error:#}"),
    }
}

fn in_place(probe: &Load) -> bool {
    probe.now_in().is_ok_and(|now| now == probe.cgroup) && cgroup::usage(&probe.cgroup).is_ok()
}
