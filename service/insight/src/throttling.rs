//! What budgets cost each workload: lines of `throttling.jsonl`, beside the history, whose schema has no place for
//! them. A line holds a workload's counter as it was; growth is counted between two lines of the same scope, so that
//! neither a restart of the guard nor a lost line changes the sum.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use crate::history::lines;

/// Rows in a summary.
const ROWS: usize = 10;

/// A line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Throttled {
    /// Seconds since 1970.
    pub ts: u64,
    /// The workload's scope.
    pub unit: String,
    /// Its class.
    pub class: String,
    /// Its command line, printable and cut.
    pub command: String,
    /// When it was moved there, in seconds since 1970.
    pub since: u64,
    /// How long its budget held it up since it was made, over all CPUs, in microseconds; none where the kernel
    /// does not tell.
    pub throttled_usec: Option<u64>,
}

/// What budgets cost the workloads of one command in one class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cost {
    /// Their command line.
    pub command: String,
    /// Their class.
    pub class: String,
    /// How many there were.
    pub workloads: u64,
    /// For how many seconds they were held up, over all CPUs; none where the kernel told of none.
    pub throttled_sec: Option<f64>,
}

impl Throttled {
    /// As a line, with its newline.
    pub fn line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).expect("plain data can be written as JSON");
        line.push(b'\n');
        line
    }
}

/// Reads each line that can be read.
pub fn parse(text: &[u8]) -> Vec<Throttled> {
    lines(text)
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect()
}

#[derive(Default)]
struct Sum<'a> {
    units: BTreeSet<&'a str>,
    usec: Option<u64>,
}

/// Adds up the lines (in the file's order) of the `window_sec` seconds before `now`: who was held up most comes
/// first, who is not known last.
pub fn costs(lines: &[Throttled], now: u64, window_sec: u64) -> Vec<Cost> {
    let begin = now.saturating_sub(window_sec);
    let mut before: HashMap<&str, u64> = HashMap::new();
    // By class and command.
    let mut found: BTreeMap<(&str, &str), Sum<'_>> = BTreeMap::new();
    let mut clock = 0;
    for line in lines {
        // A time that has not come is a clock's that ran ahead: it counts as that of the line before.
        let ts = if line.ts <= now { line.ts } else { clock };
        clock = ts;
        let last = before.get(line.unit.as_str()).copied();
        if let Some(usec) = line.throttled_usec {
            before.insert(&line.unit, usec);
        }
        if ts <= begin {
            continue;
        }
        let sum = found.entry((&line.class, &line.command)).or_default();
        sum.units.insert(&line.unit);
        let Some(usec) = line.throttled_usec else {
            continue;
        };
        let grown = match last {
            // A scope of the same name that was made anew counts from nothing.
            Some(last) => usec.checked_sub(last).unwrap_or(usec),
            None if line.since > begin => usec,
            // What it had before the stretch began is on no line: its growth is counted from here.
            None => 0,
        };
        sum.usec = Some(sum.usec.unwrap_or(0).saturating_add(grown));
    }
    let mut rows: Vec<Cost> = found
        .into_iter()
        .map(|((class, command), sum)| Cost {
            command: command.to_owned(),
            class: class.to_owned(),
            workloads: sum.units.len() as u64,
            throttled_sec: sum.usec.map(|usec| usec as f64 / 1e6),
        })
        .collect();
    rows.sort_by(|a, b| {
        let of = |cost: &Cost| cost.throttled_sec.unwrap_or(-1.0);
        of(b).total_cmp(&of(a))
    });
    rows.truncate(ROWS);
    rows
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn line(ts: u64, unit: &str, command: &str, throttled_usec: Option<u64>) -> Throttled {
        Throttled {
            ts,
            unit: unit.into(),
            class: "heavy".into(),
            command: command.into(),
            since: 900,
            throttled_usec,
        }
    }

    fn told(lines: &[Throttled], now: u64, window: u64) -> Vec<(String, u64, Option<f64>)> {
        costs(lines, now, window)
            .into_iter()
            .map(|cost| (cost.command, cost.workloads, cost.throttled_sec))
            .collect()
    }

    #[test]
    fn a_line_comes_back_and_a_torn_one_takes_no_other_with_it() {
        let one = line(1000, "a.scope", "make -j8", Some(7));
        let mut text = one.line();
        text.extend(b"{\"ts\": 5, \"unit\n");
        text.extend(one.line());
        assert_eq!(parse(&text), [one.clone(), one]);
    }

    #[test]
    fn growth_is_counted_between_lines_whoever_wrote_them() {
        let lines = [
            line(1000, "a.scope", "make", Some(2_000_000)),
            line(1000, "b.scope", "make", Some(0)),
            line(1300, "a.scope", "make", Some(5_000_000)),
            line(1300, "c.scope", "old kernel", None),
            // The next guard tells of it again.
            line(1320, "a.scope", "make", Some(5_000_000)),
            line(1600, "b.scope", "make", Some(1_000_000)),
        ];
        assert_eq!(
            told(&lines, 1600, 1000),
            [
                ("make".into(), 2, Some(6.0)),
                ("old kernel".into(), 1, None)
            ]
        );
        // From the line before the stretch on.
        assert_eq!(
            told(&lines, 1600, 500),
            [
                ("make".into(), 2, Some(4.0)),
                ("old kernel".into(), 1, None)
            ]
        );
        assert_eq!(
            told(&lines[2..], 1600, 500),
            [
                ("make".into(), 2, Some(0.0)),
                ("old kernel".into(), 1, None)
            ]
        );
    }

    #[test]
    fn a_scope_that_is_made_anew_does_not_go_negative() {
        let lines = [
            line(1000, "a.scope", "make", Some(9_000_000)),
            line(1300, "a.scope", "make", Some(1_000_000)),
        ];
        assert_eq!(told(&lines, 1400, 1000), [("make".into(), 1, Some(10.0))]);
    }

    #[test]
    fn a_clock_that_ran_ahead_loses_nothing() {
        let lines = [
            line(1000, "a.scope", "make", Some(1_000_000)),
            line(99_000_000, "a.scope", "make", Some(3_000_000)),
            line(1300, "a.scope", "make", Some(4_000_000)),
        ];
        assert_eq!(told(&lines, 1400, 1000), [("make".into(), 1, Some(4.0))]);
    }

    proptest! {
        #[test]
        fn any_counters_add_up_to_what_can_be(
            usec in proptest::collection::vec(proptest::option::of(any::<u64>()), 0..40),
        ) {
            let lines: Vec<Throttled> = usec
                .iter()
                .enumerate()
                .map(|(at, usec)| line(1000 + at as u64, if at % 3 == 0 { "a" } else { "b" }, "x", *usec))
                .collect();
            for cost in costs(&lines, 2000, 1500) {
                prop_assert!(cost.throttled_sec.is_none_or(|sec| sec >= 0.0 && sec.is_finite()));
            }
        }
    }
}
