//! Fixed traces, and the path that the quota takes over each with every policy.
//!
//! They show how a quota moves, not which policy is best on a machine: nothing in a trace answers to the
//! quota, as latency and pressure would.

use super::{Controller, Gradient, QuotaSettings, Signal, Telemetry, Verdict, Wish, aimd};
use super::{Direction, Policy, Proposal, protected, step};
use crate::id::Moment;

/// What is measured at one decision; nothing for what is not there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// CPU pressure, 0 to 1. The protected policy takes it for the protected side's.
    pub pressure: Option<f64>,
    /// Run-queue delay, in milliseconds.
    pub delay_ms: Option<f64>,
    /// Demand, 0 to 1.
    pub demand: f64,
    /// Throttled part of the heavy slice's periods, 0 to 1.
    pub throttled: f64,
}

/// A trace: one point for each interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// Its name.
    pub name: &'static str,
    /// The quota that it starts with, in percent of one logical CPU.
    pub start: f64,
    /// What is measured.
    pub points: Vec<Point>,
}

/// A policy in a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replayed {
    /// One that may act.
    Acting(Policy),
    /// Log only.
    Aimd,
    /// Replay only.
    Gradient,
}

impl Replayed {
    /// Every policy.
    pub const ALL: &[Replayed] = &[
        Replayed::Acting(Policy::Step),
        Replayed::Aimd,
        Replayed::Gradient,
        Replayed::Acting(Policy::Protected),
    ];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Replayed::Acting(policy) => policy.as_str(),
            Replayed::Aimd => "aimd",
            Replayed::Gradient => "gradient2",
        }
    }
}

/// The quota after each decision, with the decision's words.
pub type Path = Vec<(f64, String)>;

/// Follows a trace. The first decision is at 0 s, the next one an interval later, and so on; each policy
/// has the bounds and the dwell of the settings, also those whose proposals nothing carries out.
pub fn replay(trace: &Trace, policy: Replayed, settings: &QuotaSettings) -> Path {
    let mut quota = trace.start;
    let mut controller = Controller::default();
    let mut gradient = Gradient::default();
    let mut path = Path::with_capacity(trace.points.len());
    for (n, point) in trace.points.iter().enumerate() {
        let now = Moment(settings.interval * n as u32);
        let telemetry = point.telemetry();
        let decision = match policy {
            Replayed::Acting(policy) => {
                let wish = match policy {
                    Policy::Step => step(&telemetry, settings),
                    Policy::Protected => protected(&telemetry, settings),
                };
                controller.follow(wish, Some(quota), settings, now)
            }
            Replayed::Aimd => proposed(
                aimd(&telemetry, quota, settings),
                &controller,
                quota,
                settings,
                now,
            ),
            Replayed::Gradient => {
                let proposal = gradient.propose(&telemetry, quota, settings);
                proposed(proposal, &controller, quota, settings, now)
            }
        };
        if let Verdict::Change { to, .. } = decision.verdict {
            quota = to;
            controller.changed(now);
        }
        path.push((quota, decision.words));
    }
    path
}

/// A proposal as a decision, had it been carried out under the same dwell.
fn proposed(
    proposal: Option<Proposal>,
    controller: &Controller,
    quota: f64,
    settings: &QuotaSettings,
    now: Moment,
) -> super::Decision {
    let Some(proposal) = proposal else {
        return super::Decision {
            verdict: Verdict::Keep,
            words: "no proposal: a signal is missing".to_owned(),
        };
    };
    let direction = match proposal.to {
        to if to > quota => Direction::Up,
        to if to < quota => Direction::Down,
        _ => Direction::Stay,
    };
    // Its own step: the proposal says how far.
    let far = (proposal.to - quota).abs().round() as u32;
    let settings = QuotaSettings {
        step: far,
        ..settings.clone()
    };
    let wish = Wish::new(direction, proposal.why.to_owned());
    controller.follow(Ok(wish), Some(quota), &settings, now)
}

impl Point {
    fn telemetry(&self) -> Telemetry {
        Telemetry {
            pressure: Signal::from_option(self.pressure),
            delay_ms: Signal::from_option(self.delay_ms),
            throttled: Signal::now(self.throttled),
            demand: Signal::now(self.demand),
            protected_pressure: Signal::from_option(self.pressure),
            protected_throttled: Signal::now(0.0),
        }
    }
}

/// The traces, at 5 s an interval.
pub fn traces() -> Vec<Trace> {
    let calm = point(0.04, 2.0, 0.75, 0.05);
    let restful = point(0.04, 2.0, 0.75, 0.0);
    let wave = |(pressure, delay)| point(pressure, delay, 0.90, 0.15);
    let blind = |delay| Point {
        pressure: None,
        ..point(0.0, delay, 0.90, 0.20)
    };
    let bare = |pressure, demand| Point {
        delay_ms: None,
        ..point(pressure, 0.0, demand, 0.0)
    };
    let trace = |name, start, runs: &[(usize, Point)]| Trace {
        name,
        start,
        points: runs
            .iter()
            .flat_map(|(count, point)| std::iter::repeat_n(*point, *count))
            .collect(),
    };
    let waves = [(0.12, 7.0), (0.43, 22.0), (0.14, 8.0), (0.46, 24.0)].map(wave);
    vec![
        trace("stable_low_pressure", 200.0, &[(12, calm)]),
        trace(
            "sustained_pressure",
            200.0,
            &[
                (8, point(0.55, 28.0, 0.95, 0.15)),
                (8, point(0.04, 2.0, 0.80, 0.15)),
            ],
        ),
        trace(
            "burst_pressure",
            200.0,
            &[
                (3, point(0.04, 2.0, 0.70, 0.0)),
                (2, point(0.60, 35.0, 0.95, 0.25)),
                (10, restful),
            ],
        ),
        Trace {
            name: "oscillating_pressure",
            start: 200.0,
            points: waves.repeat(5),
        },
        trace(
            "high_demand_throttled",
            200.0,
            &[(10, point(0.03, 1.0, 0.95, 0.30))],
        ),
        trace(
            "missing_psi",
            200.0,
            &[(4, blind(2.0)), (3, blind(24.0)), (4, blind(2.0))],
        ),
        trace(
            "pressure_to_recovery",
            300.0,
            &[(10, bare(0.65, 0.95)), (10, bare(0.03, 0.90))],
        ),
    ]
}

fn point(pressure: f64, delay_ms: f64, demand: f64, throttled: f64) -> Point {
    Point {
        pressure: Some(pressure),
        delay_ms: Some(delay_ms),
        demand,
        throttled,
    }
}
