//! What happened is written down and read back: over lines of the Python original, over a torn line and over a
//! guard that was killed; and what follows from it, in words and for a monitoring system.

use std::fs;
use std::os::unix::fs::MetadataExt;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use workload_guard_dbus::History1Proxy;
use zbus::block_on;

use super::{CONTAINER, Scenario};
use crate::harness::command;
use crate::harness::guard::{FAST, Guard};
use crate::harness::home;
use crate::harness::load::load;
use crate::harness::outcome::{Verdict, step};
use crate::harness::session::Session;
use crate::harness::wait::{PATIENCE, until};

pub const SCENARIO: Scenario = Scenario {
    name: "history-and-diagnosis",
    tiers: CONTAINER,
    quick: true,
    full: false,
    exclusive: false,
    timeout_s: 90,
    run,
};

/// What Debian's own client library reads, or an exception.
const PARSE: &str = "
import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse
families = {family.name: family for family in parse(sys.stdin.read())}
for name in ('workload_guard_routes', 'workload_guard_move_seconds', 'workload_guard_process_cpu_seconds'):
    assert families[name].samples, name
print(len(families))
";

fn run(session: &Session) -> Verdict {
    let file = home::kept_state_dir().join("history.jsonl");
    home::write(&file, &earlier_lines()?)?;
    let mut settings = FAST.to_vec();
    settings.push(("WORKLOAD_GUARD_HISTORY_INTERVAL_SEC", "1"));
    let guard = Guard::install(session, &settings)?;
    let history = block_on(History1Proxy::new(session.bus()))?;

    let load = load(&["spin", "--idle"]).start()?;
    guard.routed_by_load(load.pid)?;
    // 5 routes of the original, of which 2 came after its first line, and ours.
    let summary = until("a snapshot tells of the route", PATIENCE, || {
        let summary = windows()?[0].clone();
        ensure!(summary["route_events"] == 6, "{summary}");
        Ok(Some(summary))
    })?;
    step(&summary);
    ensure!(summary["restarts"] == 1, "a new guard counts anew: {summary}");
    ensure!(
        summary["measures"]["router_runqueue_delay_ms"]["max"].as_f64() < Some(50_000.0),
        "the original's delay is among ours: {summary}"
    );
    guard.recovered_when_idle(load.pid)?;
    until("a snapshot tells of the recovery", PATIENCE, || {
        let summary = windows()?[0].clone();
        ensure!(summary["recovery_events"] == 2 + 1, "{summary}");
        Ok(Some(()))
    })?;

    let before = count(&file)?;
    guard.kill_and_wait_for_the_next()?;
    until("the next guard goes on writing", PATIENCE, || {
        let summary = windows()?[0].clone();
        ensure!(count(&file)? > before && summary["restarts"] == 2, "{summary}");
        ensure!(summary["route_events"] == 6, "a restart changes no count: {summary}");
        Ok(Some(()))
    })?;
    own_lines_are_schema_3(&file)?;

    let snapshots = block_on(history.snapshots(0, 5))?;
    ensure!(snapshots.len() == 5, "{} snapshots", snapshots.len());
    ensure!(snapshots[4].contains_key("unmanaged_cpu_pct"), "{:?}", snapshots[4]);
    let words = command::ok(&["workload-guard", "history"])?;
    println!("{words}");
    ensure!(words.contains("heavy CPU %") && words.contains("24 h ago"), "{words}");

    diagnosis()?;
    profile_and_report()?;
    metrics()
}

/// Two lines of the original's shape, within the last hour, and a torn one.
fn earlier_lines() -> Result<String> {
    let now: u64 = command::ok(&["date", "+%s"])?.trim().parse()?;
    Ok(format!(
        r#"{{"ts": {}.25, "routed": 1, "route_events": 3, "recovery_events": 1, "quota_changes": 0, "quota": 400, "cpu_psi_some_avg10": 0.1, "sched_delay_ms": 99999.0, "heavy_cpu_pct": 120.0, "heavy_throttle_ratio": 0.0, "guarded_cpu_pct": 130.0, "unmanaged_cpu_pct": 10.0}}
{{"schema_version": 2, "ts": {}, "routed": 1, "route_events": 5, "recovery_events": 2, "quota_changes": 0, "quota": null, "cpu_psi_some_avg10": null, "sched_delay_ms": 99999.0, "heavy_cpu_pct": 100.0, "heavy_throttle_ratio": 0.0, "guarded_cpu_pct": 110.0, "unmanaged_cpu_pct": 10.0, "top_cpu": [{{"pid": 9, "command": "make", "cpu_pct": 90.0, "class": "heavy", "cgroup": "/x"}}]}}
{{"schema_version": 3, "ts": {now}, "rout"#,
        now - 900,
        now - 600,
    ))
}

fn windows() -> Result<Vec<Value>> {
    let text = command::ok(&["workload-guard", "history", "--json"])?;
    let value: Value = serde_json::from_str(&text).with_context(|| text.clone())?;
    value["windows"].as_array().cloned().with_context(|| text.clone())
}

fn count(file: &std::path::Path) -> Result<usize> {
    Ok(fs::read_to_string(file)?.lines().count())
}

fn own_lines_are_schema_3(file: &std::path::Path) -> Verdict {
    let text = fs::read_to_string(file)?;
    ensure!(text.ends_with('\n'), "the last line is whole");
    let mut own = 0;
    // Behind the two lines of the original and the torn one.
    for line in text.lines().skip(3) {
        let value: Value = serde_json::from_str(line).with_context(|| line.to_owned())?;
        let keys: Vec<&String> = value.as_object().context("an object")?.keys().collect();
        ensure!(
            keys == [
                "cpu_psi_some_avg10", "guarded_cpu_pct", "heavy_cpu_pct", "heavy_throttle_ratio", "quota",
                "quota_changes", "recovery_events", "route_events", "routed", "router_runqueue_delay_ms",
                "schema_version", "top_cpu", "ts", "unmanaged_cpu_pct",
            ],
            "{line}"
        );
        ensure!(value["schema_version"] == 3 && value["heavy_cpu_pct"].is_number(), "{line}");
        own += 1;
    }
    step(format_args!("{own} lines of schema 3"));
    ensure!(own > 1, "{text}");
    Ok(())
}

fn diagnosis() -> Verdict {
    let words = command::ok(&["workload-guard", "diagnose"])?;
    println!("{words}");
    ensure!(words.starts_with("CPU pressure in the last hour: "), "{words}");
    let text = command::ok(&["workload-guard", "diagnose", "--json"])?;
    let value: Value = serde_json::from_str(&text).with_context(|| text.clone())?;
    let level = value["pressure"].as_str().context("pressure")?;
    ensure!(["normal", "high", "unknown"].contains(&level), "{level}");
    for finding in value["findings"].as_array().context("findings")? {
        let told = |key: &str| finding[key].as_str().is_some_and(|text| !text.is_empty());
        ensure!(told("id") && told("severity") && told("title") && told("next"), "{finding}");
    }
    Ok(())
}

fn profile_and_report() -> Verdict {
    let text = command::ok(&[
        "workload-guard",
        "profile",
        "--duration",
        "1",
        "--samples",
        "50",
        "--json",
    ])?;
    let value: Value = serde_json::from_str(&text).with_context(|| text.clone())?;
    let samples = value["wakeup_excess_ms"]["samples"].as_u64();
    ensure!(
        samples.is_some_and(|samples| (1..=50).contains(&samples)),
        "{text}"
    );
    ensure!(
        value["duration_sec"].as_f64() >= Some(1.0) && value["top_cpu"][0]["cgroup"].is_string(),
        "{text}"
    );
    let page = home::kept_state_dir().join("report.html");
    let path = page.to_string_lossy().into_owned();
    command::ok(&["workload-guard", "report", "--html", &path])?;
    let page = fs::read_to_string(&page)?;
    ensure!(
        page.contains("<svg") && page.ends_with("</html>\n"),
        "{page}"
    );
    Ok(())
}

fn metrics() -> Verdict {
    let file = home::kept_state_dir().join("guard.prom");
    let path = file.to_string_lossy().into_owned();
    command::ok(&["workload-guard", "metrics", "--output", &path])?;
    ensure!(fs::metadata(&file)?.mode() & 0o777 == 0o644, "others may read it");
    let shell = format!("python3 -c \"$1\" < {path}");
    let families = command::ok(&["sh", "-euc", &shell, "sh", PARSE])?;
    step(format_args!("{} families pass Debian's parser", families.trim()));
    Ok(())
}
