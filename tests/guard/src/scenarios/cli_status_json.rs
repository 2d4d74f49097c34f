//! `workload-guard status`: JSON with stable keys for programs, words for people.

use anyhow::{Context, ensure};
use serde_json::Value;

use super::{CONTAINER, Scenario};
use crate::harness::command;
use crate::harness::guard::{FAST, Guard};
use crate::harness::load::load;
use crate::harness::outcome::{Verdict, step};
use crate::harness::session::Session;

pub const SCENARIO: Scenario = Scenario {
    name: "cli-status-json",
    tiers: CONTAINER,
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

    let text = command::ok(&["workload-guard", "status", "--json"])?;
    let status: Value = serde_json::from_str(&text).with_context(|| text.clone())?;
    let at = |path: &str| {
        status
            .pointer(path)
            .with_context(|| format!("no {path} in {text}"))
    };
    ensure!(at("/version")?.is_string(), "version: {text}");
    ensure!(*at("/state")? == guard.state()?, "state: {text}");
    for list in ["/state_reasons", "/capabilities", "/classes", "/watched"] {
        ensure!(at(list)?.is_array(), "{list}: {text}");
    }
    for key in ["name", "slice", "quota", "weight", "memory_high", "io_weight", "tasks_max", "from_settings"] {
        at(&format!("/classes/0/{key}"))?;
    }
    for key in ["unit", "processes"] {
        at(&format!("/watched/0/{key}"))?;
    }
    for (key, value) in [
        ("path", Value::from(routed.workload.as_str())),
        ("pid", load.pid.into()),
        ("class", "heavy".into()),
        ("reason", "sustained-cpu".into()),
        ("source", routed.source.clone().into()),
        ("control_group", routed.destination.clone().into()),
        ("command", routed.command.clone().into()),
    ] {
        let found = at(&format!("/workloads/0/{key}"))?;
        ensure!(*found == value, "{key} is {found}, not {value}");
    }
    ensure!(at("/workloads/0/cpu")?.is_number(), "cpu: {text}");
    ensure!(at("/workloads/0/since_usec")?.is_u64(), "since_usec: {text}");
    ensure!(*at("/totals/routed")? == 1, "totals: {text}");

    let words = command::ok(&["workload-guard", "status"])?;
    println!("{words}");
    ensure!(
        words.contains(&load.pid.to_string()) && words.contains(&guard.state()?),
        "status for people lacks the workload or the state"
    );
    ensure!(!words.contains('\x1b'), "colour without a terminal");

    let text = command::ok(&["workload-guard", "config", "--json"])?;
    let config: Vec<Value> = serde_json::from_str(&text).with_context(|| text.clone())?;
    let threshold = config
        .iter()
        .find(|row| row["key"] == "routing.cpu_threshold")
        .context("no routing.cpu_threshold in config --json")?;
    step(threshold);
    ensure!(
        threshold["value"] == "5"
            && threshold["origin"]
                .as_str()
                .is_some_and(|origin| origin.contains("WORKLOAD_GUARD_CPU_THRESHOLD")),
        "{threshold}"
    );
    Ok(())
}
