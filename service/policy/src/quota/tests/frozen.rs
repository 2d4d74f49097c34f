//! Bad telemetry freezes: it neither raises nor lowers anything.

use std::time::Duration;

use super::super::{Controller, Policy, QuotaSettings, Signal, Telemetry, Verdict};
use super::{calm, settings};
use crate::id::Moment;

type Place = (&'static str, fn(&mut Telemetry) -> &mut Signal);

/// The signals that a policy cannot do without.
fn needed(policy: Policy) -> Vec<Place> {
    let both: [Place; 2] = [
        ("throttling of the heavy slice", |t| &mut t.throttled),
        ("demand", |t| &mut t.demand),
    ];
    let own: [Place; 2] = match policy {
        Policy::Step => [
            ("CPU pressure of the host", |t| &mut t.pressure),
            ("run-queue delay", |t| &mut t.delay_ms),
        ],
        Policy::Protected => [
            ("CPU pressure of the protected", |t| {
                &mut t.protected_pressure
            }),
            ("throttling of the protected", |t| {
                &mut t.protected_throttled
            }),
        ],
    };
    both.into_iter().chain(own).collect()
}

fn verdict(telemetry: &Telemetry, settings: &QuotaSettings) -> (Verdict, String) {
    let decision =
        Controller::default().decide(telemetry, Some(200.0), settings, Moment(Duration::ZERO));
    (decision.verdict, decision.words)
}

/// Telemetry that would raise, and one that would lower.
fn eager(policy: Policy) -> [Telemetry; 2] {
    let up = Telemetry {
        demand: Signal::now(1.0),
        ..calm()
    };
    let down = match policy {
        Policy::Step => Telemetry {
            pressure: Signal::now(0.9),
            delay_ms: Signal::now(90.0),
            ..up.clone()
        },
        Policy::Protected => Telemetry {
            protected_pressure: Signal::now(0.9),
            ..up.clone()
        },
    };
    [up, down]
}

#[test]
fn every_bad_signal_freezes_every_policy_and_is_named() {
    for &policy in Policy::ALL {
        let settings = QuotaSettings {
            policy,
            ..settings()
        };
        let stale = settings.stale_after() + Duration::from_millis(1);
        for base in eager(policy) {
            assert!(matches!(
                verdict(&base, &settings).0,
                Verdict::Change { .. }
            ));
            for (name, place) in needed(policy) {
                let bad = [
                    Signal::Broken("it is empty".into()),
                    Signal::now(f64::NAN),
                    Signal::now(f64::INFINITY),
                    Signal::now(-0.01),
                    Signal::Read {
                        value: 0.0,
                        age: stale,
                    },
                ];
                for bad in bad {
                    let mut telemetry = base.clone();
                    *place(&mut telemetry) = bad.clone();
                    let (verdict, words) = verdict(&telemetry, &settings);
                    assert!(
                        matches!(&verdict, Verdict::Frozen(faults) if faults.len() == 1),
                        "{policy} {name} {bad:?}: {verdict:?}"
                    );
                    assert!(
                        words.starts_with("frozen: ") && words.contains(name),
                        "{words}"
                    );
                }
                let mut telemetry = base.clone();
                *place(&mut telemetry) = Signal::Pending;
                assert_eq!(verdict(&telemetry, &settings).0, Verdict::Wait, "{name}");
            }
        }
    }
}

#[test]
fn a_value_is_good_until_it_is_stale() {
    let mut telemetry = calm();
    telemetry.pressure = Signal::Read {
        value: 0.9,
        age: settings().stale_after(),
    };
    assert!(matches!(
        verdict(&telemetry, &settings()).0,
        Verdict::Change { to: 150.0, .. }
    ));
}

#[test]
fn a_fraction_above_one_is_malformed() {
    for place in [
        (|t: &mut Telemetry| &mut t.pressure) as fn(&mut Telemetry) -> &mut Signal,
        |t| &mut t.throttled,
        |t| &mut t.demand,
    ] {
        let mut telemetry = calm();
        *place(&mut telemetry) = Signal::now(1.0_f64.next_up());
        assert!(matches!(
            verdict(&telemetry, &settings()).0,
            Verdict::Frozen(_)
        ));
    }
}

#[test]
fn a_machine_without_psi_is_steered_by_the_delay_and_one_without_both_is_not() {
    let mut telemetry = Telemetry {
        pressure: Signal::Absent,
        demand: Signal::now(1.0),
        ..calm()
    };
    assert!(matches!(
        verdict(&telemetry, &settings()).0,
        Verdict::Change { to: 250.0, .. }
    ));
    telemetry.delay_ms = Signal::Absent;
    let (frozen, words) = verdict(&telemetry, &settings());
    assert!(matches!(frozen, Verdict::Frozen(_)));
    assert!(words.contains("run-queue delay"), "{words}");
}

#[test]
fn the_protected_policy_does_without_nothing() {
    let settings = QuotaSettings {
        policy: Policy::Protected,
        ..settings()
    };
    for (name, place) in needed(Policy::Protected) {
        let mut telemetry = calm();
        *place(&mut telemetry) = Signal::Absent;
        assert!(
            matches!(verdict(&telemetry, &settings).0, Verdict::Frozen(_)),
            "{name}"
        );
    }
    // What it does not look at is not missed.
    let telemetry = Telemetry {
        pressure: Signal::Broken("hidden".into()),
        delay_ms: Signal::Absent,
        ..calm()
    };
    assert_eq!(verdict(&telemetry, &settings).0, Verdict::Keep);
}
