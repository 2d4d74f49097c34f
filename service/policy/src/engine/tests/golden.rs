//! The routing traces of the Python original, with its results.

use std::time::Duration;

use super::{Machine, id, one_move, unit};
use crate::action::{Action, RecoverCause};
use crate::event::Event;

/// Seconds at which the only process of a trace was routed, and at which it came back. The first value
/// of a trace is its load in the interval that ends at zero.
fn replay(trace: &[f64]) -> (Option<u64>, Option<u64>) {
    let mut machine = Machine::new();
    let (mut routed, mut recovered) = (None, None);
    machine.spawn(7, 1, "unknown-program");
    // What makes the sample at zero a rate.
    assert_eq!(machine.sample(), []);
    let start = machine.now + Duration::from_secs(2);
    for load in trace {
        let actions = match routed {
            None => machine.tick(&[(7, *load)]),
            Some(_) => {
                let usec = (load / 100.0 * 2e6) as u64;
                machine.scopes.values_mut().for_each(|used| *used += usec);
                machine.tick(&[])
            }
        };
        let at = (machine.now - start).as_secs();
        match actions.first() {
            None => {}
            Some(Action::Recover { cause, .. }) => {
                assert!(matches!(cause, RecoverCause::Calm { .. }));
                assert_eq!(recovered.replace(at), None);
                machine.scopes.clear();
                machine.step(Event::Recovered {
                    unit: unit(7),
                    outcome: Ok(vec![id(7)]),
                });
            }
            Some(_) => {
                assert_eq!(routed.replace(at), None);
                let order = one_move(actions);
                machine.moved(&order);
            }
        }
    }
    (routed, recovered)
}

fn trace(parts: &[(usize, &[f64])]) -> Vec<f64> {
    parts
        .iter()
        .flat_map(|(times, loads)| loads.repeat(*times))
        .collect()
}

#[test]
fn the_baseline_column_of_the_golden_table() {
    let idle: &[f64] = &[0.0];
    let nothing = (None, None);
    for (name, parts, expected) in [
        (
            "100, then 20x0",
            vec![(1, &[100.0][..]), (20, idle)],
            nothing,
        ),
        (
            "2x90, then 20x0",
            vec![(2, &[90.0][..]), (20, idle)],
            nothing,
        ),
        (
            "(90,65)x2, then 20x0",
            vec![(2, &[90.0, 65.0][..]), (20, idle)],
            nothing,
        ),
        (
            "10x90, then 20x0",
            vec![(10, &[90.0][..]), (20, idle)],
            (Some(6), Some(40)),
        ),
        (
            "(76,62)x12, then 20x0",
            vec![(12, &[76.0, 62.0][..]), (20, idle)],
            nothing,
        ),
        (
            "10x72, then 20x0",
            vec![(10, &[72.0][..]), (20, idle)],
            (Some(6), Some(40)),
        ),
        (
            "(90,65)x10, then 30x0",
            vec![(10, &[90.0, 65.0][..]), (30, idle)],
            nothing,
        ),
    ] {
        assert_eq!(replay(&trace(&parts)), expected, "{name}");
    }
}
