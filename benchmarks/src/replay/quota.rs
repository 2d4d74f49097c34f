//! The quota controllers over their traces.

use std::fmt::Write;

use guard_policy::quota::{QuotaSettings, Replayed, replay, traces};

/// A row for each decision of each policy over each trace.
pub fn table() -> String {
    let settings = QuotaSettings::default();
    let interval = settings.interval.as_secs();
    let mut text = format!(
        "# again: cargo xtask replay quota\n\
         # {}% to {}%, step {}, a decision every {interval} s, {} s between changes (for every policy, also those\n\
         # whose proposals nothing carries out). Nothing in a trace answers to the quota: this shows how policies\n\
         # move, not which is best on a machine. The protected policy takes the trace's pressure for the protected side's.\n",
        settings.min,
        settings.max,
        settings.step,
        settings.dwell.as_secs()
    );
    text.push_str("trace\tpolicy\ttime_s\tpressure\tdelay_ms\tdemand\tthrottled\tquota_before\tquota\tdecision\n");
    for trace in traces() {
        for &policy in Replayed::ALL {
            let mut before = trace.start;
            let path = replay(&trace, policy, &settings);
            for (n, (point, (quota, words))) in trace.points.iter().zip(path).enumerate() {
                writeln!(
                    text,
                    "{}\t{}\t{}\t{}\t{}\t{}\t{}\t{before}\t{quota}\t{words}",
                    trace.name,
                    policy.as_str(),
                    n as u64 * interval,
                    cell(point.pressure),
                    cell(point.delay_ms),
                    point.demand,
                    point.throttled,
                )
                .expect("a String takes any text");
                before = quota;
            }
        }
    }
    text
}

fn cell(value: Option<f64>) -> String {
    value.map_or("none".to_owned(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_of_every_trace_is_there_for_every_policy() {
        let text = table();
        let rows: Vec<Vec<&str>> = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .map(|line| line.split('\t').collect())
            .collect();
        assert!(rows.iter().all(|row| row.len() == rows[0].len()));
        let points: usize = traces().iter().map(|trace| trace.points.len()).sum();
        assert_eq!(rows.len(), 1 + points * Replayed::ALL.len());
        // The seed's table: 300% falls to 100% under pressure.
        let floor = rows
            .iter()
            .find(|row| row[0] == "pressure_to_recovery" && row[1] == "step" && row[2] == "30");
        assert_eq!(floor.map(|row| row[8]), Some("100"));
    }
}
