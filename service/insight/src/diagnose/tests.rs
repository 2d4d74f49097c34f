//! Recorded situations with what is to be found in each: `situations/*.json`. A snapshot there has only what
//! differs from a quiet one, and its age in minutes instead of its time.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::*;
use crate::history::History;

const NOW: u64 = 1_800_000_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Recorded {
    /// What it is, for the reader.
    what: String,
    history: Vec<Map<String, Value>>,
    #[serde(default)]
    environment: Environment,
    #[serde(default)]
    guard: Guard,
    expect: Expected,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    pressure: String,
    /// `severity id`, in order.
    findings: Vec<String>,
    /// What some line of a finding says.
    #[serde(default)]
    says: Vec<(String, String)>,
    /// What no line says.
    #[serde(default)]
    never: Vec<String>,
}

impl Recorded {
    fn situation(&self) -> Situation {
        let lines: Vec<Vec<u8>> = self.history.iter().map(line).collect();
        let history = History::parse(&lines.join(&b'\n'));
        assert_eq!(history.skipped, 0, "{}", self.what);
        Situation {
            now: NOW,
            history: history.snapshots,
            environment: self.environment.clone(),
            guard: self.guard.clone(),
        }
    }
}

fn line(differs: &Map<String, Value>) -> Vec<u8> {
    let mut line = json!({
        "schema_version": 3, "routed": 0, "route_events": 2, "recovery_events": 2, "quota_changes": 0,
        "quota": 400.0, "cpu_psi_some_avg10": 0.02, "router_runqueue_delay_ms": 3.0, "heavy_cpu_pct": 0.0,
        "heavy_throttle_ratio": 0.0, "guarded_cpu_pct": 5.0, "unmanaged_cpu_pct": 20.0, "top_cpu": []
    });
    let object = line.as_object_mut().expect("an object");
    for (key, value) in differs {
        if key == "minutes_ago" {
            let ago = value.as_u64().expect("whole minutes") * 60;
            object.insert("ts".to_owned(), json!(NOW - ago));
        } else {
            object.insert(key.clone(), value.clone());
        }
    }
    serde_json::to_vec(&line).expect("JSON")
}

fn check(name: &str, text: &str) {
    let recorded: Recorded =
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}"));
    let diagnosis = diagnose(&recorded.situation());
    let found: Vec<String> = diagnosis
        .findings
        .iter()
        .map(|finding| format!("{} {}", finding.severity.as_str(), finding.id))
        .collect();
    assert_eq!(found, recorded.expect.findings, "{name}: {diagnosis:#?}");
    assert_eq!(
        diagnosis.pressure.level.as_str(),
        recorded.expect.pressure,
        "{name}: {diagnosis:#?}"
    );
    let lines = |finding: &Finding| {
        let mut lines = finding.evidence.clone();
        lines.extend([finding.title.clone(), finding.next.clone()]);
        lines
    };
    for (id, says) in &recorded.expect.says {
        let all = match id.as_str() {
            "pressure" => vec![diagnosis.pressure.words.clone()],
            id => diagnosis
                .findings
                .iter()
                .filter(|finding| finding.id == id)
                .flat_map(lines)
                .collect(),
        };
        assert!(
            all.iter().any(|line| line.contains(says)),
            "{name}: {id} does not say {says:?}: {all:#?}"
        );
    }
    for never in &recorded.expect.never {
        for finding in &diagnosis.findings {
            assert!(
                !lines(finding).iter().any(|line| line.contains(never)),
                "{name}: {finding:#?} says {never:?}"
            );
        }
    }
    for finding in &diagnosis.findings {
        assert!(
            !finding.next.is_empty(),
            "{name}: {finding:#?} says what to do"
        );
        let evident =
            !finding.evidence.is_empty() || matches!(finding.id, "paused" | "nothing-watched");
        assert!(evident, "{name}: {finding:#?} has evidence");
    }
}

macro_rules! situations {
    ($($name:ident),+ $(,)?) => {
        $(
            #[test]
            fn $name() {
                check(stringify!($name), include_str!(concat!("situations/", stringify!($name), ".json")));
            }
        )+

        #[test]
        fn every_recorded_situation_is_asserted() {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/diagnose/situations");
            let mut files: Vec<String> = std::fs::read_dir(folder)
                .expect("a folder")
                .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
                .collect();
            files.sort();
            let mut named = vec![$(concat!(stringify!($name), ".json").to_owned()),+];
            named.sort();
            assert_eq!(files, named);
        }
    };
}

situations! {
    a_quiet_hour,
    a_single_old_spike,
    a_single_spike_right_now,
    high_for_a_quarter_of_the_hour,
    high_in_the_newest_readings,
    high_long_ago_twice,
    no_psi,
    an_older_history_without_a_delay,
    nothing_known_yet,
    builds_in_docker_and_nix,
    another_user_and_a_login_session,
    own_work_in_app_slice_not_watched,
    own_work_watched_and_not_routed,
    heavy_throttled_while_cpu_is_free,
    heavy_throttled_under_pressure,
    heavy_throttled_on_an_old_kernel,
    protected_held_up_by_its_own_budget,
    quota_at_its_minimum,
    the_guard_waited_for_a_cpu,
    no_controller_and_a_degraded_guard,
    sched_ext_and_competing_tools,
    the_python_original_runs_too,
    hybrid_and_an_old_systemd,
    paused_with_nothing_watched,
    a_guard_that_keeps_starting,
    moves_that_fail,
    a_disk_that_is_full,
}

#[test]
fn attribution_tells_what_was_used_while_pressure_was_high_and_names_no_cause() {
    let text = include_str!("situations/high_for_a_quarter_of_the_hour.json");
    let recorded: Recorded = serde_json::from_str(text).expect("a situation");
    let diagnosis = diagnose(&recorded.situation());
    let who: Vec<&str> = diagnosis
        .attribution
        .iter()
        .map(|share| share.who)
        .collect();
    assert_eq!(who, ["heavy", "other classes", "outside"]);
    let heavy = &diagnosis.attribution[0];
    assert_eq!(heavy.cpu_pct_while_high, Some(390.0));
    assert!(heavy.cpu_pct < 390.0);
    let quiet: Recorded =
        serde_json::from_str(include_str!("situations/a_quiet_hour.json")).expect("a situation");
    assert!(
        diagnose(&quiet.situation())
            .attribution
            .iter()
            .all(|share| share.cpu_pct_while_high.is_none())
    );
}
