//! Programs that the kernel told of between two samples.

use std::time::Duration;

use super::{Machine, SOURCE, id, moves, one_move, rule_of, unit};
use crate::action::{Action, Failure, Placement, Why};
use crate::eligibility::NeverMoved;
use crate::event::Event;
use crate::settings::Settings;

#[test]
fn a_known_program_is_routed_without_a_sample_and_once() {
    let mut machine = Machine::new();
    machine.spawn(5, 1, "bash");
    machine.sample();
    machine.spawn(7, 5, "cargo build");
    let order = one_move(machine.hear(7));
    assert_eq!(
        (order.root(), order.class.as_str(), order.placement),
        (id(7), "heavy", Placement::Routed)
    );
    assert!(matches!(order.why, Why::KnownHeavy { cpu: None, .. }));
    // Told again, and seen by samples, while the move is on its way.
    assert_eq!(machine.hear(7), []);
    machine.quiet_ticks(2, &[(7, 100.0)]);
    machine.moved(&order);
    machine.quiet_ticks(2, &[]);
}

#[test]
fn nothing_is_counted_and_nothing_is_remembered_of_what_no_sample_showed() {
    let mut machine = Machine::new();
    machine.spawn(7, 1, "editor");
    machine.sample();
    machine.tick(&[(7, 100.0)]);
    machine.spawn(8, 7, "hog");
    assert_eq!(machine.hear(8), []);
    machine.exec(7, "terminal");
    assert_eq!(machine.hear(7), []);
    assert!(machine.engine.process(id(8)).is_none());
    let seen = machine.engine.process(id(7)).expect("it was sampled");
    assert_eq!((seen.cpu, seen.hot_samples), (Some(100.0), 1));
}

#[test]
fn what_a_program_on_its_way_starts_goes_with_it() {
    let mut machine = Machine::new();
    machine.spawn(6, 1, "make all");
    let order = one_move(machine.hear(6));
    machine.spawn(7, 6, "sh -c something");
    machine.spawn(8, 7, "make -C sub");
    assert_eq!(machine.hear(8), []);
    // It has arrived, and the move looks for its descendants still.
    assert_eq!(machine.hear_without(8, &[6]), []);
    assert_eq!(machine.hear_without(8, &[7, 6]), []);
    machine.moved(&order);
    machine.quiet_ticks(2, &[]);
}

#[test]
fn the_topmost_known_program_of_a_control_group_goes_first() {
    let mut machine = Machine::new();
    machine.spawn(5, 1, "bash");
    machine.spawn(6, 5, "make all");
    machine.spawn(7, 6, "sh -c something");
    machine.spawn(8, 7, "make -C sub");
    // The event of 6 was lost.
    assert_eq!(moves(&machine.hear(8)), [6]);
    let mut machine = Machine::new();
    machine.spawn_in("/elsewhere.scope", 6, 1, "make all");
    machine.spawn(8, 6, "make -C sub");
    assert_eq!(moves(&machine.hear(8)), [8]);
}

#[test]
fn what_is_excluded_or_needs_no_routing_is_left_alone() {
    let mut settings = Settings::default();
    settings.routing.exclude_patterns = vec!["--keep-out".to_owned()];
    let mut machine = Machine::with(settings);
    for (pid, line) in [(6, "make --keep-out"), (7, "vim make"), (8, "make -n")] {
        machine.spawn(pid, 1, line);
        assert_eq!(machine.hear(pid), [], "{line}");
        let argv = super::argv(line);
        assert!(!machine.engine.is_candidate(&argv), "{line}");
    }
    assert!(machine.engine.is_candidate(&super::argv("make")));
}

#[test]
fn a_failed_attempt_cools_down_for_events_too() {
    let mut machine = Machine::new();
    machine.spawn(7, 1, "make");
    machine.sample();
    machine.not_moved(7, Failure::Timeout("late".to_owned()));
    machine.now += Duration::from_secs(19);
    assert_eq!(machine.hear(7), []);
    machine.now += Duration::from_secs(2);
    assert_eq!(moves(&machine.hear(7)), [7]);
    machine.not_moved(7, Failure::NeverMoved(NeverMoved::ServiceMain));
    machine.now += Duration::from_secs(30);
    assert_eq!(machine.hear(7), [], "refused for good");
    machine.exec(7, "cargo build");
    assert_eq!(moves(&machine.hear(7)), [7]);
}

#[test]
fn who_came_back_is_left_to_the_samples_until_its_cooldown_ends() {
    let mut machine = Machine::new();
    machine.spawn(7, 1, "make");
    let order = one_move(machine.hear(7));
    machine.moved(&order);
    while !matches!(machine.tick(&[]).as_slice(), [Action::Recover { .. }]) {}
    machine.spawn(9, 1, "pytest");
    assert_eq!(machine.hear(9), [], "while something is on its way back");
    machine.scopes.remove(&unit(7));
    machine.spawn(7, 1, "make");
    machine.step(Event::Recovered {
        unit: unit(7),
        outcome: Ok(vec![id(7)]),
    });
    machine.spawn(8, 7, "cargo build");
    assert_eq!(machine.hear(7), []);
    assert_eq!(machine.hear(8), []);
    assert_eq!(moves(&machine.hear(9)), [9]);
    machine.quiet_ticks(1, &[]);
    assert_eq!(machine.hear(8), []);
}

#[test]
fn a_placed_command_keeps_what_it_starts_once_it_is_known_to_be_heavy() {
    let mut machine = Machine::new();
    let scope = format!("{SOURCE}/{}", unit(7));
    machine.spawn_in(&scope, 7, 1, "workload-guard run -- make");
    machine.spawn_in(&scope, 8, 7, "make -C sub");
    machine.scopes.insert(unit(7), 0);
    let placed = super::workload(7, "protected", Placement::Placed);
    machine.step(Event::Adopted(placed));
    machine.exec(7, "make");
    assert_eq!(machine.hear(7), []);
    assert_eq!(machine.hear(8), []);
    // Of a command that is not, a heavy child is routed.
    machine.exec(7, "bash");
    assert_eq!(moves(&machine.hear(8)), [8]);
}

#[test]
fn a_loop_over_short_builds_does_not_flood_systemd() {
    let mut machine = Machine::new();
    let mut asked = 0;
    for pid in 10..200 {
        machine.spawn(pid, 1, "make");
        asked += machine.hear(pid).len();
    }
    assert_eq!(asked, super::super::executed::MAX_HASTY);
    // What still runs is seen by the sample.
    assert_eq!(machine.sample().len(), 190 - asked);
}

#[test]
fn the_rule_is_named() {
    let mut machine = Machine::new();
    machine.spawn(7, 1, "bash");
    machine.sample();
    machine.tick(&[(7, 20.0)]);
    machine.exec(7, "make -j8");
    let order = one_move(machine.hear(7));
    assert_eq!(rule_of(&order), "make");
}
