//! Whether CPU was short in the last hour, as the kernel measured it.

use serde::Serialize;

use super::{Finding, Hour, Severity, Situation};

/// How much of the readings must be high, where it is not the newest ones.
const PART: f64 = 0.25;
/// Fewer high readings than this say nothing.
const FEWEST: usize = 2;
/// The newest readings: high ones among them are no old story.
const RECENT_SEC: u64 = 900;

/// The pressure of the last hour.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pressure {
    /// Judged over all readings.
    pub level: Level,
    /// In words.
    pub words: String,
    /// Readings.
    pub readings: u64,
    /// High ones.
    pub high: u64,
    /// The greatest, 0 to 1.
    pub max: Option<f64>,
}

/// What the readings come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// CPU was not short.
    Normal,
    /// It was, more than once.
    High,
    /// Nobody measured it.
    Unknown,
}

impl Level {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Level::Normal => "normal",
            Level::High => "high",
            Level::Unknown => "unknown",
        }
    }
}

/// Judges it: by the snapshots and the reading of now.
pub(super) fn judge(situation: &Situation, hour: &Hour<'_>) -> Pressure {
    let threshold = situation.guard.pressure_high;
    let readings: Vec<(u64, f64)> = hour
        .snapshots
        .iter()
        .filter_map(|(ts, snapshot)| Some((*ts, snapshot.cpu_psi_some_avg10?)))
        .chain(situation.environment.psi.map(|psi| (situation.now, psi)))
        .collect();
    let high: Vec<(u64, f64)> = readings
        .iter()
        .copied()
        .filter(|(_, psi)| *psi >= threshold)
        .collect();
    let recent = high
        .iter()
        .filter(|(ts, _)| ts + RECENT_SEC >= situation.now)
        .count();
    let max = readings.iter().map(|(_, psi)| *psi).max_by(f64::total_cmp);
    let count = |count: usize| match count {
        1 => "1 reading".to_owned(),
        count => format!("{count} readings"),
    };
    let (level, words) = match (readings.len(), high.len()) {
        (0, _) => (
            Level::Unknown,
            "no reading of CPU pressure in the last hour".to_owned(),
        ),
        (all, some) if some >= FEWEST && (recent >= FEWEST || some as f64 >= PART * all as f64) => {
            (
                Level::High,
                format!(
                    "{some} of {} at or above {threshold:.2}, up to {:.2}",
                    count(all),
                    max.unwrap_or(0.0)
                ),
            )
        }
        (all, 1) => (
            Level::Normal,
            format!(
                "1 of {} at or above {threshold:.2} ({:.2}, {} min ago): one alone is not high pressure",
                count(all),
                high[0].1,
                (situation.now.saturating_sub(high[0].0)) / 60
            ),
        ),
        (all, 0) => (
            Level::Normal,
            format!(
                "{}, up to {:.2}, none at or above {threshold:.2}",
                count(all),
                max.unwrap_or(0.0)
            ),
        ),
        (all, some) => (
            Level::Normal,
            format!(
                "{some} of {} at or above {threshold:.2}, none of them lasting or recent",
                count(all)
            ),
        ),
    };
    Pressure {
        level,
        words,
        readings: readings.len() as u64,
        high: high.len() as u64,
        max,
    }
}

/// What follows from it.
pub(super) fn findings(
    pressure: &Pressure,
    situation: &Situation,
    hour: &Hour<'_>,
) -> Vec<Finding> {
    match pressure.level {
        Level::Normal => Vec::new(),
        Level::Unknown => vec![Finding {
            id: "pressure-unknown",
            severity: Severity::Note,
            title: "CPU pressure is unknown".to_owned(),
            evidence: vec![
                pressure.words.clone(),
                "unknown is not normal: nothing here says that CPU was not short".to_owned(),
            ],
            next: "boot with psi=1 on the kernel command line, or use a kernel with CONFIG_PSI; \
                   dynamic quotas need it too"
                .to_owned(),
        }],
        Level::High => vec![Finding {
            id: "pressure-high",
            severity: Severity::Warning,
            title: "CPU was short in the last hour".to_owned(),
            evidence: vec![
                format!("observed: {}", pressure.words),
                "who used CPU meanwhile is listed apart, and is no proof of a cause".to_owned(),
            ],
            next: next(situation, hour),
        }],
    }
}

fn next(situation: &Situation, hour: &Hour<'_>) -> String {
    let measures = &hour.summary.measures;
    let mean = |spread: Option<crate::summary::Spread>| spread.map_or(0.0, |spread| spread.mean);
    let (heavy, outside) = (
        mean(measures.heavy_cpu_pct),
        mean(measures.unmanaged_cpu_pct),
    );
    if outside > heavy {
        "most CPU went to work outside the guard's classes: see what is named outside reach, and \
         `workload-guard profile` while it happens"
            .to_owned()
    } else if situation.guard.dynamic_quota {
        "heavy work used most: `workload-guard quota` tells what the controller does about it"
            .to_owned()
    } else {
        "heavy work used most: lower its quota (`workload-guard quota set`), or let it be steered \
         (`dynamic = true` in [quota] of guard.toml)"
            .to_owned()
    }
}
