//! What holds for every telemetry, every setting and every order of events.

use std::time::Duration;

use proptest::prelude::*;

use super::super::{Controller, Policy, QuotaSettings, Signal, Telemetry, Verdict, aimd, step};
use super::settings;
use crate::id::Moment;

fn signal(most: f64) -> impl Strategy<Value = Signal> {
    prop_oneof![
        8 => (0.0..=most, 0u64..20_000).prop_map(|(value, age)| Signal::Read {
            value,
            age: Duration::from_millis(age)
        }),
        8 => (0.0..=most).prop_map(Signal::now),
        1 => Just(Signal::Absent),
        1 => Just(Signal::Pending),
        1 => Just(Signal::Broken("hidden".into())),
        1 => any::<f64>().prop_map(Signal::now),
    ]
}

fn telemetry() -> impl Strategy<Value = Telemetry> {
    let one = || signal(1.0);
    (one(), signal(60.0), one(), one(), one(), one()).prop_map(
        |(pressure, delay_ms, throttled, demand, protected_pressure, protected_throttled)| {
            Telemetry {
                pressure,
                delay_ms,
                throttled,
                demand,
                protected_pressure,
                protected_throttled,
            }
        },
    )
}

fn any_settings() -> impl Strategy<Value = QuotaSettings> {
    (
        1u32..500,
        0u32..800,
        1u32..300,
        0u64..30,
        1u64..20,
        0usize..2,
    )
        .prop_map(|(min, more, step, dwell, interval, policy)| QuotaSettings {
            policy: Policy::ALL[policy],
            min,
            max: min + more,
            step,
            dwell: Duration::from_secs(dwell),
            interval: Duration::from_secs(interval),
            ..settings()
        })
}

proptest! {
    #[test]
    fn changes_keep_to_bounds_step_and_dwell(
        s in any_settings(),
        start in 1.0..1500.0_f64,
        points in prop::collection::vec((telemetry(), 0u64..8000), 1..60),
    ) {
        let mut controller = Controller::default();
        let mut quota = start;
        let mut now = Duration::ZERO;
        let mut last: Option<Duration> = None;
        for (telemetry, ms) in points {
            now += Duration::from_millis(ms);
            let decision = controller.decide(&telemetry, Some(quota), &s, Moment(now));
            let Verdict::Change { from, to } = decision.verdict else { continue };
            prop_assert_eq!(from, Some(quota));
            prop_assert!(to != quota);
            prop_assert!((to - quota).abs() <= f64::from(s.step), "{} -> {}", quota, to);
            prop_assert_eq!(to.fract(), 0.0);
            if (s.least()..=s.most()).contains(&quota) {
                prop_assert!((s.least()..=s.most()).contains(&to));
            } else {
                // Nearer to the bounds, and not past them.
                prop_assert_eq!(s.clamped(quota), s.clamped(to));
                prop_assert!((to - s.clamped(to)).abs() < (quota - s.clamped(quota)).abs());
            }
            if let Some(last) = last {
                prop_assert!(now - last >= s.dwell);
            }
            last = Some(now);
            controller.changed(Moment(now));
            quota = to;
        }
    }

    #[test]
    fn a_constant_signal_never_turns_the_quota_around(
        s in any_settings(),
        start in 1.0..1500.0_f64,
        telemetry in telemetry(),
    ) {
        let mut controller = Controller::default();
        let mut quota = start;
        let mut path = vec![quota];
        for n in 0..200 {
            let now = Moment(s.interval * n);
            if let Verdict::Change { to, .. } = controller.decide(&telemetry, Some(quota), &s, now).verdict {
                controller.changed(now);
                quota = to;
                path.push(quota);
            }
        }
        // What leads back into the bounds comes first; from there on one direction.
        let inside = path.iter().position(|q| (s.least()..=s.most()).contains(q)).unwrap_or(path.len() - 1);
        let (into, on) = path.split_at(inside);
        prop_assert!(into.is_sorted() || into.is_sorted_by(|a, b| a >= b));
        prop_assert!(on.is_sorted() || on.is_sorted_by(|a, b| a >= b), "{:?}", on);
    }

    #[test]
    fn nothing_is_changed_on_a_bad_signal(
        s in any_settings(),
        good in telemetry(),
        start in 1.0..1500.0_f64,
        which in 0usize..2,
    ) {
        let bad = Signal::Broken("hidden".into());
        let telemetry = match which {
            0 => Telemetry { throttled: bad, ..good },
            _ => Telemetry { pressure: bad.clone(), protected_pressure: bad, ..good },
        };
        let decision = Controller::default().decide(&telemetry, Some(start), &s, Moment(Duration::ZERO));
        prop_assert!(matches!(decision.verdict, Verdict::Frozen(_)), "{:?}", decision);
    }

    #[test]
    fn more_pressure_never_means_more_quota(
        low in 0.0..=1.0_f64,
        more in 0.0..=1.0_f64,
        delay in 0.0..60.0_f64,
        throttled in 0.0..=1.0_f64,
        demand in 0.15..=1.0_f64,
    ) {
        let wish = |pressure: f64| {
            let telemetry = Telemetry {
                pressure: Signal::now(pressure),
                delay_ms: Signal::now(delay),
                throttled: Signal::now(throttled),
                demand: Signal::now(demand),
                ..Telemetry::default()
            };
            step(&telemetry, &settings()).expect("good telemetry").direction
        };
        let rank = |direction| match direction {
            super::super::Direction::Down => 0,
            super::super::Direction::Stay => 1,
            super::super::Direction::Up => 2,
        };
        let high = low + (1.0 - low) * more;
        prop_assert!(rank(wish(high)) <= rank(wish(low)));
    }

    #[test]
    fn aimd_stays_within_the_bounds(telemetry in telemetry(), quota in 1.0..1500.0_f64, s in any_settings()) {
        if let Some(proposal) = aimd(&telemetry, quota, &s) {
            prop_assert!((s.least()..=s.most()).contains(&proposal.to));
            prop_assert_eq!(proposal.to.fract(), 0.0);
        }
    }
}
