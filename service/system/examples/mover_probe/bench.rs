//! How long moves take, from the call to the read-back.

use std::time::{Duration, Instant};

use zvariant::Value;

use crate::check;
use crate::stage::{Outcome, Result, Stage};

#[derive(Default)]
struct Times(Vec<Duration>);

impl Times {
    fn add(&mut self, since: Instant) {
        self.0.push(since.elapsed());
    }

    fn text(&mut self, what: &str) -> String {
        self.0.sort_unstable();
        let at = |part: usize| self.0[(self.0.len() - 1) * part / 100].as_secs_f64() * 1000.0;
        format!(
            "{what}: p50 {:.1} ms, p95 {:.1}, max {:.1}",
            at(50),
            at(95),
            at(100)
        )
    }
}

pub async fn latency(stage: &Stage) -> Result<Outcome> {
    const ROUNDS: usize = 50;
    let mut lines = vec![
        stage.mover.systemd_version().to_owned(),
        format!("{:?}", stage.mover.capabilities()),
    ];

    // One process, its source emptied: the long way back.
    let (id, _) = stage.sleeper("probe-one.scope", &[]).await?;
    let (mut route_one, mut recreate) = (Times::default(), Times::default());
    for _ in 0..ROUNDS {
        let began = Instant::now();
        let route = stage.route(id).await?;
        route_one.add(began);
        // As it is when real work calms down after its 20 s.
        stage
            .eventually("the source is dead", async || {
                Ok(stage.unit("probe-one.scope").await?.text("ActiveState") == "inactive")
            })
            .await?;
        let began = Instant::now();
        let arrival = stage.mover.recover(&route).await?;
        check!(arrival.exact, "{arrival:?}");
        recreate.add(began);
    }
    lines.push(route_one.text("route 1 process"));
    lines.push(recreate.text("recover by a scope made anew"));

    // A tree of 50, its source alive and delegated: the short way back.
    let root = stage.child(&[
        "sh",
        "-c",
        "sleep 1; for i in $(seq 50); do sleep 1000 & done; wait",
    ])?;
    let other = stage.child(&["sleep", "1000"])?;
    let cgroup = stage
        .scope(
            "probe-two.scope",
            &[("Delegate", Value::from(true))],
            &[root, other],
        )
        .await?;
    stage
        .eventually("the tree is there", async || {
            Ok(stage.pids(&cgroup).len() >= 52)
        })
        .await?;
    let (mut route_tree, mut attach) = (Times::default(), Times::default());
    for _ in 0..ROUNDS {
        let began = Instant::now();
        let route = stage.route(root).await?;
        route_tree.add(began);
        check!(
            stage.pids(&route.cgroup).len() >= 51,
            "{}",
            stage.pids(&route.cgroup).len()
        );
        let began = Instant::now();
        let arrival = stage.mover.recover(&route).await?;
        check!(arrival.exact, "{arrival:?}");
        attach.add(began);
    }
    lines.push(route_tree.text("route 51 processes"));
    lines.push(attach.text("recover 51 by attaching"));
    Ok(Outcome::Pass(lines.join("\n  ")))
}
