//! Sustained CPU use is routed, and the journal says so in words and in fields.

use anyhow::{Context, ensure};

use super::{BOTH, Scenario};
use crate::harness::guard::{FAST, Guard};
use crate::harness::journal;
use crate::harness::load::load;
use crate::harness::outcome::{Verdict, step};
use crate::harness::session::Session;
use crate::harness::wait::{PATIENCE, until};

pub const SCENARIO: Scenario = Scenario {
    name: "sustained-load-routed",
    tiers: BOTH,
    quick: true,
    full: false,
    exclusive: false,
    timeout_s: 60,
    run,
};

fn run(session: &Session) -> Verdict {
    let guard = Guard::install(session, FAST)?;
    let load = load(&["spin", "--idle"]).start()?;
    let routed = guard.routed_by_load(load.pid)?;
    ensure!(routed.reason == "sustained-cpu", "reason: {}", routed.reason);
    ensure!(routed.source == load.cgroup, "source: {}", routed.source);
    ensure!(guard.routed_total()? == 1, "RoutedTotal is not 1");

    let pid = load.pid.to_string();
    let entry = until("the journal has the route", PATIENCE, || {
        Ok(journal::of_guard(&[&format!("WORKLOAD_PID={pid}")])?
            .into_iter()
            .find(|entry| {
                entry
                    .get("MESSAGE")
                    .is_some_and(|text| text.contains("route decision=accepted"))
            }))
    })?;
    step(&entry["MESSAGE"]);
    let field = |name: &str| {
        entry
            .get(name)
            .with_context(|| format!("the entry has no {name}: {entry:#?}"))
    };
    let unit = routed.destination.rsplit('/').next().unwrap_or_default();
    for (name, value) in [
        ("WORKLOAD_PID", pid.as_str()),
        ("WORKLOAD_REASON", "sustained-cpu"),
        ("WORKLOAD_SOURCE", &routed.source),
        ("WORKLOAD_DESTINATION", &routed.destination),
        ("WORKLOAD_UNIT", unit),
        ("WORKLOAD_COMMAND", &routed.command),
    ] {
        let found = field(name)?;
        ensure!(found == value, "{name} is {found:?}, not {value:?}");
    }
    let cpu: f64 = field("WORKLOAD_CPU")?.parse().context("WORKLOAD_CPU")?;
    let threshold: f64 = field("WORKLOAD_THRESHOLD")?
        .parse()
        .context("WORKLOAD_THRESHOLD")?;
    let hot: u32 = field("WORKLOAD_HOT_SAMPLES")?
        .parse()
        .context("WORKLOAD_HOT_SAMPLES")?;
    ensure!(
        threshold == 5.0 && cpu >= threshold && hot == 3,
        "CPU {cpu}, threshold {threshold}, hot samples {hot}"
    );
    Ok(())
}
