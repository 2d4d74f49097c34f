//! The quota's path over each trace.

use super::super::{Policy, Replayed, Trace, replay, traces};
use super::settings;

fn trace(name: &str) -> Trace {
    let found = traces().into_iter().find(|trace| trace.name == name);
    found.unwrap_or_else(|| panic!("no trace {name}"))
}

fn path(name: &str, policy: Replayed) -> Vec<f64> {
    let path = replay(&trace(name), policy, &settings());
    path.into_iter().map(|(quota, _)| quota).collect()
}

fn step(name: &str) -> Vec<f64> {
    path(name, Replayed::Acting(Policy::Step))
}

#[test]
fn step_over_the_controller_traces() {
    assert_eq!(
        step("stable_low_pressure"),
        [
            250.0, 250.0, 300.0, 300.0, 350.0, 350.0, 400.0, 400.0, 400.0, 400.0, 400.0, 400.0
        ]
    );
    assert_eq!(
        step("sustained_pressure"),
        [
            150.0, 150.0, 100.0, 100.0, 100.0, 100.0, 100.0, 100.0, 150.0, 150.0, 200.0, 200.0,
            250.0, 250.0, 300.0, 300.0
        ]
    );
    // The burst begins inside the dwell after the last rise.
    assert_eq!(
        step("burst_pressure"),
        [
            250.0, 250.0, 300.0, 300.0, 250.0, 250.0, 300.0, 300.0, 350.0, 350.0, 400.0, 400.0,
            400.0, 400.0, 400.0
        ]
    );
    let mut down = vec![200.0, 150.0, 150.0];
    down.extend([100.0; 17]);
    assert_eq!(step("oscillating_pressure"), down);
    assert_eq!(
        step("high_demand_throttled"),
        [
            250.0, 250.0, 300.0, 300.0, 350.0, 350.0, 400.0, 400.0, 400.0, 400.0
        ]
    );
    assert_eq!(
        step("missing_psi"),
        [
            250.0, 250.0, 300.0, 300.0, 250.0, 250.0, 200.0, 200.0, 250.0, 250.0, 300.0
        ]
    );
}

#[test]
fn pressure_to_recovery_is_monotone_down_then_up_with_the_dwell_between_changes() {
    for policy in [Policy::Step, Policy::Protected] {
        let path = path("pressure_to_recovery", Replayed::Acting(policy));
        let (down, up) = path.split_at(10);
        assert!(down.is_sorted_by(|a, b| a >= b), "{down:?}");
        assert!(up.is_sorted(), "{up:?}");
        assert_eq!(down.last(), Some(&100.0));
        let changes: Vec<usize> = std::iter::once(300.0)
            .chain(path.iter().copied())
            .collect::<Vec<f64>>()
            .windows(2)
            .enumerate()
            .filter(|(_, pair)| pair[0] != pair[1])
            .map(|(at, _)| at)
            .collect();
        // Points are 5 s apart and the dwell is 10 s.
        assert!(changes.windows(2).all(|pair| pair[1] - pair[0] >= 2));
        assert_eq!(changes, [0, 2, 4, 6, 10, 12, 14, 16, 18]);
        assert_eq!(up.last(), Some(&350.0));
    }
}

#[test]
fn aimd_over_the_controller_traces() {
    assert_eq!(
        path("sustained_pressure", Replayed::Aimd),
        [
            160.0, 160.0, 128.0, 128.0, 102.0, 102.0, 100.0, 100.0, 110.0, 110.0, 120.0, 120.0,
            130.0, 130.0, 140.0, 140.0
        ]
    );
    assert_eq!(path("missing_psi", Replayed::Aimd), [200.0; 11]);
    let mut waves = vec![200.0, 160.0, 160.0, 128.0, 128.0, 102.0, 102.0];
    waves.extend([100.0; 13]);
    assert_eq!(path("oscillating_pressure", Replayed::Aimd), waves);
}

#[test]
fn gradient_lowers_only_while_the_delay_grows() {
    // 28 ms from the start on: nothing that it grew from. Then low for eight intervals.
    let mut sustained = vec![200.0; 8];
    sustained.extend([210.0, 210.0, 220.0, 220.0, 230.0, 230.0, 240.0, 240.0]);
    assert_eq!(path("sustained_pressure", Replayed::Gradient), sustained);
    assert_eq!(
        path("missing_psi", Replayed::Gradient),
        [
            210.0, 210.0, 220.0, 220.0, 198.0, 198.0, 198.0, 208.0, 208.0, 218.0, 218.0
        ]
    );
    assert_eq!(
        path("pressure_to_recovery", Replayed::Gradient),
        [300.0; 20]
    );
}

#[test]
fn protected_over_a_trace_without_the_protected_sides_pressure_is_frozen() {
    let path = replay(
        &trace("missing_psi"),
        Replayed::Acting(Policy::Protected),
        &settings(),
    );
    assert!(
        path.iter()
            .all(|(quota, words)| *quota == 200.0 && words.starts_with("frozen: "))
    );
}
