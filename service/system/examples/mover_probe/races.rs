//! Moves while something else happens.

use std::process::{Command, Stdio};
use std::time::Duration;

use async_io::Timer;
use futures_lite::FutureExt;
use guard_policy::action::{Failure, Placement};

use crate::check;
use crate::stage::{Outcome, Result, Stage, heavy, order};

/// A different delay each time, up to `most`, without a source of chance: 7 and 64 have no common factor.
fn delay(round: u32, most: Duration) -> Duration {
    most * ((round * 7) % 64) / 64
}

pub async fn short_lived_children_leave_no_scope(stage: &Stage) -> Result<Outcome> {
    let (mut moved, mut ended) = (0, 0);
    for round in 0..200 {
        let life = format!(
            "{:.4}",
            delay(round, Duration::from_millis(150)).as_secs_f64()
        );
        let mut child = Command::new("sleep")
            .arg(&life)
            .stdin(Stdio::null())
            .spawn()?;
        let reaped = round % 2 == 0;
        if let Some(id) = stage.proc.identify(child.id())? {
            // A thread collects it at once, as a shell does; otherwise it stays a zombie.
            let order = order(id, Placement::Placed);
            let class = heavy();
            let moving = stage.mover.route(&order, &class);
            let outcome = if reaped {
                let reaper = std::thread::spawn(move || child.wait());
                let outcome = moving.await;
                reaper.join().map_err(|_| "the reaper panicked")??;
                outcome
            } else {
                let outcome = moving.await;
                child.wait()?;
                outcome
            };
            match outcome {
                Ok(_) => moved += 1,
                Err(Failure::NoSuchProcess(_)) => ended += 1,
                Err(other) => return Err(format!("round {round}: {other:?}").into()),
            }
        } else {
            child.wait()?;
        }
    }
    stage
        .eventually("no scope is left", async || {
            Ok(stage.mover.live_scopes().await?.is_empty())
        })
        .await?;
    Ok(Outcome::Pass(format!("{moved} moved, {ended} had ended")))
}

/// The processes of a group, with their parents, but for those that are exiting, which nobody can move.
fn staying(stage: &Stage, cgroup: &str) -> Result<Vec<(u32, u32)>> {
    const PF_EXITING: u64 = 0x4;
    let mut found = Vec::new();
    for pid in stage.pids(cgroup) {
        if let Some(stat) = stage.proc.stat(pid)?
            && !stat.is_dead()
            && stat.flags & PF_EXITING == 0
        {
            found.push((pid, stat.ppid));
        }
    }
    Ok(found)
}

pub async fn a_forking_tree_moves_whole(stage: &Stage) -> Result<Outcome> {
    // Eight shells below one, each of which forks all the time, two deep.
    let forks = "for i in 1 2 3 4 5 6 7 8; do (while :; do (sleep 0.01 & sleep 0.02; wait); done) & done; wait";
    // It begins when it is in its scope: what is forked before would stay behind in our own group.
    let script = format!(
        "trap '' HUP; while [ ! -e /run/user/$(id -u)/probe-go ]; do sleep 0.01; done; {forks}"
    );
    let flag = format!("/run/user/{}/probe-go", nix::unistd::getuid());
    let _ = std::fs::remove_file(&flag);
    let root = stage.child(&["sh", "-c", &script])?;
    let cgroup = stage.scope("probe-term.scope", &[], &[root]).await?;
    std::fs::write(&flag, "")?;
    stage
        .eventually("it forks", async || Ok(stage.pids(&cgroup).len() > 20))
        .await?;
    let mut size = 0;
    for round in 0..20 {
        let route = stage.route(root).await?;
        check!(route.left.is_empty(), "round {round}: {:?}", route.left);
        let behind = staying(stage, &cgroup)?;
        check!(
            behind.is_empty(),
            "round {round}: {behind:?} stayed in {cgroup}"
        );
        size = size.max(stage.pids(&route.cgroup).len());
        let arrival = stage.mover.recover(&route).await?;
        check!(arrival.exact, "round {round}: {arrival:?}");
        let behind = staying(stage, &route.cgroup)?;
        check!(
            behind.is_empty(),
            "round {round}: {behind:?} stayed in {}",
            route.cgroup
        );
    }
    std::fs::remove_file(&flag)?;
    Ok(Outcome::Pass(format!(
        "20 round trips of up to {size} processes"
    )))
}

/// `systemctl --user VERB`, some time after the caller went on.
async fn disturbance(verb: &str, after: Duration) -> Result<()> {
    Timer::after(after).await;
    let status = async_run(&["systemctl", "--user", verb]).await?;
    check!(status, "systemctl --user {verb} failed");
    Ok(())
}

/// Runs a program in a thread, so that the caller's other futures go on.
async fn async_run(argv: &[&str]) -> Result<bool> {
    let argv: Vec<String> = argv.iter().map(|arg| (*arg).to_owned()).collect();
    let (sender, receiver) = futures::channel::oneshot::channel();
    std::thread::spawn(move || {
        let status = Command::new(&argv[0]).args(&argv[1..]).status();
        // Nobody listens any more when the case has failed already.
        let _ = sender.send(status);
    });
    Ok(receiver.await??.success())
}

pub async fn a_reexec_loses_no_move(stage: &Stage) -> Result<Outcome> {
    for round in 0..25 {
        let (id, cgroup) = stage.sleeper("probe-term.scope", &[]).await?;
        let disturbed = disturbance("daemon-reexec", Duration::ZERO);
        let moved = async {
            Timer::after(delay(round, Duration::from_millis(120))).await;
            stage.route(id).await
        };
        let (route, disturbed) = futures::join!(moved, disturbed);
        disturbed?;
        let route = route.map_err(|error| format!("round {round}: {error}"))?;
        check!(
            stage.cgroup(id) == route.cgroup,
            "round {round}: in {}",
            stage.cgroup(id)
        );
        check!(
            route.source.cgroup == cgroup,
            "round {round}: {:?}",
            route.source
        );
        stage.run(&["kill", &id.pid.to_string()])?;
        stage
            .eventually("both units are gone", async || {
                // systemd 262 does not notice an end between its new name and `Reloading(false)`.
                stage.mover.stop_empty(&route.unit).await?;
                stage.mover.stop_empty("probe-term.scope").await?;
                Ok(!stage.mover.is_loaded(&route.unit).await?
                    && !stage.mover.is_loaded("probe-term.scope").await?)
            })
            .await?;
    }
    Ok(Outcome::Pass("25 of 25".to_owned()))
}

pub async fn a_reexec_loses_no_recovery(stage: &Stage) -> Result<Outcome> {
    let (id, _) = stage.sleeper("probe-term.scope", &[]).await?;
    let mut inexact = String::new();
    let mut exact = 0;
    for round in 0..25 {
        let route = stage.route(id).await?;
        let disturbed = disturbance("daemon-reexec", Duration::ZERO);
        let back = async {
            Timer::after(delay(round, Duration::from_millis(120))).await;
            stage.mover.recover(&route).await
        };
        let (arrival, disturbed) = futures::join!(back, disturbed);
        disturbed?;
        let arrival = arrival.map_err(|error| format!("round {round}: {error}"))?;
        check!(
            stage.cgroup(id) == arrival.cgroup,
            "round {round}: in {}, {arrival:?}",
            stage.cgroup(id)
        );
        exact += i32::from(arrival.exact);
        check!(
            arrival.exact || arrival.unit.is_some(),
            "round {round}: {arrival:?}"
        );
        if !arrival.exact {
            inexact = arrival.note;
        }
    }
    Ok(Outcome::Pass(format!("{exact} of 25 exact {inexact}")))
}

pub async fn a_reload_disturbs_no_move(stage: &Stage) -> Result<Outcome> {
    let (id, cgroup) = stage.sleeper("probe-term.scope", &[]).await?;
    for round in 0..25 {
        let disturbed = disturbance("daemon-reload", Duration::ZERO);
        let trip = async {
            Timer::after(delay(round, Duration::from_millis(60))).await;
            let route = stage.route(id).await?;
            Ok(stage.mover.recover(&route).await?)
        };
        let (arrival, disturbed): (Result<_>, _) = futures::join!(trip, disturbed);
        disturbed?;
        let arrival = arrival.map_err(|error| format!("round {round}: {error}"))?;
        check!(
            arrival.exact && stage.cgroup(id) == cgroup,
            "round {round}: {arrival:?}"
        );
    }
    Ok(Outcome::Pass("25 of 25".to_owned()))
}

pub async fn a_recovery_that_was_cut_off_is_taken_up(stage: &Stage) -> Result<Outcome> {
    let (id, cgroup) = stage.sleeper("probe-term.scope", &[]).await?;
    let mut cut = 0;
    for round in 0..40 {
        let route = stage.route(id).await?;
        // Dropping the future is what a kill of the guard does: calls under way are carried out or not.
        let killed = async {
            Timer::after(delay(round, Duration::from_millis(20))).await;
            None
        };
        let arrival = async { Some(stage.mover.recover(&route).await) }
            .or(killed)
            .await;
        if arrival.is_none() {
            cut += 1;
            check!(stage.alive(id), "round {round}: it died");
            match stage.mover.recover(&route).await {
                Ok(arrival) => check!(arrival.exact, "round {round}: {arrival:?}"),
                // It had arrived already.
                Err(Failure::NoSuchProcess(_)) => {}
                Err(other) => return Err(format!("round {round}: {other}").into()),
            }
        }
        check!(
            stage.cgroup(id) == cgroup,
            "round {round}: in {}",
            stage.cgroup(id)
        );
    }
    check!(cut > 5, "only {cut} were cut off");
    Ok(Outcome::Pass(format!("{cut} of 40 cut off")))
}

pub async fn two_recoveries_at_once_are_both_exact(stage: &Stage) -> Result<Outcome> {
    for round in 0..10 {
        let (one, first) = stage.sleeper("probe-one.scope", &[]).await?;
        let (two, second) = stage.sleeper("probe-two.scope", &[]).await?;
        let (a, b) = futures::join!(stage.route(one), stage.route(two));
        let (a, b) = (a?, b?);
        let (a, b) = futures::join!(stage.mover.recover(&a), stage.mover.recover(&b));
        check!(
            a.as_ref().is_ok_and(|a| a.exact) && b.as_ref().is_ok_and(|b| b.exact),
            "round {round}: {a:?} {b:?}"
        );
        check!(
            stage.cgroup(one) == first && stage.cgroup(two) == second,
            "round {round}"
        );
        for id in [one, two] {
            stage.run(&["kill", &id.pid.to_string()])?;
        }
        stage
            .eventually("both are gone", async || {
                Ok(!stage.mover.is_loaded("probe-one.scope").await?
                    && !stage.mover.is_loaded("probe-two.scope").await?)
            })
            .await?;
    }
    Ok(Outcome::Pass("10 of 10".to_owned()))
}
