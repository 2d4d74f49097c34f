//! From trials to a summary and a plot. Pure.

use std::fmt::Write;

use super::super::plot::{self, Colour, Mark, Panel, X};
use super::super::stats::median;
use super::trial::{Mode, Trial};

/// A figure that is compared, of one trial.
struct Metric {
    name: &'static str,
    of: fn(&Trial) -> Option<f64>,
}

const METRICS: [Metric; 3] = [
    Metric {
        name: "lateness p95",
        of: |trial| trial.lateness[1],
    },
    Metric {
        name: "lateness p99",
        of: |trial| trial.lateness[2],
    },
    Metric {
        name: "work p95",
        of: |trial| trial.work[1],
    },
];

impl Metric {
    /// Of the trials that count.
    fn values(&self, trials: &[Trial], mode: Mode) -> Vec<f64> {
        let counts = |trial: &&Trial| trial.mode == mode && trial.invalid.is_empty();
        trials.iter().filter(counts).filter_map(self.of).collect()
    }

    /// Change of each round whose two trials count, in percent.
    fn paired(&self, trials: &[Trial]) -> Vec<f64> {
        let of = |round: u32, mode: Mode| {
            let found = trials.iter().find(|trial| {
                trial.round == round && trial.mode == mode && trial.invalid.is_empty()
            });
            found.and_then(self.of)
        };
        let rounds = trials.iter().map(|trial| trial.round).max().unwrap_or(0);
        (1..=rounds)
            .filter_map(|round| Some((of(round, Mode::Off)?, of(round, Mode::On)?)))
            .filter(|(off, _)| *off > 0.0)
            .map(|(off, on)| (on / off - 1.0) * 100.0)
            .collect()
    }
}

/// For people: medians of the trials' own figures, with the least and the most.
pub fn summary(trials: &[Trial]) -> String {
    let mut text = String::from(
        "steady state    guard off: median (min to max)    guard on: median (min to max)     change  paired change: median (min to max)\n",
    );
    let spread = |values: &[f64], unit: &str, width: usize| match median(values) {
        Some(middle) => {
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            format!("{middle:.width$}{unit} ({least:.width$} to {most:.width$})")
        }
        None => "-".to_owned(),
    };
    for metric in &METRICS {
        let off = metric.values(trials, Mode::Off);
        let on = metric.values(trials, Mode::On);
        let change = match (median(&off), median(&on)) {
            (Some(off), Some(on)) if off > 0.0 => format!("{:+.1} %", (on / off - 1.0) * 100.0),
            _ => "-".to_owned(),
        };
        let _ = writeln!(
            text,
            "{:14}  {:>32}  {:>31}  {change:>9}  {:>36}",
            metric.name,
            spread(&off, " ms", 3),
            spread(&on, " ms", 3),
            spread(&metric.paired(trials), " %", 1),
        );
    }
    let valid = |mode: Mode| {
        let of: Vec<&Trial> = trials.iter().filter(|trial| trial.mode == mode).collect();
        let count = of.iter().filter(|trial| trial.invalid.is_empty()).count();
        format!("{count} of {} {}", of.len(), mode.as_str())
    };
    let _ = writeln!(
        text,
        "trials that count: {}, {}; a probe's lateness is no measure of an application's",
        valid(Mode::Off),
        valid(Mode::On)
    );
    text
}

/// A panel for each figure: every trial as a dot, and the medians.
pub fn plot(title: &str, trials: &[Trial], note: &str) -> String {
    let modes = [(Mode::Off, Colour::Orange), (Mode::On, Colour::Blue)];
    let panels: Vec<Panel> = METRICS
        .iter()
        .map(|metric| {
            let mut marks = Vec::new();
            for (at, (mode, colour)) in modes.iter().enumerate() {
                let at = at as f64;
                if let Some(middle) = median(&metric.values(trials, *mode)) {
                    marks.push(Mark::Level(at, middle, *colour));
                }
                let of = trials.iter().filter(|trial| trial.mode == *mode);
                let rounds = trials.iter().map(|trial| trial.round).max().unwrap_or(1);
                for trial in of {
                    let Some(value) = (metric.of)(trial) else {
                        continue;
                    };
                    // Side by side in the order of the rounds, so that none hides another.
                    let aside = (f64::from(trial.round) - f64::from(rounds + 1) / 2.0)
                        / f64::from(rounds)
                        * 0.4;
                    let colour = match trial.invalid.is_empty() {
                        true => *colour,
                        false => Colour::Grey,
                    };
                    marks.push(Mark::Dot(at + aside, value, colour));
                }
            }
            Panel {
                title: format!("probe {}", metric.name),
                x_label: "the guard".to_owned(),
                y_label: "ms".to_owned(),
                x: X::Names(vec!["off".to_owned(), "on".to_owned()]),
                marks,
            }
        })
        .collect();
    plot::svg(
        title,
        &panels,
        &[
            ("guard off; line: median", Colour::Orange),
            ("guard on", Colour::Blue),
            ("does not count", Colour::Grey),
        ],
        note,
    )
}

#[cfg(test)]
mod tests {
    use super::super::trial::tests::{RULES, seen};
    use super::*;

    fn trials() -> Vec<Trial> {
        let judge = |n, round, mode, seen| Trial::judge(n, round, mode, seen, &RULES);
        vec![
            judge(1, 1, Mode::Off, seen(&[None], 99.0, 4.0)),
            judge(2, 1, Mode::On, seen(&[Some(8.0)], 99.0, 1.0)),
            judge(3, 2, Mode::On, seen(&[Some(8.0)], 99.0, 3.0)),
            judge(4, 2, Mode::Off, seen(&[None], 99.0, 6.0)),
            judge(5, 3, Mode::Off, seen(&[None], 99.0, 6.0)),
            judge(6, 3, Mode::On, seen(&[None], 99.0, 500.0)),
        ]
    }

    #[test]
    fn medians_and_pairs_leave_out_what_does_not_count() {
        let text = summary(&trials());
        let row = text.lines().nth(1).expect("lateness p95");
        assert!(
            row.contains("6.000 ms (4.000 to 6.000)") && row.contains("2.000 ms (1.000 to 3.000)"),
            "{text}"
        );
        assert!(
            row.contains("-66.7 %") && row.contains("-62.5 % (-75.0 to -50.0)"),
            "{text}"
        );
        assert!(
            text.contains("trials that count: 3 of 3 off, 2 of 3 on"),
            "{text}"
        );
    }

    #[test]
    fn no_trials_that_count_are_no_figures() {
        let mut trials = trials();
        trials.truncate(1);
        assert!(summary(&trials).contains(" -  "), "{}", summary(&trials));
    }

    #[test]
    fn the_plot_has_every_trial_in_every_panel() {
        assert_eq!(
            plot("t", &trials(), "n").matches("fill-opacity").count(),
            6 * 3
        );
    }
}
