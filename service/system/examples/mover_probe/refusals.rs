//! What must not be moved, and what must be left behind by that.

use std::fs;

use guard_policy::action::{Failure, Placement, Why};
use guard_policy::eligibility::NeverMoved;
use guard_policy::id::ProcId;
use zvariant::Value;

use crate::check;
use crate::stage::{Outcome, PASS, Result, Stage, heavy, installed, order};

pub async fn a_foreign_process_stays(stage: &Stage) -> Result<Outcome> {
    if !installed("sudo") || stage.run(&["sudo", "-n", "true"]).is_err() {
        return Ok(Outcome::Skip("sudo asks for a password here".to_owned()));
    }
    // A shell of ours with a child of root's and one of our own.
    let shell = stage.child(&["sh", "-c", "sleep 1000 & sudo -n sleep 1000 & wait; true"])?;
    let foreign = async || -> Result<Option<ProcId>> {
        for pid in stage.proc.children(shell.pid)?.unwrap_or_default() {
            let own = nix::unistd::getuid().as_raw();
            if stage
                .proc
                .uids(pid)?
                .is_some_and(|uids| uids.other_than(own).is_some())
            {
                return Ok(Some(stage.id(pid)?));
            }
        }
        Ok(None)
    };
    stage
        .eventually("sudo runs", async || Ok(foreign().await?.is_some()))
        .await?;
    let foreign = foreign().await?.ok_or("sudo ended")?;
    let own_cgroup = stage.cgroup(shell);
    let everybody: Vec<ProcId> = [shell.pid, foreign.pid]
        .into_iter()
        .map(|pid| stage.id(pid))
        .collect::<Result<_>>()?;
    // systemd would take it along without a word: measured.
    let cgroup = stage
        .scope(
            "probe-term.scope",
            &[("Delegate", Value::from(true))],
            &everybody,
        )
        .await?;
    for pid in stage.proc.children(shell.pid)?.unwrap_or_default() {
        if pid != foreign.pid {
            stage
                .manager
                .attach_processes_to_unit("probe-term.scope", "", &[pid])
                .await?;
        }
    }
    check!(
        stage.cgroup(foreign) == cgroup && cgroup != own_cgroup,
        "setup: {}",
        stage.cgroup(foreign)
    );
    for placement in [Placement::Routed, Placement::Placed] {
        let refused = stage
            .mover
            .route(&order(foreign, placement), &heavy())
            .await;
        check!(
            matches!(refused, Err(Failure::OutOfReach(_))),
            "{refused:?}"
        );
        check!(
            stage.cgroup(foreign) == cgroup,
            "it was moved to {}",
            stage.cgroup(foreign)
        );
    }
    let route = stage.route(shell).await?;
    check!(
        stage.cgroup(foreign) == cgroup,
        "it went along to {}",
        stage.cgroup(foreign)
    );
    check!(
        route.left.iter().any(|left| left.process == foreign),
        "{:?}",
        route.left
    );
    check!(
        stage.pids(&route.cgroup).len() == 2,
        "{:?} in {}",
        stage.pids(&route.cgroup),
        route.cgroup
    );
    let arrival = stage.mover.recover(&route).await?;
    check!(arrival.exact, "{arrival:?}");
    // The manager may not end root's process with the scope, and systemd 252 would keep that loaded.
    for pid in stage.proc.children(foreign.pid)?.unwrap_or_default() {
        stage.run(&["sudo", "-n", "kill", &pid.to_string()])?;
    }
    // Where sudo became the program itself there was no child.
    let _ = stage.run(&["sudo", "-n", "kill", &foreign.pid.to_string()]);
    stage
        .eventually("root's process ended", async || Ok(!stage.alive(foreign)))
        .await?;
    PASS
}

pub async fn threads_and_pid_zero_are_refused(stage: &Stage) -> Result<Outcome> {
    let own = stage.id(std::process::id())?;
    let before = stage.cgroup(own);
    // zbus has at least one thread beside ours.
    let tid = fs::read_dir("/proc/self/task")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .find(|tid| *tid != own.pid)
        .ok_or("no second thread")?;
    let start = stage.proc.stat(tid)?.ok_or("thread gone")?.start;
    for id in [
        ProcId { pid: tid, start },
        ProcId { pid: 0, start: 0 },
        ProcId {
            pid: u32::MAX,
            start: 1,
        },
    ] {
        let refused = stage
            .mover
            .route(&order(id, Placement::Placed), &heavy())
            .await;
        check!(
            matches!(refused, Err(Failure::NoSuchProcess(_))),
            "{id:?}: {refused:?}"
        );
    }
    let refused = stage
        .mover
        .route(&order(own, Placement::Placed), &heavy())
        .await;
    check!(
        refused == Err(Failure::NeverMoved(NeverMoved::Guard)),
        "{refused:?}"
    );
    check!(
        stage.cgroup(own) == before,
        "we were moved to {}",
        stage.cgroup(own)
    );
    PASS
}

pub async fn no_scopes(stage: &Stage) -> Result<bool> {
    Ok(stage.mover.live_scopes().await?.is_empty())
}

pub async fn a_dead_process_leaves_no_scope(stage: &Stage) -> Result<Outcome> {
    let (id, _) = stage.sleeper("probe-term.scope", &[]).await?;
    let reused = ProcId {
        start: id.start + 1,
        ..id
    };
    let refused = stage
        .mover
        .route(&order(reused, Placement::Placed), &heavy())
        .await;
    check!(
        matches!(refused, Err(Failure::NoSuchProcess(_))),
        "{refused:?}"
    );
    let mut both = order(id, Placement::Placed);
    both.processes.push(reused);
    let refused = stage.mover.route(&both, &heavy()).await;
    check!(
        matches!(refused, Err(Failure::NoSuchProcess(_))),
        "{refused:?}"
    );
    check!(
        no_scopes(stage).await?,
        "{:?}",
        stage.mover.live_scopes().await?
    );
    PASS
}

pub async fn a_zombie_leaves_no_scope(stage: &Stage) -> Result<Outcome> {
    let zombie = stage.child(&["sleep", "1000"])?;
    stage.run(&["kill", "-9", &zombie.pid.to_string()])?;
    stage
        .eventually("it is a zombie", async || Ok(!stage.alive(zombie)))
        .await?;
    let refused = stage
        .mover
        .route(&order(zombie, Placement::Placed), &heavy())
        .await;
    check!(
        matches!(refused, Err(Failure::NoSuchProcess(_))),
        "{refused:?}"
    );
    check!(
        no_scopes(stage).await?,
        "{:?}",
        stage.mover.live_scopes().await?
    );
    PASS
}

pub async fn a_hostile_description_writes_no_settings(stage: &Stage) -> Result<Outcome> {
    let hostile = "sleep 1000; : \n[Scope]\nKillMode=none\nCPUWeight=3\n%n \u{202e}\\";
    let id = stage.child(&["sh", "-c", hostile])?;
    stage.scope("probe-term.scope", &[], &[id]).await?;
    let mut order = order(id, Placement::Placed);
    order.why = Why::Asked {
        reason: "x\n[Unit]\nPartOf=y.service\\".to_owned(),
    };
    let route = stage.mover.route(&order, &heavy()).await?;
    stage.manager.reload().await?;
    let unit = stage.unit(&route.unit).await?;
    check!(
        unit.text("KillMode") == "control-group",
        "KillMode {}",
        unit.text("KillMode")
    );
    check!(
        unit.number("CPUWeight") == Some(100),
        "CPUWeight {:?}",
        unit.number("CPUWeight")
    );
    check!(
        unit.list("PartOf") == ["probe-term.scope"],
        "PartOf {:?}",
        unit.list("PartOf")
    );
    let arrival = stage.mover.recover(&route).await?;
    check!(arrival.exact, "{arrival:?}");
    Ok(Outcome::Pass(unit.text("Description").to_owned()))
}
