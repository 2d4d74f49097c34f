//! One trial: what was seen, whether it counts, and its rows. Pure.

use anyhow::Context;

use super::super::session::CpuStat;
use super::super::stats::quantile;
use super::super::table::cell;

/// Without the guard, or with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Stopped.
    Off,
    /// Running.
    On,
}

impl Mode {
    /// Its spelling in the files.
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Off => "off",
            Mode::On => "on",
        }
    }
}

/// One piece of the probe's work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// When it was due, in seconds of the trial.
    pub due_s: f64,
    /// How late it began.
    pub lateness_ms: f64,
    /// How long it took.
    pub work_ms: f64,
}

impl Sample {
    /// From the probe's row.
    pub fn parse(line: &str) -> anyhow::Result<Sample> {
        let cells: Vec<f64> = line
            .split('\t')
            .map(|cell| cell.parse().context("a number"))
            .collect::<anyhow::Result<_>>()
            .with_context(|| format!("the probe wrote {line:?}"))?;
        let [due_s, lateness_ms, work_ms] = cells[..] else {
            anyhow::bail!("the probe wrote {line:?}");
        };
        Ok(Sample {
            due_s,
            lateness_ms,
            work_ms,
        })
    }
}

/// What was seen in a trial.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// When each hog was in the heavy slice, in seconds of the trial.
    pub moved: Vec<Option<f64>>,
    /// Hogs there at the end.
    pub still_routed: usize,
    /// The probe itself was.
    pub probe_moved: bool,
    /// Of the probe.
    pub samples: Vec<Sample>,
    /// How long it took.
    pub seconds: f64,
    /// Growth of the slices' counters.
    pub protected: CpuStat,
    /// Likewise.
    pub heavy: CpuStat,
    /// At the end, in percent.
    pub heavy_quota: Option<f64>,
    /// The host's, at the end, in percent.
    pub psi_avg10: Option<f64>,
}

/// What makes a sample steady, and a trial count.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Without the guard, from here on.
    pub settle: f64,
    /// With it, so long after the last move.
    pub after_move: f64,
    /// Of the probe in one trial.
    pub pieces: usize,
    /// That exist.
    pub cpus: usize,
}

/// A judged trial.
#[derive(Clone, Debug)]
pub struct Trial {
    /// From 1.
    pub number: usize,
    /// From 1.
    pub round: u32,
    /// Without the guard, or with it.
    pub mode: Mode,
    workers: usize,
    routed: usize,
    /// When the last hog was moved; none unless all were.
    routed_after: Option<f64>,
    /// All of them.
    pub samples: Vec<Sample>,
    /// From when on samples are steady.
    steady_from: f64,
    /// Quantiles 0.5, 0.95 and 0.99 of the steady samples.
    pub lateness: [Option<f64>; 3],
    /// Likewise.
    pub work: [Option<f64>; 3],
    seen: Seen,
    /// Why it does not count; empty when it does.
    pub invalid: String,
}

/// Of the trials' file.
pub const COLUMNS: &[&str] = &[
    "trial",
    "round",
    "mode",
    "workers",
    "routed_workers",
    "routed_after_s",
    "samples",
    "steady_samples",
    "steady_from_s",
    "lateness_p50_ms",
    "lateness_p95_ms",
    "lateness_p99_ms",
    "work_p50_ms",
    "work_p95_ms",
    "work_p99_ms",
    "protected_cpu_pct",
    "protected_throttled_pct",
    "heavy_cpu_pct",
    "heavy_quota_pct",
    "psi_some_avg10",
    "trial_valid",
    "validity_reason",
];

/// Of the samples' file.
pub const SAMPLE_COLUMNS: &[&str] = &[
    "trial",
    "round",
    "mode",
    "due_s",
    "lateness_ms",
    "work_ms",
    "steady",
];

const QUANTILES: [f64; 3] = [0.5, 0.95, 0.99];

impl Trial {
    /// Judges what was seen.
    pub fn judge(number: usize, round: u32, mode: Mode, mut seen: Seen, rules: &Rules) -> Trial {
        let workers = seen.moved.len();
        let routed = seen.moved.iter().flatten().count();
        let routed_after =
            (routed == workers).then(|| seen.moved.iter().flatten().copied().fold(0.0, f64::max));
        let steady_from = match (mode, routed_after) {
            (Mode::On, Some(moved)) => moved + rules.after_move,
            _ => rules.settle,
        };
        let samples = std::mem::take(&mut seen.samples);
        let steady: Vec<&Sample> = samples
            .iter()
            .filter(|sample| sample.due_s >= steady_from)
            .collect();
        let of = |value: fn(&Sample) -> f64| {
            let values: Vec<f64> = steady.iter().map(|sample| value(sample)).collect();
            QUANTILES.map(|q| quantile(&values, q))
        };
        let (lateness, work) = (of(|sample| sample.lateness_ms), of(|sample| sample.work_ms));
        let invalid = if mode == Mode::On && routed < workers {
            format!("{routed} of {workers} hogs were routed")
        } else if mode == Mode::On && seen.still_routed < workers {
            format!(
                "{} of {workers} hogs were brought back meanwhile",
                workers - seen.still_routed
            )
        } else if mode == Mode::Off && routed > 0 {
            "a hog was moved without the guard".to_owned()
        } else if seen.probe_moved {
            "the probe was moved".to_owned()
        } else if samples.len() < rules.pieces {
            format!("the probe did {} of {} pieces", samples.len(), rules.pieces)
        } else if steady.is_empty() {
            "no steady sample: the hogs were routed too late".to_owned()
        } else if workers + 1 > rules.cpus {
            format!("{workers} hogs and a probe on {} CPUs", rules.cpus)
        } else {
            String::new()
        };
        Trial {
            number,
            round,
            mode,
            workers,
            routed,
            routed_after,
            steady_from,
            lateness,
            work,
            samples,
            seen,
            invalid,
        }
    }

    /// Whether every hog was routed.
    pub fn all_routed(&self) -> bool {
        self.routed == self.workers
    }

    fn is_steady(&self, sample: &Sample) -> bool {
        sample.due_s >= self.steady_from
    }

    /// Its row.
    pub fn cells(&self) -> Vec<String> {
        let steady = self.samples.iter().filter(|sample| self.is_steady(sample));
        let share = |stat: CpuStat| stat.usage_usec as f64 / 1e4 / self.seen.seconds;
        let throttled = self.seen.protected.throttled as f64
            / self.seen.protected.periods.max(1) as f64
            * 100.0;
        let mut cells = vec![
            self.number.to_string(),
            self.round.to_string(),
            self.mode.as_str().to_owned(),
            self.workers.to_string(),
            self.routed.to_string(),
            cell(self.routed_after),
            self.samples.len().to_string(),
            steady.count().to_string(),
            format!("{:.3}", self.steady_from),
        ];
        cells.extend(self.lateness.iter().chain(&self.work).copied().map(cell));
        cells.extend([
            cell(Some(share(self.seen.protected))),
            cell(Some(throttled)),
            cell(Some(share(self.seen.heavy))),
            cell(self.seen.heavy_quota),
            cell(self.seen.psi_avg10),
            self.invalid.is_empty().to_string(),
            self.invalid.clone(),
        ]);
        cells
    }

    /// The row of one of its samples.
    pub fn sample_cells(&self, sample: &Sample) -> Vec<String> {
        vec![
            self.number.to_string(),
            self.round.to_string(),
            self.mode.as_str().to_owned(),
            format!("{:.3}", sample.due_s),
            format!("{:.3}", sample.lateness_ms),
            format!("{:.3}", sample.work_ms),
            self.is_steady(sample).to_string(),
        ]
    }

    /// For people, while it runs.
    pub fn line(&self) -> String {
        let ms = |value: Option<f64>| value.map_or("-".to_owned(), |ms| format!("{ms:.2} ms"));
        let routed = match (self.mode, self.routed_after) {
            (Mode::On, Some(after)) => format!(", routed after {after:.1} s"),
            _ => String::new(),
        };
        let note = match self.invalid.as_str() {
            "" => String::new(),
            why => format!(" (does not count: {why})"),
        };
        format!(
            "round {}, guard {}: lateness p95 {}, work p95 {}{routed}{note}",
            self.round,
            self.mode.as_str(),
            ms(self.lateness[1]),
            ms(self.work[1])
        )
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub const RULES: Rules = Rules {
        settle: 12.0,
        after_move: 2.0,
        pieces: 19,
        cpus: 8,
    };

    /// A sample a second; those from `from` on are ten times as good.
    pub fn seen(moved: &[Option<f64>], from: f64, ms: f64) -> Seen {
        Seen {
            moved: moved.to_vec(),
            still_routed: moved.iter().flatten().count(),
            samples: (1..20)
                .map(|n| {
                    let due_s = f64::from(n);
                    let ms = if due_s >= from { ms / 10.0 } else { ms };
                    Sample {
                        due_s,
                        lateness_ms: ms,
                        work_ms: ms * 2.0,
                    }
                })
                .collect(),
            seconds: 20.0,
            ..Seen::default()
        }
    }

    fn judged(mode: Mode, seen: Seen) -> Trial {
        Trial::judge(1, 1, mode, seen, &RULES)
    }

    #[test]
    fn samples_count_from_two_seconds_after_the_last_move_or_from_where_the_machine_settled() {
        let on = judged(Mode::On, seen(&[Some(8.0), Some(9.0)], 11.0, 5.0));
        assert_eq!(
            (on.steady_from, on.lateness, on.work[1]),
            (11.0, [Some(0.5); 3], Some(1.0))
        );
        assert_eq!(on.invalid, "");
        let off = judged(Mode::Off, seen(&[None], 12.0, 5.0));
        assert_eq!((off.steady_from, off.lateness[1]), (12.0, Some(0.5)));
        assert_eq!(off.invalid, "");
    }

    #[test]
    fn what_does_not_count_says_why() {
        let invalid = |mode, seen| judged(mode, seen).invalid;
        assert_eq!(
            invalid(Mode::On, seen(&[Some(8.0), None], 0.0, 1.0)),
            "1 of 2 hogs were routed"
        );
        assert_eq!(
            invalid(Mode::Off, seen(&[Some(8.0)], 0.0, 1.0)),
            "a hog was moved without the guard"
        );
        assert_eq!(
            invalid(Mode::On, seen(&[Some(18.5)], 0.0, 1.0)),
            "no steady sample: the hogs were routed too late"
        );
        let back = Seen {
            still_routed: 0,
            ..seen(&[Some(8.0)], 0.0, 1.0)
        };
        assert_eq!(
            invalid(Mode::On, back),
            "1 of 1 hogs were brought back meanwhile"
        );
        let mut short = seen(&[None], 0.0, 1.0);
        short.samples.pop();
        assert_eq!(invalid(Mode::Off, short), "the probe did 18 of 19 pieces");
        let probe = Seen {
            probe_moved: true,
            ..seen(&[None], 0.0, 1.0)
        };
        assert_eq!(invalid(Mode::Off, probe), "the probe was moved");
        assert_eq!(
            invalid(Mode::Off, seen(&[None; 8], 0.0, 1.0)),
            "8 hogs and a probe on 8 CPUs"
        );
    }

    #[test]
    fn rows_have_every_column() {
        let trial = judged(Mode::On, seen(&[Some(8.0)], 0.0, 1.0));
        assert_eq!(trial.cells().len(), COLUMNS.len());
        assert_eq!(
            trial.sample_cells(&trial.samples[0]).len(),
            SAMPLE_COLUMNS.len()
        );
        assert_eq!(
            Sample::parse("0.020\t1.5\t2").expect("a row").lateness_ms,
            1.5
        );
        assert!(Sample::parse("0.020\t1.5").is_err());
    }
}
