//! `systemctl --user daemon-reexec` and a restarted bus: the guard goes on with its routes.

use anyhow::ensure;

use super::{CONTAINER, Scenario};
use crate::harness::guard::{FAST, Guard};
use crate::harness::load::load;
use crate::harness::outcome::{Verdict, step};
use crate::harness::session::Session;
use crate::harness::units;

pub const SCENARIO: Scenario = Scenario {
    name: "daemon-reexec-survived",
    tiers: CONTAINER,
    quick: true,
    full: false,
    exclusive: false,
    timeout_s: 90,
    run,
};

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, FAST)?;
    let its_pid = guard.pid()?;
    let old = load(&["spin", "--idle"]).start()?;
    let routed = guard.routed_by_load(old.pid)?;

    for verb in ["daemon-reexec", "daemon-reload", "daemon-reexec"] {
        units::systemctl(&[verb])?;
        ensure!(
            old.now_in()? == routed.destination,
            "after {verb} it is in {}",
            old.now_in()?
        );
        let new = load(&["spin", "--idle"]).start()?;
        guard.routed_by_load(new.pid)?;
        let recovered = guard.recovered_when_idle(new.pid)?;
        ensure!(
            recovered.exact && recovered.destination == new.cgroup,
            "after {verb}: {recovered:?}"
        );
        step(format_args!("after {verb}: routes and brings back"));
    }
    let row = guard.workload_of(old.pid)?;
    ensure!(
        row.as_ref()
            .is_some_and(|row| row.control_group == routed.destination),
        "the old route is listed as {row:?}"
    );
    let recovered = guard.recovered_when_idle(old.pid)?;
    ensure!(
        recovered.exact && recovered.destination == old.cgroup,
        "{recovered:?}"
    );
    ensure!(guard.pid()? == its_pid, "the guard was started again");
    Ok(())
}
