//! Coming back.

use std::time::Duration;

use super::{Machine, id, one_move, unit, workload};
use crate::action::{Action, Failure, Placement, RecoverCause};
use crate::event::{Event, Ticket};
use crate::settings::Settings;

/// A machine with a routed workload 7 that burns nothing.
fn routed() -> Machine {
    let mut machine = Machine::new();
    machine.spawn(7, 1, "make");
    let order = one_move(machine.sample());
    machine.moved(&order);
    machine
}

fn burn(machine: &mut Machine, percent: f64) -> Vec<Action> {
    let usec = (percent / 100.0 * 2e6) as u64;
    *machine.scopes.get_mut(&unit(7)).expect("the scope") += usec;
    machine.tick(&[])
}

fn calm(cpu: f64, samples: u32) -> Vec<Action> {
    vec![Action::Recover {
        unit: unit(7),
        cause: RecoverCause::Calm { cpu, samples },
        ticket: None,
    }]
}

#[test]
fn ten_low_samples_and_twenty_seconds() {
    let mut machine = routed();
    assert_eq!(burn(&mut machine, 300.0), []);
    assert_eq!(burn(&mut machine, 300.0), []);
    assert_eq!(
        machine
            .engine
            .workload(&unit(7))
            .and_then(|tracked| tracked.cpu),
        Some(300.0)
    );
    for _ in 0..10 {
        assert_eq!(burn(&mut machine, 34.0), []);
    }
    assert_eq!(burn(&mut machine, 34.0), calm(34.0, 11));
    // In flight: not asked for again.
    assert_eq!(burn(&mut machine, 34.0), []);
}

#[test]
fn a_sample_at_the_threshold_starts_the_count_again() {
    let mut machine = routed();
    machine.sample();
    for _ in 0..10 {
        assert_eq!(burn(&mut machine, 0.0), []);
    }
    assert_eq!(burn(&mut machine, 35.0), []);
    for _ in 0..10 {
        assert_eq!(burn(&mut machine, 0.0), []);
    }
    assert_eq!(burn(&mut machine, 0.0), calm(0.0, 11));
}

#[test]
fn a_sample_a_millisecond_early_cost_a_whole_interval() {
    let mut machine = routed();
    machine.sample();
    machine.now += Duration::from_millis(3);
    assert_eq!(burn(&mut machine, 0.0), []);
    machine.now -= Duration::from_millis(3);
    for _ in 0..9 {
        assert_eq!(burn(&mut machine, 0.0), []);
    }
    assert_eq!(burn(&mut machine, 0.0), calm(0.0, 11));
}

#[test]
fn the_dwell_alone_is_not_enough() {
    let mut settings = Settings::default();
    settings.recovery.dwell = Duration::ZERO;
    settings.recovery.samples = 3;
    let mut machine = Machine::with(settings);
    machine.step(Event::Adopted(workload(7, "heavy", Placement::Routed)));
    machine.scopes.insert(unit(7), 0);
    machine.sample();
    assert_eq!(burn(&mut machine, 0.0), []);
    assert_eq!(burn(&mut machine, 0.0), []);
    assert_eq!(burn(&mut machine, 0.0), calm(0.0, 3));
}

#[test]
fn after_a_gap_the_count_starts_again() {
    let mut machine = routed();
    machine.sample();
    for _ in 0..9 {
        assert_eq!(burn(&mut machine, 0.0), []);
    }
    machine.now += Duration::from_secs(600);
    assert_eq!(machine.sample(), []);
    assert_eq!(
        machine
            .engine
            .workload(&unit(7))
            .map(|tracked| (tracked.cpu, tracked.low_samples)),
        Some((None, 0))
    );
    for _ in 0..10 {
        assert_eq!(burn(&mut machine, 0.0), []);
    }
    assert_eq!(burn(&mut machine, 0.0), calm(0.0, 11));
}

#[test]
fn a_failed_recovery_is_tried_again_after_the_cooldown() {
    let mut machine = routed();
    machine.sample();
    while machine.tick(&[]).is_empty() {}
    machine.step(Event::Recovered {
        unit: unit(7),
        outcome: Err(Failure::SystemdRefused("no".to_owned())),
    });
    for _ in 0..9 {
        assert_eq!(burn(&mut machine, 0.0), []);
    }
    assert_eq!(burn(&mut machine, 0.0), calm(0.0, 21));
}

#[test]
fn a_recovery_that_fails_for_ever_is_tried_less_and_less_often() {
    let mut settings = Settings::default();
    settings.routing.cooldown = Duration::ZERO;
    let mut machine = Machine::with(settings);
    machine.spawn(7, 1, "make");
    let order = one_move(machine.sample());
    machine.moved(&order);
    let mut tries = 0;
    for _ in 0..300 {
        if !machine.tick(&[]).is_empty() {
            tries += 1;
            machine.step(Event::Recovered {
                unit: unit(7),
                outcome: Err(Failure::SystemdRefused("no".to_owned())),
            });
        }
    }
    assert!((5..30).contains(&tries), "{tries} tries in 10 minutes");
}

#[test]
fn a_release_brings_placed_work_back_with_its_ticket() {
    let mut machine = Machine::new();
    machine.step(Event::Adopted(workload(7, "heavy", Placement::Placed)));
    let release = |machine: &mut Machine, ticket| {
        machine.step(Event::Release {
            ticket: Ticket(ticket),
            unit: unit(7),
        })
    };
    let expected = Action::Recover {
        unit: unit(7),
        cause: RecoverCause::Released,
        ticket: Some(Ticket(1)),
    };
    assert_eq!(release(&mut machine, 1), [expected]);
    assert!(matches!(
        release(&mut machine, 2).as_slice(),
        [Action::Refuse { ticket: Ticket(2), failure: Failure::LimitExceeded(why) }] if why.contains("busy")
    ));
    machine.step(Event::Recovered {
        unit: unit(7),
        outcome: Ok(vec![id(7)]),
    });
    assert_eq!(machine.engine.workloads().count(), 0);
    assert!(matches!(
        release(&mut machine, 3).as_slice(),
        [Action::Refuse {
            ticket: Ticket(3),
            failure: Failure::NoSuchWorkload(_)
        }]
    ));
}

#[test]
fn a_scope_that_is_gone_is_forgotten() {
    let mut machine = routed();
    machine.step(Event::Gone { unit: unit(7) });
    assert_eq!(machine.engine.workloads().count(), 0);
    machine.quiet_ticks(20, &[]);
}

#[test]
fn a_scope_that_was_gone_before_its_move_was_reported_is_forgotten_too() {
    let mut machine = Machine::new();
    machine.spawn(7, 1, "make");
    let order = one_move(machine.sample());
    machine.step(Event::Gone { unit: unit(7) });
    machine.moved(&order);
    machine.scopes.clear();
    machine.quiet_ticks(2, &[]);
    assert_eq!(machine.engine.workloads().count(), 1);
    machine.quiet_ticks(1, &[]);
    assert_eq!(machine.engine.workloads().count(), 0);
}

#[test]
fn an_adopted_workload_replaces_what_was_known_and_counts_on() {
    let mut machine = routed();
    machine.sample();
    for _ in 0..5 {
        assert_eq!(burn(&mut machine, 0.0), []);
    }
    let mut again = workload(7, "heavy", Placement::Routed);
    again.root = id(8);
    machine.step(Event::Adopted(again));
    let tracked = machine.engine.workload(&unit(7)).expect("tracked");
    assert_eq!((tracked.workload.root, tracked.low_samples), (id(8), 5));
}
