//! Quota1 is true at once when somebody else changes the property; under the controller they are left in peace, and
//! the state says so.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use workload_guard_dbus::GuardError;
use workload_guard_dbus::names::GUARD_UNIT;

use super::{BOTH, Scenario};
use crate::harness::cgroup;
use crate::harness::command;
use crate::harness::guard::{Guard, HEAVY, write_settings};
use crate::harness::home;
use crate::harness::outcome::{Verdict, step};
use crate::harness::quota::Quota;
use crate::harness::session::{HOME, RUNTIME_DIR, Session, UID, payload};
use crate::harness::units;
use crate::harness::wait::{PATIENCE, hold, until_true};

pub const SCENARIO: Scenario = Scenario {
    name: "quota-told-at-once",
    tiers: BOTH,
    quick: true,
    full: false,
    exclusive: false,
    timeout_s: 240,
    run,
};

/// No interval of the controller passes in this scenario: what is told was heard, not polled.
const STATIC: &[(&str, &str)] = &[("WORKLOAD_GUARD_QUOTA_INTERVAL_SEC", "600")];
const DYNAMIC: &[(&str, &str)] = &[
    ("WORKLOAD_GUARD_DYNAMIC_QUOTA", "true"),
    ("WORKLOAD_GUARD_QUOTA_INTERVAL_SEC", "0.3"),
];

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, STATIC)?;
    let quota = Quota::connect(session)?;
    ensure!(quota.now()? == 400.0 && quota.control()? == "static", "{} {}", quota.now()?, quota.control()?);
    told_by_everybody(&quota)?;
    refused(&quota)?;
    outranked(&guard, &quota)?;
    left_in_peace(&guard, &quota)
}

/// A drop-in of the user's own that wins over runtime values.
fn override_file() -> PathBuf {
    Path::new(HOME).join(format!(".config/systemd/user/{HEAVY}.d/override.conf"))
}

/// Each way to change a quota is told, and answered.
fn told_by_everybody(quota: &Quota) -> Verdict {
    let change = |what: &str, percent: f64, make: &dyn Fn() -> Result<()>| -> Result<()> {
        let (mark, since) = (quota.told().len(), Instant::now());
        make()?;
        let after = quota.is_told(percent, mark, since, PATIENCE)?;
        step(format_args!("{what}: {percent} % told after {:.0} ms", after.as_secs_f64() * 1000.0));
        Ok(())
    };
    let set = |flags: &[&str], value: &str| {
        let mut argv = vec!["set-property"];
        argv.extend(flags);
        let value = format!("CPUQuota={value}");
        argv.extend([HEAVY, &value]);
        units::systemctl(&argv).map(drop)
    };
    for percent in [123.0, 124.0] {
        change("set-property --runtime", percent, &|| set(&["--runtime"], &format!("{percent}%")))?;
    }
    change("set-property for good", 223.0, &|| set(&[], "223%"))?;
    change("no limit", 0.0, &|| set(&["--runtime"], ""))?;
    change("busctl", 50.0, &|| {
        let manager = "org.freedesktop.systemd1 /org/freedesktop/systemd1 org.freedesktop.systemd1.Manager";
        let mut argv = vec!["busctl", "--user", "call"];
        argv.extend(manager.split(' '));
        argv.extend(["SetUnitProperties", "sba(sv)", HEAVY, "true", "1", "CPUQuotaPerSecUSec", "t", "500000"]);
        command::ok(&argv).map(drop)
    })?;
    // A drop-in file that sorts behind the runtime one, and its end.
    let file = override_file();
    change("edit and daemon-reload", 77.0, &|| {
        home::write(&file, "[Slice]\nCPUQuota=77%\n")?;
        units::systemctl(&["daemon-reload"]).map(drop)
    })?;
    change("revert", 400.0, &|| {
        fs::remove_file(&file)?;
        for folder in [Path::new(RUNTIME_DIR).join("systemd"), Path::new(HOME).join(".config/systemd")] {
            let drop_ins = folder.join(format!("user.control/{HEAVY}.d"));
            if drop_ins.exists() {
                fs::remove_dir_all(drop_ins)?;
            }
        }
        units::systemctl(&["daemon-reload"]).map(drop)
    })
}

/// Beyond the bounds, from inside of heavy work, and where no quota would hold.
fn refused(quota: &Quota) -> Verdict {
    let enforced = cgroup::user_manager_has_cpu(UID)?;
    match quota.set(250) {
        Ok(set) if enforced => ensure!(set == 250.0 && quota.control()? == "set", "{set}"),
        Err(GuardError::NoController(text)) if !enforced => step(text),
        other => bail!("SetQuota with the cpu controller {enforced}: {other:?}"),
    }
    for beyond in [0, 99, 401, u32::MAX] {
        let answer = quota.set(beyond);
        let refused = match enforced {
            true => matches!(answer, Err(GuardError::LimitExceeded(_))),
            false => matches!(answer, Err(GuardError::NoController(_))),
        };
        ensure!(refused, "{beyond}: {answer:?}");
    }
    let cli = payload("workload-guard");
    let inside = command::run(&[
        "systemd-run".as_ref(),
        "--user".as_ref(),
        "--scope".as_ref(),
        "--quiet".as_ref(),
        format!("--slice={HEAVY}").as_ref(),
        cli.as_os_str(),
        "quota".as_ref(),
        "set".as_ref(),
        "400%".as_ref(),
    ])?;
    ensure!(
        inside.status == 77 && inside.stderr.contains("heavy work cannot change the quota"),
        "{inside:?}"
    );
    step(inside.stderr.trim());
    let back = quota.reset()?;
    ensure!(back == 400.0 && quota.control()? == "static", "{back} {}", quota.control()?);
    let json = command::ok(&[cli.as_os_str(), "quota".as_ref(), "--json".as_ref()])?;
    let json: serde_json::Value = serde_json::from_str(&json)?;
    ensure!(json["quota"] == 400.0 && json["minimum"] == 100, "{json}");
    Ok(())
}

/// A drop-in that will win is named while the guard has a say, and when it has won the guard does not fight it.
fn outranked(guard: &Guard, quota: &Quota) -> Verdict {
    let file = override_file();
    home::write(&file, "[Slice]\nCPUQuota=222%\n")?;
    units::systemctl(&["daemon-reload"])?;
    until_true("222 % is told", PATIENCE, || Ok(quota.now()? == 222.0))?;
    write_settings(DYNAMIC)?;
    units::systemctl(&["restart", GUARD_UNIT])?;
    guard.answers()?;
    let named = || -> Result<bool> {
        let reasons = guard.reasons()?;
        let found = reasons.iter().any(|reason| {
            reason.contains(&format!("{} sets CPUQuota=", file.display())) && reason.contains("wins over the guard's runtime value")
        });
        ensure!(found, "{reasons:?}");
        Ok(guard.state()? == "degraded")
    };
    until_true("the drop-in is named under the controller", PATIENCE, named)?;
    step("a drop-in that wins is named");
    if cgroup::user_manager_has_cpu(UID)? {
        ensure!(quota.set(300)? == 300.0, "{}", quota.now()?);
        named()?;
        units::systemctl(&["daemon-reload"])?;
        until_true("the guard says who has won", PATIENCE, || {
            let (now, control, reasons) = (quota.now()?, quota.control()?, guard.reasons()?);
            ensure!(
                now == 222.0 && control == "yielded" && reasons.iter().any(|reason| reason.contains("override.conf")),
                "{now} {control}: {reasons:?}"
            );
            Ok(true)
        })?;
        step("it has won over SetQuota at a daemon-reload: yielded");
    }
    fs::remove_file(&file)?;
    write_settings(STATIC)?;
    units::systemctl(&["daemon-reload"])?;
    units::systemctl(&["restart", GUARD_UNIT])?;
    guard.answers()?;
    ensure!(guard.reasons()?.iter().all(|reason| !reason.contains("CPUQuota=")), "{:?}", guard.reasons()?);
    Ok(())
}

/// Under the controller.
fn left_in_peace(guard: &Guard, quota: &Quota) -> Verdict {
    write_settings(DYNAMIC)?;
    units::systemctl(&["restart", GUARD_UNIT])?;
    guard.answers()?;
    if !cgroup::user_manager_has_cpu(UID)? {
        until_true("the quota is frozen, and the state says why", PATIENCE, || {
            let reasons = guard.reasons()?;
            let why = reasons.iter().find(|reason| reason.contains("is frozen where it is"));
            ensure!(
                quota.control()? == "frozen"
                    && why.is_some_and(|why| why.contains("the cpu controller is not enabled there")),
                "{}: {reasons:?}",
                quota.control()?
            );
            Ok(true)
        })?;
        ensure!(quota.signal("throttled")?.state == "broken", "{:?}", quota.signal("throttled")?);
        step("without the cpu controller: frozen, and the state says why");
    }
    let (mark, since) = (quota.told().len(), Instant::now());
    units::systemctl(&["set-property", "--runtime", HEAVY, "CPUQuota=120%"])?;
    quota.is_told(120.0, mark, since, PATIENCE)?;
    until_true("the guard says who has the quota", PATIENCE, || {
        let reasons = guard.reasons()?;
        ensure!(
            quota.control()? == "yielded"
                && reasons.iter().any(|reason| reason.contains("somebody else set the quota of heavy-workload.slice to 120%")),
            "{}: {reasons:?}",
            quota.control()?
        );
        Ok(true)
    })?;
    ensure!(guard.state()? == "degraded", "{}", guard.state()?);
    // Ten intervals of the controller.
    hold("nobody fights", Duration::from_secs(3), || {
        let now = units::property(HEAVY, "CPUQuotaPerSecUSec")?;
        ensure!(now == "1.200000s" || now == "1.2s", "it is {now}");
        Ok(())
    })?;
    step("yielded: 120 % stays for ten intervals");
    command::ok(&[payload("workload-guard").as_os_str(), "quota".as_ref(), "auto".as_ref()])?;
    until_true("the controller has it again", PATIENCE, || {
        let control = quota.control()?;
        ensure!(control == "auto" || control == "frozen", "{control}");
        Ok(true)
    })
}
