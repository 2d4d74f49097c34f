//! From trials to rows, a summary and a plot. Pure.

use std::fmt::Write;

use super::super::plot::{self, Colour, Mark, Panel, X};
use super::super::session::CpuStat;
use super::super::stats::{deviation, mean, median};
use super::super::table::cell;
use crate::machine::Machine;

/// Of the TSV.
pub const COLUMNS: &[&str] = &[
    "trial",
    "round",
    "quota_pct",
    "enforced_pct",
    "workers",
    "iterations",
    "elapsed_s",
    "cpu_s",
    "nr_periods",
    "nr_throttled",
    "throttled_s",
    "psi_some_avg10",
    "psi_some_avg60",
    "trial_valid",
    "validity_reason",
];

/// One run of the workers.
#[derive(Clone, Debug)]
pub struct Trial {
    /// From 1.
    pub round: u32,
    /// That was asked for, in percent of one logical CPU.
    pub quota: u32,
    /// By `cpu.max`.
    pub enforced: f64,
    /// Processes.
    pub workers: u32,
    /// Iterations of each.
    pub work: u64,
    /// Of all workers together.
    pub elapsed_s: f64,
    /// Of the slice, in the trial.
    pub stat: CpuStat,
    /// The host's pressure at the end, in percent.
    pub psi_avg10: Option<f64>,
    /// Likewise, of a minute.
    pub psi_avg60: Option<f64>,
    /// Why it does not count; empty when it does.
    pub invalid: String,
}

impl Trial {
    /// Its row.
    pub fn cells(&self, number: usize) -> Vec<String> {
        vec![
            number.to_string(),
            self.round.to_string(),
            self.quota.to_string(),
            format!("{:.1}", self.enforced),
            self.workers.to_string(),
            self.work.to_string(),
            format!("{:.3}", self.elapsed_s),
            format!("{:.3}", self.stat.usage_usec as f64 / 1e6),
            self.stat.periods.to_string(),
            self.stat.throttled.to_string(),
            format!("{:.3}", self.stat.throttled_usec as f64 / 1e6),
            cell(self.psi_avg10),
            cell(self.psi_avg60),
            self.invalid.is_empty().to_string(),
            self.invalid.clone(),
        ]
    }
}

/// The quotas in order, each with its trials.
fn by_quota(trials: &[Trial]) -> Vec<(u32, Vec<&Trial>)> {
    let mut quotas: Vec<u32> = trials.iter().map(|trial| trial.quota).collect();
    quotas.sort_unstable();
    quotas.dedup();
    quotas
        .into_iter()
        .map(|quota| {
            let of = trials.iter().filter(|trial| trial.quota == quota);
            (quota, of.collect())
        })
        .collect()
}

fn elapsed(trials: &[&Trial]) -> Vec<f64> {
    trials.iter().map(|trial| trial.elapsed_s).collect()
}

/// For people: every quota, also those that do not count, which say so.
pub fn summary(trials: &[Trial], cpus: usize) -> String {
    let groups = by_quota(trials);
    let first = groups.first().and_then(|(_, of)| mean(&elapsed(of)));
    let least = groups.first().map_or(0, |(quota, _)| *quota);
    let mut text = format!(
        "quota   runs     mean s       sd   median      min      max     cv  throttled  speedup over {least} %\n"
    );
    for (quota, of) in &groups {
        let seconds = elapsed(of);
        let (Some(mean), Some(median)) = (mean(&seconds), median(&seconds)) else {
            continue;
        };
        let sd = deviation(&seconds);
        let least = seconds.iter().copied().fold(f64::INFINITY, f64::min);
        let most = seconds.iter().copied().fold(0.0, f64::max);
        let periods: u64 = of.iter().map(|trial| trial.stat.periods).sum();
        let throttled: u64 = of.iter().map(|trial| trial.stat.throttled).sum();
        let share = throttled as f64 / periods.max(1) as f64 * 100.0;
        let wrong: Vec<&str> = of
            .iter()
            .map(|trial| trial.invalid.as_str())
            .filter(|why| !why.is_empty())
            .collect();
        let note = match wrong.first() {
            None => String::new(),
            Some(why) => format!("  {} of {} do not count: {why}", wrong.len(), of.len()),
        };
        let _ = writeln!(
            text,
            "{quota:4} % {:5} {mean:10.3} {:>8} {median:8.3} {least:8.3} {most:8.3} {:>6} {share:8.1} %  {:.2}x{note}",
            of.len(),
            sd.map_or("-".to_owned(), |sd| format!("{sd:.3}")),
            sd.map_or("-".to_owned(), |sd| format!("{:.1}%", sd / mean * 100.0)),
            first.unwrap_or(mean) / mean,
        );
    }
    let _ = writeln!(
        text,
        "throttled: nr_throttled of nr_periods, pooled; sd: of the sample; this machine has {cpus} CPUs"
    );
    text
}

/// Every trial, the means with their deviation, and what a quota that is all used would take.
pub fn plot(trials: &[Trial], machine: &Machine, cpus: usize) -> String {
    let groups = by_quota(trials);
    let colour = |trial: &Trial| match trial.invalid.is_empty() {
        true => Colour::Blue,
        false => Colour::Grey,
    };
    let mut marks = Vec::new();
    let means: Vec<(f64, f64)> = groups
        .iter()
        .filter_map(|(quota, of)| Some((f64::from(*quota), mean(&elapsed(of))?)))
        .collect();
    if let Some((quota, seconds)) = means.first() {
        let ideal = means.iter().map(|(at, _)| (*at, seconds * quota / at));
        marks.push(Mark::Line(ideal.collect(), Colour::Grey, true));
    }
    marks.push(Mark::Line(means.clone(), Colour::Blue, false));
    for ((_, of), (at, mean)) in groups.iter().zip(&means) {
        if let Some(sd) = deviation(&elapsed(of)) {
            marks.push(Mark::Spread(
                *at,
                (mean - sd).max(0.0),
                mean + sd,
                Colour::Blue,
            ));
        }
        for trial in of {
            marks.push(Mark::Dot(*at, trial.elapsed_s, colour(trial)));
        }
    }
    let (from, to) = match (groups.first(), groups.last()) {
        (Some((from, _)), Some((to, _))) if from != to => (f64::from(*from), f64::from(*to)),
        (Some((only, _)), _) => (f64::from(*only) - 50.0, f64::from(*only) + 50.0),
        _ => (0.0, 100.0),
    };
    let work = trials.first();
    let panel = Panel {
        title: format!(
            "{} workers × {} iterations",
            work.map_or(0, |trial| trial.workers),
            work.map_or(0, |trial| trial.work)
        ),
        x_label: "quota of the heavy slice, % of one logical CPU".to_owned(),
        y_label: "elapsed, s".to_owned(),
        x: X::Numbers(from, to, 50.0),
        marks,
    };
    plot::svg(
        "Fixed work under a static quota",
        &[panel],
        &[
            ("trial; line: mean ± sd", Colour::Blue),
            ("does not count; dashed: ideal", Colour::Grey),
        ],
        &format!("{}, {} CPUs, {}", machine.cpu, cpus, machine.date),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    pub fn trial(quota: u32, elapsed_s: f64, invalid: &str) -> Trial {
        Trial {
            round: 1,
            quota,
            enforced: f64::from(quota),
            workers: 8,
            work: 1000,
            elapsed_s,
            stat: CpuStat {
                usage_usec: 1_500_000,
                periods: 10,
                throttled: 9,
                throttled_usec: 250_000,
            },
            psi_avg10: Some(12.5),
            psi_avg60: None,
            invalid: invalid.to_owned(),
        }
    }

    #[test]
    fn a_row_has_every_column() {
        let cells = trial(400, 2.0, "asks for more than 2 CPUs").cells(3);
        assert_eq!(cells.len(), COLUMNS.len());
        assert_eq!(
            cells.join("\t"),
            "3\t1\t400\t400.0\t8\t1000\t2.000\t1.500\t10\t9\t0.250\t12.500\t\tfalse\tasks for more than 2 CPUs"
        );
    }

    #[test]
    fn the_summary_has_every_quota_and_says_what_does_not_count() {
        let trials = [
            trial(100, 8.0, ""),
            trial(400, 3.0, "asks for more than 2 CPUs"),
            trial(100, 10.0, ""),
            trial(400, 3.0, "asks for more than 2 CPUs"),
        ];
        let text = summary(&trials, 2);
        let rows: Vec<&str> = text.lines().collect();
        assert!(
            rows[1].contains("9.000") && rows[1].contains("1.414") && rows[1].contains("1.00x"),
            "{text}"
        );
        assert!(
            rows[2].contains("3.00x")
                && rows[2].ends_with("2 of 2 do not count: asks for more than 2 CPUs"),
            "{text}"
        );
    }

    #[test]
    fn the_plot_has_a_dot_for_each_trial() {
        let machine = Machine {
            date: "2000-01-01T00:00Z".to_owned(),
            cpu: "Some CPU".to_owned(),
            cpus: 8,
            kernel: "6.12".to_owned(),
            build: "release",
            load: "0.10".to_owned(),
        };
        let trials = [
            trial(100, 8.0, ""),
            trial(100, 9.0, ""),
            trial(400, 3.0, "x"),
        ];
        let text = plot(&trials, &machine, 2);
        // Two more are the legend's.
        assert_eq!(text.matches("<circle").count(), 5);
        assert_eq!(text.matches("fill-opacity").count(), 3);
    }
}
