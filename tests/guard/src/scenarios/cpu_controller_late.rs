//! The user manager starts without the cpu controller and gets it later: degraded until then, and enforced after.

use anyhow::{Result, ensure};

use super::{MACHINE, Scenario};
use crate::harness::cgroup;
use crate::harness::guard::{FAST, Guard};
use crate::harness::load::{idle, load};
use crate::harness::outcome::{Verdict, step};
use crate::harness::root;
use crate::harness::session::{Session, UID};
use crate::harness::units;
use crate::harness::wait::{PATIENCE, until, until_true};

pub const SCENARIO: Scenario = Scenario {
    name: "cpu-controller-late",
    tiers: MACHINE,
    quick: false,
    full: false,
    exclusive: false,
    timeout_s: 300,
    run,
};

const WITHOUT: &str = "[Service]\nDelegate=\nDelegate=memory pids\n";

fn run(session: &Session) -> Verdict {
    drop(Guard::install(session, FAST)?);
    let manager = format!("user@{UID}.service");
    let folder = format!("/run/systemd/system/{manager}.d");
    let drop_in = format!("{folder}/without-cpu.conf");
    shell(&format!("mkdir -p {folder} && printf '{WITHOUT}' >{drop_in}"))?;
    root::ok(&["systemctl", "daemon-reload"])?;
    root::ok(&["systemctl", "restart", &manager])?;
    ensure!(
        !cgroup::user_manager_has_cpu(UID)?,
        "the user manager has the cpu controller all the same"
    );
    let session = until("the next bus", PATIENCE, || Ok(Some(Session::open()?)))?;
    let guard = Guard::connect(&session)?;
    guard.answers()?;
    let its_pid = guard.pid()?;
    until_true("the state says that budgets are not enforced", PATIENCE, || {
        let (state, reasons) = (guard.state()?, guard.reasons()?);
        ensure!(
            state == "degraded" && reasons.iter().any(|reason| reason.contains("cpu controller")),
            "{state}: {reasons:?}"
        );
        Ok(true)
    })?;
    let early = load(&["spin", "--idle"]).start()?;
    let routed = guard.routed_by_load(early.pid)?;
    step("without the controller: degraded, and routes");

    shell(&format!("rm {drop_in}"))?;
    root::ok(&["systemctl", "daemon-reload"])?;
    // The kernel's side of it: a reload alone does not give a running unit another controller everywhere.
    root::ok(&["systemctl", "set-property", "--runtime", &manager, "CPUWeight=100"])?;
    until_true("the user manager has the cpu controller", PATIENCE, || {
        cgroup::user_manager_has_cpu(UID)
    })?;
    // The user manager asks the kernel only when it starts.
    units::systemctl(&["daemon-reexec"])?;
    let slice = routed
        .destination
        .rsplit_once('/')
        .map_or("", |(slice, _)| slice);
    until_true("the state is normal", PATIENCE, || {
        let (state, reasons) = (guard.state()?, guard.reasons()?);
        ensure!(state == "normal", "{state}: {reasons:?}");
        Ok(true)
    })?;
    let quota = cgroup::quota_percent(slice)?;
    ensure!(
        quota.is_some_and(|percent| (percent - 400.0).abs() < 1.0),
        "the heavy slice has a quota of {quota:?}"
    );
    let weight = cgroup::read(&routed.destination, "cpu.weight")?;
    ensure!(weight == "100", "the workload's weight is {weight}");
    let classes = zbus::block_on(guard.proxy().classes())?;
    ensure!(
        classes.iter().any(|class| class.name == "heavy" && class.quota == 400),
        "{classes:?}"
    );
    step("the controller came: normal, and the quota is in the kernel");
    ensure!(early.now_in()? == routed.destination, "it was moved");
    idle(early.pid)?;
    let recovered = guard.recovered_when_idle(early.pid)?;
    ensure!(
        recovered.exact && recovered.destination == early.cgroup,
        "{recovered:?}"
    );
    ensure!(guard.pid()? == its_pid, "the guard was started again");
    drop(early);
    units::no_scope_of_ours_left(&session, PATIENCE)
}

fn shell(script: &str) -> Result<String> {
    root::ok(&["sh", "-c", script])
}
