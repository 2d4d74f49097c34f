//! A move that can never be made: each failure is told with its reason, and systemd is asked less and less often.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use anyhow::ensure;

use super::{CONTAINER, Scenario};
use crate::harness::bus_calls::BusCalls;
use crate::harness::guard::{Guard, HEAVY, Settings};
use crate::harness::home;
use crate::harness::load::{busy, load};
use crate::harness::outcome::{Verdict, step};
use crate::harness::root;
use crate::harness::session::Session;
use crate::harness::signals::{MoveFailed, Signal};
use crate::harness::units;
use crate::harness::wait::{PATIENCE, until_true};

pub const SCENARIO: Scenario = Scenario {
    name: "move-that-fails-for-ever",
    tiers: CONTAINER,
    quick: true,
    full: false,
    exclusive: false,
    timeout_s: 240,
    run,
};

/// Tries again at once, as far as the settings go; names and CPU are looked at ten times a second.
const EAGER: Settings<'static> = &[
    ("WORKLOAD_GUARD_SAMPLE_SEC", "0.1"),
    ("WORKLOAD_GUARD_CPU_THRESHOLD", "5"),
    ("WORKLOAD_GUARD_SUSTAINED_SAMPLES", "2"),
    ("WORKLOAD_GUARD_RECOVERY_CPU_THRESHOLD", "3"),
    ("WORKLOAD_GUARD_COOLDOWN_SEC", "0"),
];

/// Calls are counted over this. At one try a sample it would be 200 tries.
const WINDOW: Duration = Duration::from_secs(20);
/// The waits are 0, 2, 4, 8 and 16 s.
const TRIES: usize = 6;
/// Calls of one try, and the looks at the slices beside them, which grow rarer as well.
const CALLS: usize = 150;

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, EAGER)?;
    let its_pid = guard.pid()?;

    // systemd refuses: the slice is masked.
    let control = home::unit_dir().with_file_name("user.control");
    fs::create_dir_all(&control)?;
    symlink("/dev/null", control.join(HEAVY))?;
    units::systemctl(&["daemon-reload"])?;
    units::systemctl(&["stop", HEAVY])?;
    let calls = BusCalls::of_guard_to_systemd(session)?;
    let stuck = load(&["spin", "--idle"]).start()?;
    let mark = guard.signals.mark();
    busy(stuck.pid)?;
    let begin = Instant::now();
    guard.signals.after(mark, "a MoveFailed", PATIENCE, |heard| {
        failure_of(stuck.pid, &heard.signal)
    })?;
    std::thread::sleep(WINDOW);
    let failed = failures(&guard, stuck.pid);
    let (asked, passed) = (calls.count(), begin.elapsed());
    step(format_args!(
        "{} tries and {asked} calls of systemd in {:.0} s; the last: {}",
        failed.len(),
        passed.as_secs_f64(),
        failed.last().map_or("", |failed| &failed.text)
    ));
    for failed in &failed {
        ensure!(
            failed.error == "org.workloadguard.Error.SystemdRefused" && failed.text.contains(HEAVY),
            "{failed:?}"
        );
    }
    ensure!(
        (2..=TRIES).contains(&failed.len()) && asked <= CALLS,
        "busy: {} tries, {asked} calls",
        failed.len()
    );
    ensure!(stuck.now_in()? == stuck.cgroup, "it was moved");
    let reasons = guard.reasons()?;
    ensure!(
        reasons.iter().any(|reason| reason.contains(HEAVY)),
        "the state does not tell of the slice: {reasons:?}"
    );

    // It can be made again.
    fs::remove_file(control.join(HEAVY))?;
    units::systemctl(&["daemon-reload"])?;
    let next = load(&["spin", "--idle"]).start()?;
    guard.routed_by_load(next.pid)?;
    drop((stuck, next));
    step("no longer masked: routed");

    // The process itself does not allow it: asked once.
    let realtime = load(&["spin", "--idle"]).start()?;
    root::ok(&["chrt", "--all-tasks", "--rr", "--pid", "1", &realtime.pid.to_string()])?;
    let mark = guard.signals.mark();
    busy(realtime.pid)?;
    let told = guard.signals.after(mark, "a MoveFailed", PATIENCE, |heard| {
        failure_of(realtime.pid, &heard.signal)
    })?;
    ensure!(
        told.error == "org.workloadguard.Error.NeverMoved" && told.text.contains("real-time"),
        "{told:?}"
    );
    std::thread::sleep(Duration::from_secs(2));
    let failed = failures(&guard, realtime.pid);
    ensure!(failed.len() == 1, "told again: {failed:?}");
    step(format_args!("told once: {}", told.text));
    drop(realtime);
    until_true("no workload is left", PATIENCE, || Ok(guard.workloads()?.is_empty()))?;
    units::no_scope_of_ours_left(session, PATIENCE)?;
    ensure!(guard.pid()? == its_pid, "the guard was started again");
    Ok(())
}

fn failure_of(pid: u32, signal: &Signal) -> Option<MoveFailed> {
    match signal {
        Signal::MoveFailed(failed) if failed.pid == pid => Some(failed.clone()),
        _ => None,
    }
}

fn failures(guard: &Guard, pid: u32) -> Vec<MoveFailed> {
    let heard = guard.signals.heard();
    heard.iter().filter_map(|heard| failure_of(pid, &heard.signal)).collect()
}
