use workload_guard_dbus::names::workload_path;
use workload_guard_dbus::types::{ClassRow, WatchedRow};

use super::*;

const MANAGER: &str = "/user.slice/user-1000.slice/user@1000.service";
const NOW: u64 = 1_800_000_000_000_000;

fn plain(width: Option<usize>) -> Style {
    Style {
        width,
        colour: false,
        now_usec: NOW,
    }
}

/// A guard with one workload.
pub fn busy() -> Status {
    Status {
        version: "0.1.0".into(),
        state: "degraded".into(),
        state_reasons: vec!["the user manager has no cpu controller: budgets do not hold".into()],
        capabilities: vec!["pidfds".into()],
        exec_events: "active".into(),
        exec_events_lost: 0,
        interval: "2".into(),
        classes: vec![
            ClassRow {
                name: "heavy".into(),
                slice: "heavy-workload.slice".into(),
                quota: 400,
                weight: 100,
                memory_high: 0,
                io_weight: 0,
                tasks_max: 0,
                from_settings: vec![],
            },
            ClassRow {
                name: "protected".into(),
                slice: "protected-workload.slice".into(),
                quota: 0,
                weight: 0,
                memory_high: 0,
                io_weight: 0,
                tasks_max: 0,
                from_settings: vec![],
            },
        ],
        watched: vec![WatchedRow {
            unit: "app.slice".into(),
            processes: 12,
        }],
        holds: vec![],
        workloads: vec![WorkloadRow {
            path: workload_path("lwg-heavy-routed-4242-99.scope"),
            pid: 4242,
            class: "heavy".into(),
            reason: "known-heavy".into(),
            cpu: 98.74,
            source: format!("{MANAGER}/app.slice/app-term-1.scope"),
            control_group: format!(
                "{MANAGER}/heavy.slice/heavy-workload.slice/lwg-heavy-routed-4242-99.scope"
            ),
            command: "make -j8".into(),
            since: NOW - 12_000_000,
            throttled: 0,
        }],
        routed: 3,
        recovered: 2,
        failed: 1,
    }
}

fn idle() -> Status {
    Status {
        state: "normal".into(),
        state_reasons: vec![],
        watched: vec![WatchedRow {
            unit: "protected-workload.slice".into(),
            processes: 0,
        }],
        workloads: vec![],
        ..busy()
    }
}

#[test]
fn a_pipe_gets_one_whole_row_per_workload() {
    assert_eq!(
        text(&busy(), &plain(None)),
        "\
workload-guard 0.1.0: degraded
  - the user manager has no cpu controller: budgets do not hold

CLASS      QUOTA  WEIGHT  WORKLOADS  SLICE
heavy       400%     100          1  heavy-workload.slice
protected   none    none          0  protected-workload.slice

WATCHED    PROCESSES
app.slice         12
new programs are seen by: exec events

 PID    CPU  CLASS  REASON       SINCE  SOURCE                      CONTROL GROUP                                                    COMMAND
4242  98.7%  heavy  known-heavy   12 s  app.slice/app-term-1.scope  heavy.slice/heavy-workload.slice/lwg-heavy-routed-4242-99.scope  make -j8

since the guard started: 3 routed, 2 recovered, 1 failed
"
    );
}

#[test]
fn a_narrow_terminal_gets_the_control_groups_below_each_workload() {
    let text = text(&busy(), &plain(Some(60)));
    assert!(text.contains(
        "4242  98.7%  heavy  known-heavy   12 s  make -j8\n  from app.slice/app-term-1.scope\n  in   …/heavy-workload.slice/lwg-heavy-routed-4242-99.scope\n"
    ), "{text}");
    let table = text.lines().filter(|line| !line.starts_with("  - "));
    assert!(
        table.into_iter().all(|line| line.chars().count() <= 60),
        "{text}"
    );
}

#[test]
fn an_empty_watched_slice_is_told_with_both_ways_out() {
    let text = text(&idle(), &plain(Some(80)));
    assert!(
        text.contains("Nothing runs in protected-workload.slice"),
        "{text}"
    );
    assert!(text.contains("workload-guard protect CMD"), "{text}");
    assert!(text.contains("workload-guard watch app.slice"), "{text}");
    assert!(text.contains("no workloads"), "{text}");
    assert!(!super::text(&busy(), &plain(None)).contains("ways out"));
}

#[test]
fn by_what_new_programs_are_seen_is_told_with_the_reason() {
    let line = |exec_events: &str, exec_events_lost| {
        let status = Status {
            exec_events: exec_events.into(),
            exec_events_lost,
            ..idle()
        };
        new_programs(&status)
    };
    assert!(line("active", 7).contains("exec events (7 were too many"));
    assert_eq!(
        line("a container", 0),
        "new programs are seen by: samples every 2 s (a container)"
    );
}

#[test]
fn a_class_of_ones_own_shows_all_of_its_budget_and_who_set_it() {
    let mut status = idle();
    status.classes.push(ClassRow {
        name: "inference".into(),
        slice: "inference.slice".into(),
        quota: 300,
        weight: 50,
        memory_high: 3 << 29,
        io_weight: 0,
        tasks_max: 512,
        from_settings: vec!["quota".into(), "memory_high".into()],
    });
    let text = text(&status, &plain(None));
    let lines: Vec<&str> = text
        .lines()
        .skip_while(|line| !line.starts_with("CLASS"))
        .collect();
    assert_eq!(
        lines[..4],
        [
            "CLASS      QUOTA  WEIGHT  WORKLOADS  SLICE                     MEMORY  TASKS  SET BY",
            "heavy       400%     100          0  heavy-workload.slice      none    none   unit file",
            "protected   none    none          0  protected-workload.slice  none    none   unit file",
            "inference   300%      50          0  inference.slice           1.5G    512    settings (quota, memory_high)",
        ]
    );
}

#[test]
fn colour_only_where_it_is_welcome() {
    assert!(!text(&busy(), &plain(Some(80))).contains('\x1b'));
    let coloured = Style {
        colour: true,
        ..plain(Some(80))
    };
    assert!(text(&busy(), &coloured).contains("\x1b[33mdegraded\x1b[0m"));
}

#[test]
fn the_json_keys_are_those_of_the_help() {
    let value: serde_json::Value = serde_json::from_str(&json(&busy())).unwrap();
    assert_eq!(
        value,
        serde_json::json!({
            "version": "0.1.0",
            "state": "degraded",
            "state_reasons": ["the user manager has no cpu controller: budgets do not hold"],
            "capabilities": ["pidfds"],
            "exec_events": "active",
            "exec_events_lost": 0,
            "classes": [
                {"name": "heavy", "slice": "heavy-workload.slice", "quota": 400, "weight": 100,
                 "memory_high": 0, "io_weight": 0, "tasks_max": 0, "from_settings": []},
                {"name": "protected", "slice": "protected-workload.slice", "quota": 0, "weight": 0,
                 "memory_high": 0, "io_weight": 0, "tasks_max": 0, "from_settings": []},
            ],
            "watched": [{"unit": "app.slice", "processes": 12}],
            "holds": [],
            "workloads": [{
                "path": "/org/workloadguard/Guard1/workload/lwg_2dheavy_2drouted_2d4242_2d99_2escope",
                "pid": 4242,
                "class": "heavy",
                "reason": "known-heavy",
                "cpu": 98.74,
                "source": "/user.slice/user-1000.slice/user@1000.service/app.slice/app-term-1.scope",
                "control_group": "/user.slice/user-1000.slice/user@1000.service/heavy.slice/heavy-workload.slice/lwg-heavy-routed-4242-99.scope",
                "command": "make -j8",
                "since_usec": NOW - 12_000_000, "throttled_usec": 0,
            }],
            "totals": {"routed": 3, "recovered": 2, "failed": 1},
        })
    );
}

#[test]
fn how_long_a_budget_held_work_up_is_shown_where_it_did() {
    let mut status = busy();
    let style = plain(None);
    assert!(!text(&status, &style).contains("THROTTLED"));
    let mut other = status.workloads[0].clone();
    status.workloads[0].throttled = 12_345_678;
    other.throttled = UNKNOWN;
    status.workloads.push(other);
    let shown = text(&status, &style);
    assert!(
        shown.contains("THROTTLED") && shown.contains("12.3 s"),
        "{shown}"
    );
    assert!(shown.contains("unknown"), "{shown}");
    let value: serde_json::Value = serde_json::from_str(&json(&status)).unwrap();
    assert_eq!(value["workloads"][0]["throttled_usec"], 12_345_678);
    assert_eq!(
        value["workloads"][1]["throttled_usec"],
        serde_json::Value::Null
    );
}
