//! What is going on and what to do about it: findings over the last hour.
//!
//! Three things are kept apart: the pressure, which was measured; the attribution, which only says who used
//! CPU meanwhile and names no cause; and the findings, each with its evidence and a next step.

mod environment;
mod guard;
mod outside;
mod pressure;
mod situation;

#[cfg(test)]
mod tests;

use serde::Serialize;

pub use pressure::{Level, Pressure};
pub use situation::{Competing, Environment, Guard, Situation, Workload};

use crate::snapshot::Snapshot;
use crate::summary::{Summary, placed, summarize};

/// How far back a diagnosis looks, in seconds.
pub const WINDOW: u64 = 3600;

/// The answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diagnosis {
    /// What was measured.
    pub pressure: Pressure,
    /// Who used CPU meanwhile.
    pub attribution: Vec<Share>,
    /// The gravest first.
    pub findings: Vec<Finding>,
}

/// One thing that is worth knowing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// Its name, which stays: `sched-ext`.
    pub id: &'static str,
    /// How grave it is.
    pub severity: Severity,
    /// What is so.
    pub title: String,
    /// What says so.
    pub evidence: Vec<String>,
    /// What to do, or that there is nothing to do.
    pub next: String,
}

/// How grave a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Something does not work as it should.
    Problem,
    /// It works, at a cost.
    Warning,
    /// Good to know.
    Note,
}

impl Severity {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Problem => "problem",
            Severity::Warning => "warning",
            Severity::Note => "note",
        }
    }
}

/// Part of the CPU that was used.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Share {
    /// `heavy`, `other classes` or `outside`.
    pub who: &'static str,
    /// Mean over the hour, in percent of one logical CPU.
    pub cpu_pct: f64,
    /// The same while the pressure was high; none when it never was.
    pub cpu_pct_while_high: Option<f64>,
}

/// Diagnoses a situation.
pub fn diagnose(situation: &Situation) -> Diagnosis {
    let hour = Hour::of(situation);
    let pressure = pressure::judge(situation, &hour);
    let mut findings = pressure::findings(&pressure, situation, &hour);
    findings.extend(guard::findings(situation, &hour, &pressure));
    findings.extend(outside::findings(situation, &hour));
    findings.extend(environment::findings(situation));
    // Stable: within a severity the order above stays.
    findings.sort_by_key(|finding| finding.severity);
    Diagnosis {
        attribution: attribution(situation, &hour),
        pressure,
        findings,
    }
}

/// The last hour.
struct Hour<'a> {
    /// With the time that each counts for.
    snapshots: Vec<(u64, &'a Snapshot)>,
    summary: Summary,
}

impl Hour<'_> {
    fn of(situation: &Situation) -> Hour<'_> {
        let begin = situation.now.saturating_sub(WINDOW);
        let placed = placed(&situation.history, situation.now);
        Hour {
            snapshots: placed.into_iter().filter(|(ts, _)| *ts > begin).collect(),
            summary: summarize(&situation.history, situation.now, WINDOW),
        }
    }
}

fn attribution(situation: &Situation, hour: &Hour<'_>) -> Vec<Share> {
    let share = |who, value: fn(&Snapshot) -> Option<f64>| {
        let mean = |high: bool| {
            let values: Vec<f64> = hour
                .snapshots
                .iter()
                .map(|(_, snapshot)| *snapshot)
                .filter(|snapshot| {
                    let is_high = |psi| psi >= situation.guard.pressure_high;
                    !high || snapshot.cpu_psi_some_avg10.is_some_and(is_high)
                })
                .filter_map(value)
                .collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        Some(Share {
            who,
            cpu_pct: mean(false)?,
            cpu_pct_while_high: mean(true),
        })
    };
    [
        share("heavy", |snapshot| snapshot.heavy_cpu_pct),
        share("other classes", |snapshot| {
            Some((snapshot.guarded_cpu_pct? - snapshot.heavy_cpu_pct?).max(0.0))
        }),
        share("outside", |snapshot| snapshot.unmanaged_cpu_pct),
    ]
    .into_iter()
    .flatten()
    .collect()
}
