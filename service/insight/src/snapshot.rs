//! One snapshot: a line of `history.jsonl`, schema 3.
//!
//! Lines of the Python original are read too. Those lack `schema_version` or `top_cpu`, and may hold a
//! delay under a key of their own, which measured something else: it is left out, as every key that this
//! version does not know.

use serde::Serialize;
use serde_json::{Map, Value};

/// Of the lines that are written.
pub const SCHEMA_VERSION: u64 = 3;

/// Consumers in a line.
pub const TOP: usize = 5;

/// A line of the history. CPU is in percent of one logical CPU; what could not be measured is none.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Snapshot {
    /// 3; lines of the first version have none, and count as 1.
    pub schema_version: u64,
    /// Seconds since 1970.
    pub ts: u64,
    /// Workloads that are routed now.
    pub routed: u64,
    /// Routes since the guard started.
    pub route_events: u64,
    /// Recoveries since then.
    pub recovery_events: u64,
    /// Changes of the heavy slice's quota since then.
    pub quota_changes: u64,
    /// The heavy slice's quota; none for no limit.
    pub quota: Option<f64>,
    /// CPU pressure of the machine (`some avg10`), 0 to 1.
    pub cpu_psi_some_avg10: Option<f64>,
    /// How long the guard's own thread waited for a CPU since the snapshot before. Not the host's.
    pub router_runqueue_delay_ms: Option<f64>,
    /// CPU of the heavy slice since the snapshot before.
    pub heavy_cpu_pct: Option<f64>,
    /// Part of its periods in which its quota held it up, 0 to 1.
    pub heavy_throttle_ratio: Option<f64>,
    /// CPU of all slices of the guard's classes.
    pub guarded_cpu_pct: Option<f64>,
    /// CPU of everything else on the machine.
    pub unmanaged_cpu_pct: Option<f64>,
    /// Who used most, the greatest first.
    pub top_cpu: Vec<Consumer>,
}

/// A process and what it used since the snapshot before.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Consumer {
    /// Its PID.
    pub pid: u32,
    /// Its command line, printable and cut.
    pub command: String,
    /// Its CPU.
    pub cpu_pct: f64,
    /// `protected`, `heavy` (the slice of any other class) or `unmanaged`.
    pub class: String,
    /// Its control group, from the mount.
    pub cgroup: String,
}

impl Snapshot {
    /// A line, read. None when it is not a snapshot of any version.
    pub fn parse(line: &[u8]) -> Option<Snapshot> {
        Snapshot::from_json(&serde_json::from_slice(line).ok()?)
    }

    /// The same of an object.
    pub fn from_json(line: &Value) -> Option<Snapshot> {
        let line = line.as_object()?;
        let count = |key| number(line, key).map_or(0, whole);
        let part = |key| number(line, key).filter(|part| *part <= 1.0);
        Some(Snapshot {
            schema_version: number(line, "schema_version").map_or(1, whole),
            ts: number(line, "ts").map(whole)?,
            routed: count("routed"),
            route_events: count("route_events"),
            recovery_events: count("recovery_events"),
            quota_changes: count("quota_changes"),
            quota: number(line, "quota"),
            cpu_psi_some_avg10: part("cpu_psi_some_avg10"),
            router_runqueue_delay_ms: number(line, "router_runqueue_delay_ms"),
            heavy_cpu_pct: number(line, "heavy_cpu_pct"),
            heavy_throttle_ratio: part("heavy_throttle_ratio"),
            guarded_cpu_pct: number(line, "guarded_cpu_pct"),
            unmanaged_cpu_pct: number(line, "unmanaged_cpu_pct"),
            top_cpu: match line.get("top_cpu") {
                Some(Value::Array(rows)) => rows.iter().filter_map(Consumer::parse).collect(),
                _ => Vec::new(),
            },
        })
    }

    /// As a line, with its newline: schema 3, with rounded numbers.
    pub fn line(&self) -> Vec<u8> {
        let mut rounded = self.clone();
        rounded.schema_version = SCHEMA_VERSION;
        for value in [
            &mut rounded.quota,
            &mut rounded.cpu_psi_some_avg10,
            &mut rounded.router_runqueue_delay_ms,
            &mut rounded.heavy_cpu_pct,
            &mut rounded.heavy_throttle_ratio,
            &mut rounded.guarded_cpu_pct,
            &mut rounded.unmanaged_cpu_pct,
        ] {
            *value = value.map(round);
        }
        for consumer in &mut rounded.top_cpu {
            consumer.cpu_pct = round(consumer.cpu_pct);
        }
        let mut line = serde_json::to_vec(&rounded).expect("plain data can be written as JSON");
        line.push(b'\n');
        line
    }
}

impl Consumer {
    fn parse(row: &Value) -> Option<Consumer> {
        let row = row.as_object()?;
        let text = |key| Some(row.get(key)?.as_str()?.to_owned());
        Some(Consumer {
            pid: number(row, "pid").map(|pid| pid as u32)?,
            command: text("command").unwrap_or_default(),
            cpu_pct: number(row, "cpu_pct")?,
            class: text("class").unwrap_or_default(),
            cgroup: text("cgroup").unwrap_or_default(),
        })
    }
}

/// A measure or a counter: never negative, and finite, since JSON knows no other.
fn number(object: &Map<String, Value>, key: &str) -> Option<f64> {
    object.get(key)?.as_f64().filter(|number| *number >= 0.0)
}

fn whole(number: f64) -> u64 {
    number as u64
}

fn round(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A quiet one.
    pub(crate) fn at(ts: u64) -> Snapshot {
        Snapshot {
            schema_version: 3,
            ts,
            routed: 0,
            route_events: 0,
            recovery_events: 0,
            quota_changes: 0,
            quota: Some(400.0),
            cpu_psi_some_avg10: Some(0.02),
            router_runqueue_delay_ms: Some(1.5),
            heavy_cpu_pct: Some(0.0),
            heavy_throttle_ratio: Some(0.0),
            guarded_cpu_pct: Some(3.0),
            unmanaged_cpu_pct: Some(20.0),
            top_cpu: Vec::new(),
        }
    }

    #[test]
    fn a_line_has_the_keys_of_schema_3_and_no_other() {
        let mut snapshot = at(1_700_000_000);
        snapshot.quota = None;
        snapshot.heavy_cpu_pct = Some(12.345_678);
        snapshot.top_cpu.push(Consumer {
            pid: 7,
            command: "make -j8".into(),
            cpu_pct: 88.0,
            class: "heavy".into(),
            cgroup: "/a/heavy-workload.slice/b.scope".into(),
        });
        let line = String::from_utf8(snapshot.line()).expect("text");
        assert_eq!(
            line,
            concat!(
                r#"{"schema_version":3,"ts":1700000000,"routed":0,"route_events":0,"recovery_events":0,"quota_changes":0,"#,
                r#""quota":null,"cpu_psi_some_avg10":0.02,"router_runqueue_delay_ms":1.5,"heavy_cpu_pct":12.346,"#,
                r#""heavy_throttle_ratio":0.0,"guarded_cpu_pct":3.0,"unmanaged_cpu_pct":20.0,"#,
                r#""top_cpu":[{"pid":7,"command":"make -j8","cpu_pct":88.0,"class":"heavy","cgroup":"/a/heavy-workload.slice/b.scope"}]}"#,
                "\n"
            )
        );
        snapshot.heavy_cpu_pct = Some(12.346);
        assert_eq!(Snapshot::parse(line.as_bytes()), Some(snapshot));
    }

    #[test]
    fn the_originals_lines_are_read_and_their_delay_is_not_taken_for_ours() {
        let line = br#"{"ts": 1700000000.75, "routed": 2, "route_events": 5, "recovery_events": 3, "quota_changes": 1, "quota": 300,
            "cpu_psi_some_avg10": 0.25, "sched_delay_ms": 4000.0, "heavy_cpu_pct": 150.5, "heavy_throttle_ratio": 0.1,
            "guarded_cpu_pct": 180, "unmanaged_cpu_pct": 40, "a_key_of_the_future": {"x": [1]}}"#;
        let read = Snapshot::parse(line).expect("a snapshot");
        assert_eq!((read.schema_version, read.ts), (1, 1_700_000_000));
        assert_eq!(
            (read.routed, read.route_events, read.quota),
            (2, 5, Some(300.0))
        );
        assert_eq!(read.router_runqueue_delay_ms, None);
        assert!(read.top_cpu.is_empty());
    }

    #[test]
    fn a_value_that_cannot_be_is_unknown_and_the_rest_counts() {
        let line = br#"{"ts": 5, "cpu_psi_some_avg10": 40, "quota": "400", "heavy_cpu_pct": -3, "route_events": null,
            "top_cpu": [{"pid": 1, "cpu_pct": 2.0}, 7, {"pid": "x", "cpu_pct": 1}]}"#;
        let read = Snapshot::parse(line).expect("a snapshot");
        assert_eq!(
            (read.cpu_psi_some_avg10, read.quota, read.heavy_cpu_pct),
            (None, None, None)
        );
        assert_eq!((read.route_events, read.top_cpu.len()), (0, 1));
        for line in [
            "",
            "{}",
            "[]",
            "7",
            r#"{"ts":"x"}"#,
            r#"{"ts":5,"#,
            r#"{"ts":NaN}"#,
        ] {
            assert_eq!(Snapshot::parse(line.as_bytes()), None, "{line}");
        }
    }
}
