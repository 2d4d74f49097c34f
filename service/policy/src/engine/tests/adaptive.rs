//! Routing by what a command usually uses.

use std::sync::Arc;

use super::{Machine, id, moves, one_move};
use crate::action::{Failure, Why};
use crate::eligibility::NeverMoved;
use crate::rules::RuleSet;
use crate::settings::Settings;

fn on() -> Settings {
    let mut settings = Settings::default();
    settings.adaptive.enabled = true;
    settings
}

/// One process of a command that is idle for as long as it takes to know it.
fn known_as_idle(settings: Settings, line: &str) -> Machine {
    let mut machine = Machine::with(settings);
    machine.spawn(7, 1, line);
    machine.sample();
    machine.quiet_ticks(8, &[]);
    machine
}

#[test]
fn a_command_that_is_normally_idle_is_routed_at_its_first_hot_sample() {
    let mut machine = known_as_idle(on(), "/usr/bin/indexer watch --all");
    machine.quiet_ticks(1, &[(7, 61.0)]);
    let order = one_move(machine.tick(&[(7, 90.0)]));
    let Why::Adaptive {
        command,
        cpu,
        score,
        threshold,
        mean,
        samples,
    } = order.why
    else {
        panic!("{order:?}");
    };
    assert_eq!(
        (&*command, cpu, threshold, samples),
        ("indexer:watch", 90.0, 0.75, 9)
    );
    assert!((mean - 0.15 * 61.0).abs() < 1e-9);
    assert!((score - (0.65 * 0.9 + 0.35)).abs() < 1e-9);
    assert_eq!(order.class, "heavy");
}

#[test]
fn a_workload_is_scored_by_its_command_once_enough_is_known_and_it_is_asked_for() {
    let argv: Vec<Box<str>> = vec!["/usr/bin/indexer".into(), "watch".into()];
    let machine = known_as_idle(on(), "/usr/bin/indexer watch");
    let score = machine.engine.score(&argv, 90.0).expect("it is known");
    assert!((score - (0.65 * 0.9 + 0.35)).abs() < 1e-9, "{score}");
    assert_eq!(machine.engine.score(&["other".into()], 90.0), None);
    assert_eq!(machine.engine.score(&[], 90.0), None);
    let off = known_as_idle(Settings::default(), "/usr/bin/indexer watch");
    assert_eq!(off.engine.score(&argv, 90.0), None);
}

#[test]
fn it_is_off_unless_asked_for() {
    let mut machine = known_as_idle(Settings::default(), "indexer");
    machine.quiet_ticks(3, &[(7, 100.0)]);
    assert!(machine.engine.learned().is_empty());
}

#[test]
fn too_little_is_known_of_a_command_at_first() {
    let mut machine = Machine::with(on());
    machine.spawn(7, 1, "indexer");
    machine.sample();
    machine.quiet_ticks(7, &[]);
    machine.quiet_ticks(1, &[(7, 100.0)]);
    // Eight samples are known now, of which one was hot.
    assert_eq!(moves(&machine.tick(&[(7, 100.0)])), [7]);
}

#[test]
fn a_command_that_is_always_at_work_is_left_to_the_sustained_rule() {
    let mut settings = on();
    settings.routing.sustained_samples = 1000;
    let mut machine = Machine::with(settings);
    machine.spawn(7, 1, "encoder");
    machine.spawn(8, 1, "encoder");
    machine.sample();
    // What is known of it is what it does, and neither of them is unusual.
    machine.quiet_ticks(200, &[(7, 60.0), (8, 60.0)]);
    machine.quiet_ticks(1, &[(7, 68.0), (8, 60.0)]);
}

#[test]
fn what_one_process_taught_holds_for_the_next_of_its_command() {
    let mut machine = known_as_idle(on(), "indexer watch");
    machine.processes.remove(&7);
    machine.spawn(8, 1, "/opt/bin/indexer watch /home");
    machine.quiet_ticks(1, &[]);
    assert_eq!(moves(&machine.tick(&[(8, 100.0)])), [8]);
}

#[test]
fn another_program_is_another_command() {
    let mut machine = known_as_idle(on(), "indexer");
    machine.exec(7, "encoder");
    machine.quiet_ticks(3, &[(7, 100.0)]);
    assert!(machine.engine.learned().baseline("encoder").is_some());
}

#[test]
fn the_cooldown_holds_for_it() {
    let mut machine = known_as_idle(on(), "indexer");
    assert_eq!(moves(&machine.tick(&[(7, 100.0)])), [7]);
    machine.not_moved(7, Failure::Timeout("late".to_owned()));
    // One hot sample in twenty seconds, then one when they are over.
    machine.quiet_ticks(1, &[(7, 100.0)]);
    machine.quiet_ticks(8, &[]);
    assert_eq!(moves(&machine.tick(&[(7, 100.0)])), [7]);
}

#[test]
fn exclusions_and_refusals_hold_for_it() {
    let mut settings = on();
    settings.routing.exclude_patterns = vec!["watch".to_owned()];
    let mut machine = known_as_idle(settings, "indexer watch");
    machine.quiet_ticks(20, &[(7, 100.0)]);
    assert!(
        machine.engine.learned().is_empty(),
        "an excluded process teaches nothing"
    );

    let mut machine = known_as_idle(on(), "indexer");
    assert_eq!(moves(&machine.tick(&[(7, 100.0)])), [7]);
    machine.not_moved(7, Failure::NeverMoved(NeverMoved::ServiceMain));
    machine.quiet_ticks(12, &[]);
    machine.quiet_ticks(20, &[(7, 100.0)]);
}

#[test]
fn a_placed_root_stays() {
    let mut machine = known_as_idle(on(), "indexer");
    let cgroup = format!("{}/{}", super::SOURCE, super::unit(7));
    machine.running(7).cgroup = cgroup.as_str().into();
    machine.step(crate::event::Event::Adopted(super::workload(
        7,
        "protected",
        crate::action::Placement::Placed,
    )));
    machine.scopes.insert(super::unit(7), 0);
    machine.quiet_ticks(20, &[(7, 100.0)]);
}

#[test]
fn a_sample_that_comes_too_soon_teaches_nothing() {
    let mut machine = known_as_idle(on(), "indexer");
    let samples = |machine: &Machine| {
        let known = machine.engine.learned().baseline("indexer");
        known.map(|baseline| baseline.samples)
    };
    assert_eq!(samples(&machine), Some(8));
    for _ in 0..20 {
        machine.now += std::time::Duration::from_millis(10);
        machine.burn(7, 100.0, std::time::Duration::from_millis(10));
        assert_eq!(machine.sample(), []);
    }
    assert_eq!(samples(&machine), Some(8));
}

#[test]
fn switched_off_it_keeps_what_it_knows_and_routes_nothing() {
    let mut machine = known_as_idle(on(), "indexer");
    let rules = Arc::new(RuleSet::shipped());
    machine
        .engine
        .configure(Arc::new(Settings::default()), Arc::clone(&rules));
    machine.quiet_ticks(1, &[(7, 100.0)]);
    machine.quiet_ticks(1, &[]);
    assert_eq!(machine.engine.learned().len(), 1);
    machine.engine.configure(Arc::new(on()), rules);
    assert_eq!(moves(&machine.tick(&[(7, 100.0)])), [7]);
    assert!(machine.engine.process(id(7)).is_some());
}
