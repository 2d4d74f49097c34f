//! A class of the user's own: a rule and a pattern route into it, its budget is what its settings say, in systemd and
//! in the kernel, and is gone when the class is taken away, or the guard stops.

use anyhow::{Result, ensure};

use super::{BOTH, Scenario};
use crate::harness::cgroup;
use crate::harness::guard::{FAST, Guard, HEAVY};
use crate::harness::home;
use crate::harness::load::{Load, idle, load};
use crate::harness::outcome::{Verdict, step};
use crate::harness::proc;
use crate::harness::session::Session;
use crate::harness::units;
use crate::harness::wait::{PATIENCE, until_true};

pub const SCENARIO: Scenario = Scenario {
    name: "class-of-ones-own",
    tiers: BOTH,
    quick: false,
    full: false,
    exclusive: false,
    timeout_s: 240,
    run,
};

const SLICE: &str = "batch-inference.slice";
/// What carries its weight against the other classes.
const OUTER: &str = "batch.slice";

const CLASS: &str = r#"
[classes.inference]
slice = "batch-inference.slice"
quota = 60
weight = 50
memory_high = "512M"
tasks_max = 300
patterns = ["my-trainer load spin"]
"#;
const RULE: &str = r#"
[[rule]]
name = "serve"
class = "inference"
reason = "serves a model"
programs = ["my-server"]
"#;

/// Unit, property as `systemctl show` prints it, its value with the class, and without.
const PROPERTIES: &[(&str, &str, &str, &str)] = &[
    (SLICE, "CPUQuotaPerSecUSec", "600ms", "infinity"),
    (SLICE, "MemoryHigh", "536870912", "infinity"),
    (SLICE, "TasksMax", "300", "infinity"),
    (SLICE, "CPUWeight", "[not set]", "[not set]"),
    (OUTER, "CPUWeight", "50", "[not set]"),
    (OUTER, "CPUQuotaPerSecUSec", "infinity", "infinity"),
];

/// Unit, file of the kernel, and its value.
const FILES: &[(&str, &str, &str, &str)] = &[
    (SLICE, "cpu.max", "60000 100000", "max 100000"),
    (SLICE, "memory.high", "536870912", "max"),
    (SLICE, "pids.max", "300", "max"),
    (OUTER, "cpu.weight", "50", "100"),
];

fn run(session: &Session) -> Verdict {
    home::write(&home::guard_toml(), CLASS)?;
    home::write(&home::config_dir().join("rules.d/60-inference.toml"), RULE)?;
    let guard = Guard::install(session, FAST)?;
    in_systemd(true)?;
    let work = [start("my-server", &guard)?, start("my-trainer", &guard)?];
    let checked = in_kernel(&guard, true)?;
    for work in &work {
        let mark = guard.signals.mark();
        idle(work.pid)?;
        let (_, back) = guard.signals.recovered_after(mark, work.pid, PATIENCE)?;
        ensure!(back.exact && work.now_in()? == work.cgroup, "{back:?}");
    }
    step(format_args!("routed by rule and by pattern, and back; in the kernel: {checked}"));

    // What is lost comes again with the next look; a reload of systemd loses nothing.
    units::systemctl(&["set-property", "--runtime", SLICE, "TasksMax=77"])?;
    units::systemctl(&["daemon-reload"])?;
    until_true("the settings hold again", PATIENCE, || in_systemd(true).map(|()| true))?;

    // kill -9: the next guard finds what was set, and what to put back.
    guard.kill_and_wait_for_the_next()?;
    in_systemd(true)?;
    home::write(&home::guard_toml(), "")?;
    let refused = guard.reload();
    ensure!(refused.is_err(), "a rule names a class that is gone: {refused:?}");
    in_systemd(true)?;
    std::fs::remove_file(home::config_dir().join("rules.d/60-inference.toml"))?;
    guard.reload()?;
    in_systemd(false)?;
    in_kernel(&guard, false)?;
    step("the class is gone, and so is all that was set");

    home::write(&home::guard_toml(), CLASS)?;
    guard.reload()?;
    in_systemd(true)?;
    units::systemctl(&["stop", "workload-guard.service"])?;
    in_systemd(false)?;
    step("set again, and put back when the guard stopped");
    Ok(())
}

/// A busy load of that name, which is routed by it.
fn start(name: &str, guard: &Guard) -> Result<Load> {
    let mark = guard.signals.mark();
    let load = load(&["spin"]).named(name).start()?;
    let (_, routed) = guard.signals.routed_after(mark, load.pid, PATIENCE)?;
    ensure!(routed.class == "inference" && routed.reason == "known-heavy", "{routed:?}");
    let now = proc::cgroup_of(load.pid)?;
    ensure!(now.contains(SLICE) && !now.contains(HEAVY), "{name} is in {now}");
    Ok(load)
}

fn in_systemd(set: bool) -> Result<()> {
    for (unit, name, with, without) in PROPERTIES {
        let wanted = if set { with } else { without };
        let found = units::property(unit, name)?;
        ensure!(found == *wanted, "{name} of {unit} is {found}, not {wanted}");
    }
    Ok(())
}

/// Each file whose controller the user manager has; which those are. What the guard says is the same, and it
/// names each controller that is missing.
fn in_kernel(guard: &Guard, set: bool) -> Result<String> {
    let manager = "/user.slice/user-1000.slice/user@1000.service";
    let controllers = cgroup::read(manager, "cgroup.controllers")?;
    let mut checked = Vec::new();
    for (unit, file, with, without) in FILES {
        let controller = file.split('.').next().unwrap_or(file);
        if !controllers.split_whitespace().any(|name| name == controller) {
            let reasons = guard.reasons()?;
            ensure!(
                reasons.iter().any(|reason| reason.contains(&format!("the {controller} controller"))) || !set,
                "nothing is said of {controller}: {reasons:?}"
            );
            continue;
        }
        let group = units::property(unit, "ControlGroup")?;
        let wanted = if set { with } else { without };
        until_true(&format!("{file} of {unit} is {wanted}"), PATIENCE, || {
            // Without anything that needs the controller there is no file.
            let found = cgroup::read(&group, file).unwrap_or_else(|_| (*without).to_owned());
            ensure!(found == *wanted, "it is {found}");
            Ok(true)
        })?;
        checked.push(*file);
    }
    if set && checked.contains(&"cpu.max") {
        let rows = zbus::block_on(guard.proxy().classes())?;
        let row = rows.iter().find(|row| row.name == "inference");
        ensure!(
            row.is_some_and(|row| row.quota == 60
                && row.weight == 50
                && row.from_settings == ["quota", "weight", "memory_high", "tasks_max"]),
            "{row:?}"
        );
        let (state, reasons) = (guard.state()?, guard.reasons()?);
        ensure!(state == "normal", "{state}: {reasons:?}");
    }
    Ok(checked.join(", "))
}
