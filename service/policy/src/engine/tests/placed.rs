//! Explicit placement is the person's word.

use super::{Machine, SOURCE, id, moves, unit, workload};
use crate::action::Placement;
use crate::event::Event;

/// A machine on which `line` runs as process 7 in a scope that a person placed in protected.
fn protect(line: &str) -> (Machine, String) {
    let mut machine = Machine::new();
    machine.step(Event::Adopted(workload(7, "protected", Placement::Placed)));
    machine.scopes.insert(unit(7), 0);
    let cgroup = format!(
        "/user.slice/protected.slice/protected-workload.slice/{}",
        unit(7)
    );
    machine.spawn_in(&cgroup, 7, 1, line);
    (machine, cgroup)
}

#[test]
fn a_protected_build_stays_whole() {
    let (mut machine, cgroup) = protect("cargo build");
    machine.spawn_in(&cgroup, 8, 7, "rustc x.rs");
    machine.spawn_in(&cgroup, 9, 7, "hog");
    // Below a group that the work made for itself, and with a parent that has ended.
    machine.spawn_in(&format!("{cgroup}/sub"), 10, 1, "make");
    machine.sample();
    machine.quiet_ticks(20, &[(7, 100.0), (8, 100.0), (9, 100.0), (10, 100.0)]);
}

#[test]
fn of_a_protected_shell_only_the_root_stays() {
    let (mut machine, cgroup) = protect("bash");
    machine.spawn_in(&cgroup, 8, 7, "cargo build");
    machine.spawn_in(&cgroup, 9, 7, "hog");
    assert_eq!(moves(&machine.sample()), [8]);
    let loads = [(7, 100.0), (9, 100.0)];
    machine.quiet_ticks(3, &loads);
    assert_eq!(moves(&machine.tick(&loads)), [9]);
    machine.quiet_ticks(5, &loads);
}

#[test]
fn a_shell_that_becomes_a_build_stays_whole() {
    let (mut machine, cgroup) = protect("env X=1 bash");
    machine.sample();
    machine.exec(7, "cargo build");
    machine.spawn_in(&cgroup, 8, 7, "rustc x.rs");
    machine.quiet_ticks(10, &[(7, 100.0), (8, 100.0)]);
}

#[test]
fn every_process_that_the_caller_named_stays() {
    let mut machine = Machine::new();
    machine.spawn(7, 1, "agent");
    machine.spawn(8, 1, "make");
    machine.spawn(9, 7, "worker");
    let action = machine.request(1, &[7, 8], "protected", Placement::Placed);
    assert!(matches!(action, crate::action::Action::Move(_)));
    let outcome = Ok(workload(7, "protected", Placement::Placed));
    machine.step(Event::Moved {
        root: id(7),
        outcome,
    });
    machine.scopes.insert(unit(7), 0);
    for pid in [7, 8, 9] {
        machine.running(pid).cgroup = format!("{SOURCE}/{}", unit(7)).as_str().into();
    }
    machine.sample();
    let loads = [(7, 100.0), (8, 100.0), (9, 100.0)];
    machine.quiet_ticks(3, &loads);
    assert_eq!(moves(&machine.tick(&loads)), [9]);
}

#[test]
fn placed_work_never_comes_back_by_itself() {
    let (mut machine, _) = protect("sleep 1000");
    machine.sample();
    machine.quiet_ticks(200, &[]);
    assert!(
        machine
            .engine
            .workload(&unit(7))
            .is_some_and(|tracked| tracked.low_samples >= 199)
    );
}
