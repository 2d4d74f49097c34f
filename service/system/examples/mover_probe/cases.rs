//! One situation each.

use std::fs;

use futures::StreamExt;
use futures_lite::FutureExt;
use guard_policy::action::Placement;
use guard_policy::id::ProcId;
use guard_system::watch::ManagerEvent;
use workload_guard_dbus::scope::{Origin, ScopeName};
use zvariant::Value;

use crate::check;
use crate::refusals::no_scopes;
use crate::stage::{Outcome, PASS, Result, Stage, order, protected};

const ROUNDS: usize = 60;

pub async fn an_emptied_scope_is_made_anew(stage: &Stage) -> Result<Outcome> {
    let properties = [
        ("Description", Value::from("An editor")),
        ("CPUWeight", Value::from(50u64)),
        ("MemoryMax", Value::from(1u64 << 30)),
        ("TasksMax", Value::from(77u64)),
        ("KillMode", Value::from("mixed")),
        ("TimeoutStopUSec", Value::from(5_000_000u64)),
        ("SendSIGHUP", Value::from(true)),
        ("PartOf", Value::from(vec!["graphical-session.target"])),
    ];
    let name = "probe-editor\\x2d1.scope";
    let (id, cgroup) = stage.sleeper(name, &properties).await?;
    for round in 0..ROUNDS {
        let route = stage.route(id).await?;
        check!(
            stage.cgroup(id) == route.cgroup,
            "round {round}: in {}",
            stage.cgroup(id)
        );
        check!(
            route.source.cgroup == cgroup,
            "source {}",
            route.source.cgroup
        );
        let arrival = stage.mover.recover(&route).await?;
        check!(
            arrival.exact && arrival.unit.is_none(),
            "round {round}: {arrival:?}"
        );
        check!(
            stage.cgroup(id) == cgroup,
            "round {round}: back in {}",
            stage.cgroup(id)
        );
        let unit = stage.unit(name).await?;
        for (property, value) in &properties {
            let now = unit.value(property);
            check!(now == Some(value), "round {round}: {property} is {now:?}");
        }
        check!(
            unit.text("ActiveState") == "active",
            "{}",
            unit.text("ActiveState")
        );
    }
    Ok(Outcome::Pass(format!("{ROUNDS} of {ROUNDS} exact")))
}

/// The delegatee's own work: an inner group with a process in it.
fn inner_group(stage: &Stage, cgroup: &str, name: &str, id: ProcId) -> Result<String> {
    let inner = format!("{cgroup}/{name}");
    let folder = stage.cgroups.folder(&inner)?;
    fs::create_dir(&folder)?;
    fs::write(folder.join("cgroup.procs"), id.pid.to_string())?;
    Ok(inner)
}

pub async fn a_living_delegated_source_gets_its_work_back(stage: &Stage) -> Result<Outcome> {
    let (shell, work) = (
        stage.child(&["sleep", "1000"])?,
        stage.child(&["sleep", "1000"])?,
    );
    let cgroup = stage
        .scope(
            "probe-term.scope",
            &[("Delegate", Value::from(true))],
            &[shell, work],
        )
        .await?;
    let inner = inner_group(stage, &cgroup, "work", work)?;
    inner_group(stage, &cgroup, "shell", shell)?;
    let route = stage.route(work).await?;
    check!(
        route.source.subcgroup == "/work" && route.source.delegated,
        "{:?}",
        route.source
    );
    let arrival = stage.mover.recover(&route).await?;
    check!(arrival.exact && arrival.cgroup == inner, "{arrival:?}");
    check!(stage.cgroup(work) == inner, "{}", stage.cgroup(work));
    PASS
}

pub async fn a_lost_inner_group_means_a_return_scope(stage: &Stage) -> Result<Outcome> {
    let (shell, work) = (
        stage.child(&["sleep", "1000"])?,
        stage.child(&["sleep", "1000"])?,
    );
    let cgroup = stage
        .scope(
            "probe-term.scope",
            &[("Delegate", Value::from(true))],
            &[shell, work],
        )
        .await?;
    let inner = inner_group(stage, &cgroup, "work", work)?;
    let route = stage.route(work).await?;
    fs::remove_dir(stage.cgroups.folder(&inner)?)?;
    let arrival = stage.mover.recover(&route).await?;
    check!(
        !arrival.exact && arrival.unit.is_some() && !arrival.note.is_empty(),
        "{arrival:?}"
    );
    check!(
        stage.cgroup(work) == arrival.cgroup,
        "{}",
        stage.cgroup(work)
    );
    stage
        .manager
        .stop_unit("probe-term.scope", "replace")
        .await?;
    stage
        .eventually("the return scope is stopped with its source", async || {
            Ok(!stage.alive(work))
        })
        .await?;
    PASS
}

pub async fn a_living_undelegated_source_means_a_return_scope(stage: &Stage) -> Result<Outcome> {
    let (shell, work) = (
        stage.child(&["sleep", "1000"])?,
        stage.child(&["sleep", "1000"])?,
    );
    let properties = [("MemoryMax", Value::from(1u64 << 30))];
    stage
        .scope("probe-term.scope", &properties, &[shell, work])
        .await?;
    let route = stage.route(work).await?;
    let arrival = stage.mover.recover(&route).await?;
    let unit = arrival.unit.clone().ok_or("no unit")?;
    check!(
        !arrival.exact
            && unit
                .parse::<ScopeName>()
                .is_ok_and(|n| n.origin == Origin::Returned),
        "{arrival:?}"
    );
    check!(
        arrival.cgroup.contains("/app.slice/") && arrival.note.contains("not delegated"),
        "{arrival:?}"
    );
    let view = stage.unit(&unit).await?;
    check!(
        view.number("MemoryMax") == Some(1 << 30),
        "{:?}",
        view.value("MemoryMax")
    );
    // A return scope is a home like any other: from there and back again, many times.
    for round in 0..10 {
        let again = stage.route(work).await?;
        check!(again.source.unit == unit, "{:?}", again.source);
        let back = stage.mover.recover(&again).await?;
        check!(
            back.exact && back.cgroup == arrival.cgroup,
            "round {round}: {back:?}"
        );
    }
    let view = stage.unit(&unit).await?;
    check!(
        view.list("PartOf").contains(&"probe-term.scope".to_owned()),
        "{:?}",
        view.list("PartOf")
    );
    stage
        .manager
        .stop_unit("probe-term.scope", "replace")
        .await?;
    stage
        .eventually("stopping the source stops the work", async || {
            Ok(!stage.alive(work))
        })
        .await?;
    PASS
}

pub async fn stopping_a_living_source_stops_the_work(stage: &Stage) -> Result<Outcome> {
    let (shell, work) = (
        stage.child(&["sleep", "1000"])?,
        stage.child(&["sleep", "1000"])?,
    );
    stage.scope("probe-term.scope", &[], &[shell, work]).await?;
    stage.route(work).await?;
    check!(stage.alive(shell), "the shell died");
    stage
        .manager
        .stop_unit("probe-term.scope", "replace")
        .await?;
    stage
        .eventually("the work is stopped", async || Ok(!stage.alive(work)))
        .await?;
    PASS
}

pub async fn stopping_a_dead_source_stops_the_work(stage: &Stage) -> Result<Outcome> {
    let (work, _) = stage.sleeper("probe-term.scope", &[]).await?;
    stage.route(work).await?;
    stage
        .eventually("the source is dead", async || {
            Ok(stage.unit("probe-term.scope").await?.text("ActiveState") == "inactive")
        })
        .await?;
    check!(
        stage.alive(work),
        "the emptied source took its work with it"
    );
    stage
        .manager
        .stop_unit("probe-term.scope", "replace")
        .await?;
    stage
        .eventually("the work is stopped", async || Ok(!stage.alive(work)))
        .await?;
    PASS
}

pub async fn stopping_what_the_source_is_part_of_stops_the_work(stage: &Stage) -> Result<Outcome> {
    stage.run(&[
        "systemd-run",
        "--user",
        "--unit=probe-session.service",
        "sleep",
        "1000",
    ])?;
    let (work, _) = stage
        .sleeper(
            "probe-term.scope",
            &[("PartOf", Value::from(vec!["probe-session.service"]))],
        )
        .await?;
    stage.route(work).await?;
    stage
        .eventually("the source is dead", async || {
            Ok(stage.unit("probe-term.scope").await?.text("ActiveState") == "inactive")
        })
        .await?;
    stage
        .manager
        .stop_unit("probe-session.service", "replace")
        .await?;
    stage
        .eventually("the work is stopped", async || Ok(!stage.alive(work)))
        .await?;
    PASS
}

pub async fn bounds_move_along(stage: &Stage) -> Result<Outcome> {
    let properties = [
        ("MemoryMax", Value::from(1u64 << 30)),
        ("CPUQuotaPerSecUSec", Value::from(500_000u64)),
        ("TasksMax", Value::from(77u64)),
        ("RuntimeMaxUSec", Value::from(600_000_000u64)),
    ];
    let (id, _) = stage.sleeper("probe-term.scope", &properties).await?;
    let began = stage
        .unit("probe-term.scope")
        .await?
        .number("ActiveEnterTimestampMonotonic");
    let route = stage.route(id).await?;
    let unit = stage.unit(&route.unit).await?;
    for (property, value) in &properties[..3] {
        check!(
            unit.value(property) == Some(value),
            "{property} is {:?}",
            unit.value(property)
        );
    }
    let left = unit.number("RuntimeMaxUSec").unwrap_or(u64::MAX);
    check!(
        (590_000_000..600_000_000).contains(&left),
        "RuntimeMaxUSec {left}"
    );
    stage.mover.recover(&route).await?;
    let unit = stage.unit("probe-term.scope").await?;
    let ends = unit.number("ActiveEnterTimestampMonotonic").unwrap_or(0)
        + unit.number("RuntimeMaxUSec").unwrap_or(0);
    let first = began.unwrap_or(0) + 600_000_000;
    check!(
        ends.abs_diff(first) < 200_000,
        "it now ends {} us off",
        ends.abs_diff(first)
    );
    PASS
}

pub async fn a_second_workload_on_a_dead_source_is_not_waited_for(
    stage: &Stage,
) -> Result<Outcome> {
    let (one, two) = (
        stage.child(&["sleep", "1000"])?,
        stage.child(&["sleep", "1000"])?,
    );
    let cgroup = stage.scope("probe-term.scope", &[], &[one, two]).await?;
    let (first, second) = (stage.route(one).await?, stage.route(two).await?);
    stage
        .eventually("the source is dead", async || {
            Ok(stage.unit("probe-term.scope").await?.text("ActiveState") == "inactive")
        })
        .await?;
    let arrival = stage.mover.recover(&first).await?;
    check!(
        arrival.unit.is_some() && arrival.note.contains(&second.unit),
        "{arrival:?}"
    );
    let arrival = stage.mover.recover(&second).await?;
    check!(
        arrival.exact && stage.cgroup(two) == cgroup && stage.alive(one),
        "{arrival:?}"
    );
    PASS
}

pub async fn a_lost_record_is_rebuilt(stage: &Stage) -> Result<Outcome> {
    let properties = [
        ("MemoryMax", Value::from(1u64 << 30)),
        ("Description", Value::from("An editor")),
    ];
    let (id, cgroup) = stage.sleeper("probe-term.scope", &properties).await?;
    let route = stage.route(id).await?;
    let live = stage.mover.live_scopes().await?;
    check!(
        live.len() == 1 && live[0].processes == [id] && live[0].cgroup == route.cgroup,
        "{live:?}"
    );
    let rebuilt = stage.mover.rebuild(&live[0], id).await?;
    check!(
        rebuilt.source == route.source,
        "{:?} instead of {:?}",
        rebuilt.source,
        route.source
    );
    check!(
        rebuilt.ties == route.ties && rebuilt.class == "heavy",
        "{rebuilt:?}"
    );
    check!(
        rebuilt.since.abs_diff(route.since) < 1_000_000,
        "{} {}",
        rebuilt.since,
        route.since
    );
    let arrival = stage.mover.recover(&rebuilt).await?;
    check!(arrival.exact && stage.cgroup(id) == cgroup, "{arrival:?}");
    stage
        .eventually("no scope is left", async || no_scopes(stage).await)
        .await?;
    PASS
}

pub async fn work_is_promoted_and_keeps_its_way_back(stage: &Stage) -> Result<Outcome> {
    let (id, cgroup) = stage.sleeper("probe-term.scope", &[]).await?;
    let routed = stage.route(id).await?;
    let order = order(id, Placement::Placed);
    let placed = stage.mover.reroute(&order, &protected(), &routed).await?;
    check!(
        placed.source == routed.source && placed.ties == routed.ties,
        "{placed:?}"
    );
    let back = stage.route(id).await?;
    check!(back.source == routed.source, "{:?}", back.source);
    let arrival = stage.mover.recover(&back).await?;
    check!(arrival.exact && stage.cgroup(id) == cgroup, "{arrival:?}");
    PASS
}

pub async fn events_tell_of_ends_and_not_of_reloads(stage: &Stage) -> Result<Outcome> {
    let (id, _) = stage.sleeper("probe-term.scope", &[]).await?;
    let route = stage.route(id).await?;
    let mut events = stage.mover.events();
    stage.manager.reload().await?;
    let mut next = async || {
        let late = async {
            async_io::Timer::after(std::time::Duration::from_secs(10)).await;
            None
        };
        events.next().or(late).await
    };
    let event = next().await;
    check!(event == Some(ManagerEvent::Reloaded), "{event:?}");
    stage.run(&["systemctl", "--user", "daemon-reexec"])?;
    // One or two of the first, then the second. systemd 262 misses what ends in between.
    let mut event = next().await;
    check!(event == Some(ManagerEvent::ManagerReplaced), "{event:?}");
    while event == Some(ManagerEvent::ManagerReplaced) {
        event = next().await;
    }
    check!(event == Some(ManagerEvent::Reloaded), "{event:?}");
    check!(
        stage.alive(id) && stage.cgroup(id) == route.cgroup,
        "{}",
        stage.cgroup(id)
    );
    stage.run(&["kill", &id.pid.to_string()])?;
    let mut event = next().await;
    while event == Some(ManagerEvent::ManagerReplaced) {
        event = next().await;
    }
    let gone = ManagerEvent::ScopeRemoved { unit: route.unit };
    check!(event.as_ref() == Some(&gone), "{event:?}");
    PASS
}
