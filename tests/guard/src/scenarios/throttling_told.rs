//! What a budget costs a workload is told where a person looks: in status, in explain and in the history, over the
//! workload's end too.

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{MACHINE, Scenario};
use crate::harness::command;
use crate::harness::guard::{FAST, Guard, HEAVY};
use crate::harness::load::load;
use crate::harness::outcome::{Verdict, step};
use crate::harness::session::Session;
use crate::harness::units;
use crate::harness::wait::{PATIENCE, until};

pub const SCENARIO: Scenario = Scenario {
    name: "throttling-told",
    tiers: MACHINE,
    quick: false,
    full: false,
    exclusive: false,
    timeout_s: 180,
    run,
};

/// A third of a CPU: a busy process is held up in every period.
const QUOTA: &str = "CPUQuota=30%";

fn run(session: &Session) -> Verdict {
    let mut settings = FAST.to_vec();
    settings.push(("WORKLOAD_GUARD_HISTORY_INTERVAL_SEC", "1"));
    let guard = Guard::install(session, &settings)?;
    let load = load(&["spin", "--idle"]).start()?;
    guard.routed_by_load(load.pid)?;
    units::systemctl(&["set-property", "--runtime", HEAVY, QUOTA])?;
    let held_up = until("status tells how long it was held up", PATIENCE, || {
        let status = json(&["status", "--json"])?;
        let usec = status["workloads"][0]["throttled_usec"].as_u64();
        Ok(usec.filter(|usec| *usec > 1_000_000))
    })?;
    step(format_args!("status: {held_up} µs"));
    let told = json(&["explain", &load.pid.to_string(), "--json"])?;
    ensure!(told["throttled_usec"].as_u64() >= Some(held_up), "{told}");
    ensure!(told["sentences"].to_string().contains("has held it up for"), "{told}");
    let seconds = until("the history tells of it", PATIENCE, || {
        Ok(in_history(load.pid)?.filter(|sec| *sec >= held_up as f64 / 1e6))
    })?;
    step(format_args!("history: {seconds} s"));
    drop(load);
    until("the workload is gone", PATIENCE, || {
        let status = json(&["status", "--json"])?;
        Ok((status["workloads"] == serde_json::json!([])).then_some(()))
    })?;
    let day = json(&["history", "--json"])?["windows"][2].clone();
    let rows = day["throttling"].as_array().context("throttling")?;
    ensure!(rows.iter().any(|row| row["throttled_sec"].as_f64() >= Some(seconds)), "{day}");
    let words = command::ok(&["workload-guard", "history"])?;
    println!("{words}");
    ensure!(words.contains("HELD UP IN 24 H"), "{words}");
    Ok(())
}

/// Seconds of the workload's command in the last hour.
fn in_history(pid: u32) -> Result<Option<f64>> {
    let status = json(&["status", "--json"])?;
    let rows = status["workloads"].as_array().context("workloads")?;
    let row = rows.iter().find(|row| row["pid"] == pid).context("no workload")?;
    let hour = json(&["history", "--json"])?["windows"][0].clone();
    let costs = hour["throttling"].as_array().context("throttling")?;
    let cost = costs.iter().find(|cost| cost["command"] == row["command"]);
    Ok(cost.and_then(|cost| cost["throttled_sec"].as_f64()))
}

fn json(line: &[&str]) -> Result<Value> {
    let words: Vec<&str> = ["workload-guard"].iter().chain(line).copied().collect();
    let text = command::ok(&words)?;
    serde_json::from_str(&text).with_context(|| text.clone())
}
