//! Known-heavy programs.

use super::{Machine, SOURCE, id, moves, one_move, rule_of, unit};
use crate::action::{Action, Failure, Placement, Why};
use crate::eligibility::NeverMoved;
use crate::event::Event;

#[test]
fn a_known_program_is_routed_at_first_sight() {
    let mut machine = Machine::new();
    machine.spawn(7, 1, "cargo build");
    let order = one_move(machine.sample());
    assert_eq!(
        (order.root(), order.class.as_str(), order.placement),
        (id(7), "heavy", Placement::Routed)
    );
    assert_eq!(rule_of(&order), "cargo");
    assert!(matches!(order.why, Why::KnownHeavy { cpu: None, .. }));
    machine.quiet_ticks(3, &[(7, 100.0)]);
    machine.moved(&order);
    assert_eq!(
        machine
            .engine
            .workload(&unit(7))
            .map(|tracked| tracked.workload.root),
        Some(id(7))
    );
}

#[test]
fn a_known_process_that_executes_a_known_program_is_routed() {
    let mut machine = Machine::new();
    machine.spawn(7, 1, "bash");
    machine.sample();
    machine.quiet_ticks(2, &[(7, 10.0)]);
    // Equal arguments in another allocation are the same program.
    machine.exec(7, "bash");
    machine.quiet_ticks(1, &[(7, 10.0)]);
    machine.exec(7, "make -j8");
    let order = one_move(machine.tick(&[(7, 10.0)]));
    assert_eq!(rule_of(&order), "make");
    assert!(matches!(order.why, Why::KnownHeavy { cpu: Some(cpu), .. } if cpu == 10.0));
}

#[test]
fn only_the_topmost_of_a_tree_is_routed_but_another_control_group_is_another_workload() {
    let mut machine = Machine::new();
    machine.spawn(5, 1, "bash");
    machine.spawn(6, 5, "make all");
    machine.spawn(7, 6, "sh -c something");
    machine.spawn(8, 7, "make -C sub");
    machine.spawn_in("/elsewhere.scope", 9, 8, "cargo build");
    machine.spawn(10, 5, "pytest");
    assert_eq!(moves(&machine.sample()), [6, 9, 10]);
}

#[test]
fn a_known_child_of_what_is_never_moved_is_routed() {
    let mut machine = Machine::new();
    machine.spawn(7, 1, "make");
    machine.spawn(8, 7, "cargo build");
    assert_eq!(moves(&machine.sample()), [7]);
    machine.quiet_ticks(1, &[]);
    machine.not_moved(7, Failure::NeverMoved(NeverMoved::ServiceMain));
    assert_eq!(moves(&machine.tick(&[])), [8]);
    machine.quiet_ticks(20, &[]);
}

#[test]
fn a_sample_that_is_older_than_the_move_routes_nothing_twice() {
    let mut machine = Machine::new();
    machine.spawn(7, 1, "make");
    let order = one_move(machine.sample());
    machine.moved(&order);
    // As before the move, with a child that was not seen yet.
    machine.spawn(7, 1, "make");
    machine.spawn(8, 7, "cargo build");
    machine.quiet_ticks(1, &[]);
}

#[test]
fn a_watched_process_of_a_routed_workload_is_left_alone() {
    let mut machine = Machine::new();
    machine.spawn(7, 1, "make");
    let order = one_move(machine.sample());
    machine.moved(&order);
    machine.spawn_in(&format!("{SOURCE}/{}/sub", unit(7)), 9, 1, "cargo build");
    machine.quiet_ticks(6, &[(9, 100.0)]);
}

#[test]
fn a_large_tree_is_not_split_by_the_samples_during_its_move() {
    let mut machine = Machine::new();
    machine.spawn(7, 1, "make -j8");
    machine.spawn(8, 7, "cargo build");
    let order = one_move(machine.sample());
    // The root goes first; its child, which a rule names as well, is still to be seen.
    let root = machine.processes.remove(&7).expect("spawned");
    let child = one_move(machine.tick(&[]));
    assert_eq!(child.root(), id(8));
    machine.processes.insert(7, root);
    machine.moved(&order);
    assert!(machine.engine.is_overtaken(&child, &unit(7)));
    assert_eq!(machine.step(Event::Overtaken { root: id(8) }), []);
    assert!(!machine.engine.is_busy(id(8)));
    // The caller's word holds wherever the process is by now.
    let asked = machine.request(1, &[8], "browser", Placement::Placed);
    assert!(
        !machine
            .engine
            .is_overtaken(&one_move(vec![asked]), &unit(7))
    );
}

/// Brings workload 7 back, as `processes`.
fn come_back(machine: &mut Machine, processes: &[(u32, u32, &str)]) {
    let actions = loop {
        let actions = machine.tick(&[]);
        if !actions.is_empty() {
            break actions;
        }
    };
    assert!(
        matches!(actions.as_slice(), [Action::Recover { .. }]),
        "{actions:?}"
    );
    machine.scopes.remove(&unit(7));
    for (pid, ppid, line) in processes {
        machine.spawn(*pid, *ppid, line);
    }
    machine.step(Event::Recovered {
        unit: unit(7),
        outcome: Ok(processes.iter().map(|(pid, ..)| id(*pid)).collect()),
    });
}

#[test]
fn an_idle_build_daemon_does_not_go_to_and_fro() {
    let mut machine = Machine::new();
    machine.spawn(7, 1, "ollama serve");
    let order = one_move(machine.sample());
    machine.moved(&order);
    come_back(
        &mut machine,
        &[(7, 1, "ollama serve"), (8, 7, "ollama runner --model x")],
    );
    machine.quiet_ticks(100, &[(7, 1.0), (8, 2.0)]);
    // One hot sample of its tree, where an unknown program needs four.
    let order = one_move(machine.tick(&[(7, 30.0), (8, 45.0)]));
    assert_eq!(order.root(), id(7));
    assert!(
        matches!(order.why, Why::KnownHeavy { cpu: Some(cpu), .. } if (cpu - 75.0).abs() < 0.01)
    );
}

#[test]
fn what_came_back_cools_down_before_it_is_routed_again() {
    let mut machine = Machine::new();
    machine.spawn(7, 1, "make");
    let order = one_move(machine.sample());
    machine.moved(&order);
    come_back(&mut machine, &[(7, 1, "make")]);
    machine.quiet_ticks(9, &[(7, 100.0)]);
    assert_eq!(moves(&machine.tick(&[(7, 100.0)])), [7]);
}

#[test]
fn what_came_back_without_its_root_is_not_routed_by_its_name_again() {
    let mut machine = Machine::new();
    machine.spawn(7, 1, "bash -c make");
    let order = one_move(machine.sample());
    machine.moved(&order);
    come_back(&mut machine, &[(8, 1, "make"), (9, 8, "cargo build")]);
    machine.quiet_ticks(30, &[(8, 1.0)]);
    // A command that is given afterwards is not meant.
    machine.spawn(10, 1, "make");
    assert_eq!(moves(&machine.tick(&[])), [10]);
}

#[test]
fn another_program_in_what_came_back_is_judged_by_its_name() {
    let mut machine = Machine::new();
    machine.spawn(7, 1, "ollama serve");
    let order = one_move(machine.sample());
    machine.moved(&order);
    come_back(&mut machine, &[(7, 1, "ollama serve")]);
    machine.quiet_ticks(20, &[]);
    machine.exec(7, "cargo build");
    assert_eq!(moves(&machine.tick(&[])), [7]);
}
