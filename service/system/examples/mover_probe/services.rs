//! Work that comes out of services.

use guard_policy::action::{Failure, Placement};
use guard_policy::eligibility::NeverMoved;
use guard_policy::id::ProcId;
use guard_system::mover::SourceKind;

use crate::check;
use crate::stage::{Outcome, PASS, Result, Stage, heavy, order, protected};

/// A service whose main process has one child.
async fn service_with_child(stage: &Stage, options: &[&str]) -> Result<(ProcId, ProcId, String)> {
    let mut argv = vec!["systemd-run", "--user", "--unit=probe-app.service"];
    argv.extend(options);
    argv.extend(["sh", "-c", "sleep 1000 & wait; sleep 1000"]);
    stage.run(&argv)?;
    let cgroup = format!(
        "{}/app.slice/probe-app.service",
        stage.mover.manager_cgroup()
    );
    let child = |pids: &[u32]| -> Option<(u32, u32)> {
        let parent = |pid| stage.proc.stat(pid).ok().flatten().map(|stat| stat.ppid);
        pids.iter().find_map(|&pid| {
            parent(pid)
                .filter(|ppid| pids.contains(ppid))
                .map(|ppid| (ppid, pid))
        })
    };
    stage
        .eventually("the service has a child", async || {
            let pids = stage.pids(&cgroup);
            Ok(child(&pids).is_some_and(|(_, pid)| {
                stage
                    .proc
                    .stat(pid)
                    .ok()
                    .flatten()
                    .is_some_and(|stat| stat.comm() == "sleep")
            }))
        })
        .await?;
    let (main, work) = child(&stage.pids(&cgroup)).ok_or("no child")?;
    Ok((stage.id(main)?, stage.id(work)?, cgroup))
}

pub async fn stopping_a_service_stops_its_moved_child(stage: &Stage) -> Result<Outcome> {
    let (main, work, cgroup) = service_with_child(stage, &[]).await?;
    let route = stage.route(work).await?;
    check!(
        route.source.kind == SourceKind::Service && route.source.cgroup == cgroup,
        "{:?}",
        route.source
    );
    check!(
        route.ties.stop_propagated_from == ["probe-app.service"],
        "{:?}",
        route.ties
    );
    check!(
        stage.cgroup(main) == cgroup,
        "main moved to {}",
        stage.cgroup(main)
    );
    stage
        .manager
        .stop_unit("probe-app.service", "replace")
        .await?;
    stage
        .eventually("the work is stopped", async || Ok(!stage.alive(work)))
        .await?;
    PASS
}

pub async fn a_service_without_main_process_does_not_kill_its_work(
    stage: &Stage,
) -> Result<Outcome> {
    let (_, work, cgroup) = service_with_child(stage, &["-p", "ExitType=cgroup"]).await?;
    let main = stage
        .unit("probe-app.service")
        .await?
        .number("MainPID")
        .unwrap_or(0);
    let route = stage.route(work).await?;
    check!(
        route.ties.part_of == ["probe-app.service"],
        "{:?}",
        route.ties
    );
    stage.run(&["kill", &main.to_string()])?;
    stage
        .eventually("the service ended", async || {
            Ok(stage.unit("probe-app.service").await?.text("ActiveState") != "active")
        })
        .await?;
    check!(stage.alive(work), "its work was killed");
    let arrival = stage.mover.recover(&route).await?;
    check!(
        arrival.unit.is_some() && arrival.cgroup != cgroup && stage.alive(work),
        "{arrival:?}"
    );
    PASS
}

pub async fn the_main_process_of_a_service_stays(stage: &Stage) -> Result<Outcome> {
    let (main, work, cgroup) =
        service_with_child(stage, &["-p", "NotifyAccess=all", "-p", "Delegate=yes"]).await?;
    let refused = stage
        .mover
        .route(&order(main, Placement::Routed), &heavy())
        .await;
    check!(
        refused == Err(Failure::NeverMoved(NeverMoved::ServiceMain)),
        "{refused:?}"
    );
    let refused = stage
        .mover
        .route(&order(work, Placement::Routed), &heavy())
        .await;
    check!(
        refused == Err(Failure::NeverMoved(NeverMoved::Notifier)),
        "{refused:?}"
    );
    // The person's word counts, for the whole tree, and there is a way back.
    let route = stage
        .mover
        .route(&order(main, Placement::Placed), &protected())
        .await?;
    for id in [main, work] {
        check!(
            stage.cgroup(id) == route.cgroup,
            "{id} is in {}",
            stage.cgroup(id)
        );
    }
    let arrival = stage.mover.recover(&route).await?;
    check!(
        arrival.exact && stage.cgroup(work) == cgroup && stage.cgroup(main) == cgroup,
        "{arrival:?}"
    );
    PASS
}
