//! The exact decision at each threshold's edge.

use super::super::{Direction, Signal, Telemetry, Wish, aimd, protected, step};
use super::{calm, settings};

/// The next number below and above.
fn around(edge: f64) -> (f64, f64) {
    (edge.next_down(), edge.next_up())
}

fn direction(wish: Result<Wish, Vec<super::super::Fault>>) -> Direction {
    wish.expect("good telemetry").direction
}

fn stepped(change: impl FnOnce(&mut Telemetry)) -> Direction {
    let mut telemetry = calm();
    change(&mut telemetry);
    direction(step(&telemetry, &settings()))
}

fn by_protected(change: impl FnOnce(&mut Telemetry)) -> Direction {
    let mut telemetry = calm();
    change(&mut telemetry);
    direction(protected(&telemetry, &settings()))
}

fn proposed(change: impl FnOnce(&mut Telemetry)) -> (f64, &'static str) {
    let mut telemetry = calm();
    change(&mut telemetry);
    let proposal = aimd(&telemetry, 200.0, &settings()).expect("good telemetry");
    (proposal.to, proposal.why)
}

#[test]
fn step_goes_down_from_the_high_pressure_on() {
    let at = |pressure| stepped(|t| t.pressure = Signal::now(pressure));
    assert_eq!(at(0.40), Direction::Down);
    assert_eq!(at(around(0.40).0), Direction::Stay);
}

#[test]
fn step_goes_down_from_the_high_delay_on() {
    let at = |delay| stepped(|t| t.delay_ms = Signal::now(delay));
    assert_eq!(at(20.0), Direction::Down);
    assert_eq!(at(around(20.0).0), Direction::Stay);
}

#[test]
fn step_goes_up_only_while_pressure_and_delay_are_low() {
    let at = |pressure, delay| {
        stepped(|t| {
            t.pressure = Signal::now(pressure);
            t.delay_ms = Signal::now(delay);
            t.demand = Signal::now(1.0);
        })
    };
    assert_eq!(at(0.10, 5.0), Direction::Up);
    assert_eq!(at(around(0.10).1, 5.0), Direction::Stay);
    assert_eq!(at(0.10, around(5.0).1), Direction::Stay);
}

#[test]
fn step_weighs_throttling_and_demand_at_their_edges() {
    let at = |throttled, demand| {
        stepped(|t| {
            t.throttled = Signal::now(throttled);
            t.demand = Signal::now(demand);
        })
    };
    assert_eq!(at(0.10, 0.0), Direction::Up);
    assert_eq!(at(around(0.10).0, 0.0), Direction::Down);
    assert_eq!(at(0.0, 0.60), Direction::Up);
    assert_eq!(at(0.0, around(0.60).0), Direction::Stay);
    assert_eq!(at(0.0, 0.15), Direction::Stay);
    assert_eq!(at(0.0, around(0.15).0), Direction::Down);
}

#[test]
fn no_demand_takes_nothing_away_from_a_machine_that_is_not_calm() {
    let at = |pressure| {
        stepped(|t| {
            t.pressure = Signal::now(pressure);
            t.demand = Signal::now(0.0);
        })
    };
    assert_eq!(at(0.10), Direction::Down);
    assert_eq!(at(around(0.10).1), Direction::Stay);
}

#[test]
fn protected_goes_by_the_protected_sides_pressure_alone() {
    let at = |pressure| by_protected(|t| t.protected_pressure = Signal::now(pressure));
    assert_eq!(at(0.40), Direction::Down);
    assert_eq!(at(around(0.40).0), Direction::Stay);
    let wanted = |pressure| {
        by_protected(|t| {
            t.protected_pressure = Signal::now(pressure);
            t.throttled = Signal::now(0.10);
            // What the host feels does not count.
            t.pressure = Signal::now(1.0);
            t.delay_ms = Signal::now(1000.0);
        })
    };
    assert_eq!(wanted(0.10), Direction::Up);
    assert_eq!(wanted(around(0.10).1), Direction::Stay);
}

#[test]
fn protected_takes_nothing_while_its_own_budget_throttles_it() {
    let at = |own| {
        by_protected(|t| {
            t.protected_pressure = Signal::now(0.9);
            t.protected_throttled = Signal::now(own);
        })
    };
    assert_eq!(at(0.0), Direction::Down);
    assert_eq!(at(f64::MIN_POSITIVE), Direction::Stay);
}

#[test]
fn protected_wants_more_from_the_demands_edge_on_and_less_from_none() {
    let at = |demand| by_protected(|t| t.demand = Signal::now(demand));
    assert_eq!(at(0.60), Direction::Up);
    assert_eq!(at(around(0.60).0), Direction::Stay);
    assert_eq!(at(0.0), Direction::Stay);
}

#[test]
fn aimd_multiplies_from_the_high_pressure_on() {
    let at = |pressure| proposed(|t| t.pressure = Signal::now(pressure));
    assert_eq!(at(0.40), (160.0, "pressure"));
    assert_eq!(at(around(0.40).0), (200.0, "keep"));
}

#[test]
fn aimd_believes_the_delay_only_with_a_pressure_that_is_not_low() {
    let at = |pressure, delay| {
        proposed(|t| {
            t.pressure = Signal::now(pressure);
            t.delay_ms = Signal::now(delay);
        })
    };
    assert_eq!(at(around(0.10).1, 20.0), (160.0, "delay"));
    assert_eq!(at(0.10, 20.0), (200.0, "keep"));
    assert_eq!(at(around(0.10).1, around(20.0).0), (200.0, "keep"));
}

#[test]
fn aimd_adds_while_low_for_demand_or_throttling() {
    let at = |throttled, demand, delay| {
        proposed(|t| {
            t.throttled = Signal::now(throttled);
            t.demand = Signal::now(demand);
            t.delay_ms = Signal::now(delay);
        })
    };
    assert_eq!(at(0.10, 0.0, 5.0), (210.0, "throttled"));
    assert_eq!(at(0.0, 0.60, 5.0), (210.0, "demand"));
    assert_eq!(at(around(0.10).0, around(0.60).0, 5.0), (200.0, "keep"));
    assert_eq!(at(1.0, 1.0, around(5.0).1), (200.0, "keep"));
}

#[test]
fn aimd_proposes_nothing_without_the_hosts_pressure() {
    let mut telemetry = calm();
    telemetry.delay_ms = Signal::now(1000.0);
    for lost in [Signal::Absent, Signal::Pending, Signal::Broken("x".into())] {
        telemetry.pressure = lost;
        assert_eq!(aimd(&telemetry, 200.0, &settings()), None);
    }
}
