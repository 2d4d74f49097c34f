//! Sustained load: counters, cooldown, exclusions, clocks.

use std::sync::Arc;
use std::time::Duration;

use super::{Machine, SOURCE, argv, id, moves, one_move};
use crate::action::{Failure, Placement, Why};
use crate::eligibility::NeverMoved;
use crate::event::{Event, Process, Sample};
use crate::id::ProcId;
use crate::rules::RuleSet;
use crate::settings::Settings;

fn timeout() -> Failure {
    Failure::Timeout("late".to_owned())
}

#[test]
fn it_takes_four_hot_samples_in_a_row() {
    let mut machine = Machine::new();
    machine.spawn(7, 1, "hog");
    assert_eq!(machine.sample(), []);
    machine.quiet_ticks(3, &[(7, 100.0)]);
    machine.quiet_ticks(1, &[(7, 69.0)]);
    machine.quiet_ticks(3, &[(7, 100.0)]);
    let order = one_move(machine.tick(&[(7, 80.0)]));
    assert_eq!(
        (
            order.processes.as_slice(),
            order.class.as_str(),
            order.placement
        ),
        (&[id(7)][..], "heavy", Placement::Routed)
    );
    let expected = Why::SustainedCpu {
        tree: false,
        cpu: 80.0,
        threshold: 70.0,
        hot_samples: 4,
    };
    assert_eq!(order.why, expected);
}

#[test]
fn first_sight_is_no_rate_however_much_was_used_before() {
    let mut machine = Machine::new();
    machine.spawn(7, 1, "hog");
    machine.running(7).cpu_usec = 3_600_000_000;
    assert_eq!(machine.sample(), []);
    assert_eq!(
        machine.engine.process(id(7)).and_then(|seen| seen.cpu),
        None
    );
    machine.quiet_ticks(3, &[(7, 100.0)]);
    assert_eq!(
        machine.engine.process(id(7)).map(|seen| seen.hot_samples),
        Some(3)
    );
}

#[test]
fn a_late_sample_is_measured_over_the_time_that_passed() {
    let mut machine = Machine::new();
    machine.spawn(7, 1, "halfway");
    machine.sample();
    for _ in 0..10 {
        // Twice the interval at 50%: over the configured interval that would look like 100%.
        machine.now += Duration::from_secs(4);
        machine.burn(7, 50.0, Duration::from_secs(4));
        assert_eq!(machine.sample(), []);
    }
    assert_eq!(
        machine.engine.process(id(7)).and_then(|seen| seen.cpu),
        Some(50.0)
    );
}

#[test]
fn after_a_gap_counting_starts_afresh() {
    let mut machine = Machine::new();
    machine.spawn(7, 1, "hog");
    machine.sample();
    machine.quiet_ticks(3, &[(7, 100.0)]);
    machine.now += Duration::from_secs(3600);
    machine.burn(7, 100.0, Duration::from_secs(3600));
    assert_eq!(machine.sample(), []);
    assert_eq!(
        machine
            .engine
            .process(id(7))
            .map(|seen| (seen.cpu, seen.hot_samples)),
        Some((None, 0))
    );
    machine.quiet_ticks(3, &[(7, 100.0)]);
    assert_eq!(moves(&machine.tick(&[(7, 100.0)])), [7]);
}

#[test]
fn samples_in_quick_succession_are_no_hot_samples() {
    let mut machine = Machine::new();
    machine.spawn(7, 1, "burst");
    machine.sample();
    for _ in 0..20 {
        machine.now += Duration::from_millis(10);
        machine.burn(7, 100.0, Duration::from_millis(10));
        assert_eq!(machine.sample(), []);
    }
    assert_eq!(
        machine.engine.process(id(7)).map(|seen| seen.hot_samples),
        Some(0)
    );
}

#[test]
fn a_pid_that_was_used_again_starts_at_zero() {
    let mut machine = Machine::new();
    machine.spawn(7, 1, "hog");
    machine.sample();
    machine.quiet_ticks(3, &[(7, 100.0)]);
    machine.processes.remove(&7);
    machine.quiet_ticks(1, &[]);
    assert!(machine.engine.process(id(7)).is_none());
    machine.spawn(7, 1, "hog");
    machine.quiet_ticks(4, &[(7, 100.0)]);
}

#[test]
fn only_one_move_is_in_flight_and_a_failed_one_cools_down() {
    let mut machine = Machine::new();
    machine.spawn(7, 1, "hog");
    machine.sample();
    machine.quiet_ticks(3, &[(7, 100.0)]);
    assert_eq!(moves(&machine.tick(&[(7, 100.0)])), [7]);
    // In flight for longer than the cooldown.
    machine.quiet_ticks(15, &[(7, 100.0)]);
    machine.not_moved(7, timeout());
    // 20 s from the failure.
    machine.quiet_ticks(9, &[(7, 100.0)]);
    assert_eq!(moves(&machine.tick(&[(7, 100.0)])), [7]);
}

#[test]
fn what_fails_for_ever_is_tried_less_and_less_often() {
    for (cooldown, most) in [(0, 45), (20, 8)] {
        let mut settings = Settings::default();
        settings.routing.cooldown = Duration::from_secs(cooldown);
        let mut machine = Machine::with(settings);
        machine.spawn(7, 1, "worker");
        let mut tries = 0;
        for _ in 0..600 {
            if !moves(&machine.tick(&[(7, 100.0)])).is_empty() {
                machine.not_moved(7, timeout());
                tries += 1;
            }
        }
        assert!(
            (4..=most).contains(&tries),
            "cooldown {cooldown} s: {tries} tries in 20 minutes"
        );
    }
}

#[test]
fn what_is_never_moved_is_asked_again_only_after_an_exec() {
    for failure in [
        Failure::NeverMoved(NeverMoved::ServiceMain),
        Failure::OutOfReach("root's".to_owned()),
    ] {
        let mut machine = Machine::new();
        machine.spawn(7, 1, "hog");
        machine.sample();
        machine.quiet_ticks(3, &[(7, 100.0)]);
        assert_eq!(moves(&machine.tick(&[(7, 100.0)])), [7]);
        machine.not_moved(7, failure);
        machine.quiet_ticks(30, &[(7, 100.0)]);
        machine.exec(7, "other-hog");
        assert_eq!(moves(&machine.tick(&[(7, 100.0)])), [7]);
    }
}

#[test]
fn excluded_programs_are_not_routed_but_their_children_are() {
    let mut settings = Settings::default();
    settings.routing.exclude_patterns = vec!["--precious".to_owned()];
    let mut machine = Machine::with(settings);
    machine.spawn(7, 1, "hog --precious");
    machine.spawn(8, 7, "child");
    machine.spawn(9, 7, "make --precious");
    machine.sample();
    machine.quiet_ticks(3, &[(7, 100.0), (8, 100.0), (9, 100.0)]);
    let actions = machine.tick(&[(7, 100.0), (8, 100.0), (9, 100.0)]);
    assert_eq!(moves(&actions), [8]);
}

#[test]
fn the_topmost_hot_process_takes_its_descendants_along() {
    let mut machine = Machine::new();
    machine.spawn(6, 1, "idle-parent");
    machine.spawn(7, 6, "hog");
    machine.spawn(8, 7, "idle-child");
    machine.spawn(9, 8, "hot-grandchild");
    machine.spawn_in("/other.scope", 10, 9, "hot-elsewhere");
    machine.sample();
    let loads = [(7, 90.0), (9, 90.0), (10, 90.0)];
    machine.quiet_ticks(3, &loads);
    assert_eq!(moves(&machine.tick(&loads)), [7, 10]);
    // Not while the root is on its way, either.
    machine.quiet_ticks(5, &loads);
}

#[test]
fn the_hot_child_of_a_process_that_stays_is_routed() {
    let mut machine = Machine::new();
    machine.spawn(7, 1, "shell");
    machine.spawn(8, 7, "hog");
    machine.sample();
    let loads = [(7, 90.0), (8, 90.0)];
    machine.quiet_ticks(3, &loads);
    assert_eq!(moves(&machine.tick(&loads)), [7]);
    machine.not_moved(7, Failure::NeverMoved(NeverMoved::TerminalLeader));
    assert_eq!(moves(&machine.tick(&loads)), [8]);
}

#[test]
fn other_settings_hold_at_once_and_counters_go_on() {
    let mut machine = Machine::new();
    machine.spawn(7, 1, "hog");
    machine.spawn(8, 1, "make");
    machine.spawn(9, 1, "lukewarm");
    machine.sample();
    machine.not_moved(8, timeout());
    let loads = [(7, 100.0), (8, 5.0), (9, 30.0)];
    machine.quiet_ticks(2, &loads);
    let mut settings = Settings::default();
    settings.routing.sustained_samples = 3;
    settings.routing.exclude_patterns = vec!["make".to_owned()];
    machine
        .engine
        .configure(Arc::new(settings), Arc::new(RuleSet::shipped()));
    assert_eq!(moves(&machine.tick(&loads)), [7]);
    machine.quiet_ticks(12, &loads);
    machine
        .engine
        .configure(Arc::new(Settings::default()), Arc::new(RuleSet::default()));
    machine.quiet_ticks(1, &loads);
    machine
        .engine
        .configure(Arc::new(Settings::default()), Arc::new(RuleSet::shipped()));
    assert_eq!(moves(&machine.tick(&loads)), [8]);
}

#[test]
fn a_parent_that_started_later_is_another_process_with_its_pid() {
    let mut machine = Machine::new();
    for (pid, ppid) in [(7, 8), (8, 9), (9, 7), (10, 10), (11, 7)] {
        machine.spawn_in(SOURCE, pid, ppid, "hog");
    }
    machine.sample();
    let loads: Vec<(u32, f64)> = (7..12).map(|pid| (pid, 90.0)).collect();
    machine.quiet_ticks(3, &loads);
    assert_eq!(moves(&machine.tick(&loads)), [7, 8, 10]);
}

#[test]
fn a_circle_of_parents_is_no_endless_loop() {
    let mut machine = Machine::new();
    machine.sample();
    let process = |pid: u32, ppid: u32, cpu_usec| Process {
        id: ProcId { pid, start: 5 },
        ppid,
        cgroup: SOURCE.into(),
        cpu_usec,
        reaped_usec: 0,
        leads_session: false,
        has_terminal: false,
        argv: argv("hog"),
    };
    let mut asked = Vec::new();
    for round in 0..8 {
        machine.now += Duration::from_secs(2);
        let used = round * 2_000_000;
        let sample = Sample {
            processes: vec![
                process(7, 8, used),
                process(8, 7, used),
                process(9, 9, used),
            ],
            ..Sample::default()
        };
        asked.extend(moves(&machine.step(Event::Sample(sample))));
    }
    assert_eq!(asked, [9]);
}
