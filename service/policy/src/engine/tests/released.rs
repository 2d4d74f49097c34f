//! What somebody released stays where it is until the cooldown ends, all of it.

use super::{Machine, SOURCE, id, moves, one_move, unit, workload};
use crate::action::{Action, Placement};
use crate::event::{Event, Ticket};

/// Releases workload 7, which comes back as `processes`.
fn release(machine: &mut Machine, processes: &[(u32, u32, &str)]) {
    let event = Event::Release {
        ticket: Ticket(1),
        unit: unit(7),
    };
    assert!(matches!(
        machine.step(event).as_slice(),
        [Action::Recover { .. }]
    ));
    machine.scopes.remove(&unit(7));
    for (pid, ppid, line) in processes {
        machine.spawn(*pid, *ppid, line);
    }
    machine.step(Event::Recovered {
        unit: unit(7),
        outcome: Ok(processes.iter().map(|(pid, ..)| id(*pid)).collect()),
    });
}

/// A machine on which `bash script` was routed.
fn routed() -> Machine {
    let mut machine = Machine::new();
    machine.spawn(7, 1, "bash script");
    let order = one_move(vec![machine.request(1, &[7], "heavy", Placement::Routed)]);
    machine.moved(&order);
    machine.sample();
    machine
}

#[test]
fn a_hot_descendant_of_what_was_released_was_routed_again_after_four_samples() {
    let mut machine = routed();
    release(
        &mut machine,
        &[(7, 1, "bash script"), (8, 7, "hog"), (9, 8, "cargo build")],
    );
    let loads = [(8, 100.0), (9, 100.0)];
    machine.quiet_ticks(9, &loads);
    // Cooled down, and hot for long enough.
    assert_eq!(moves(&machine.tick(&loads)), [8]);
}

#[test]
fn what_a_released_tree_starts_is_held_back_as_well() {
    let mut machine = routed();
    release(&mut machine, &[(7, 1, "bash script")]);
    machine.sample();
    machine.spawn(8, 7, "make");
    assert_eq!(machine.hear(8), []);
    machine.quiet_ticks(9, &[(8, 100.0)]);
    // Somebody else's is not.
    machine.spawn(10, 1, "make");
    assert_eq!(moves(&machine.hear(10)), [10]);
}

#[test]
fn a_released_tree_without_its_root_is_held_back() {
    let mut machine = routed();
    release(&mut machine, &[(8, 1, "hog"), (9, 8, "hog")]);
    let loads = [(8, 100.0), (9, 100.0)];
    machine.quiet_ticks(9, &loads);
    assert_eq!(moves(&machine.tick(&loads)), [8]);
}

#[test]
fn the_same_of_placed_work_which_was_watched_all_the_time() {
    let mut machine = Machine::new();
    machine.step(Event::Adopted(workload(7, "protected", Placement::Placed)));
    machine.scopes.insert(unit(7), 0);
    machine.spawn_in(&format!("{SOURCE}/{}", unit(7)), 8, 1, "hog");
    machine.quiet_ticks(3, &[(8, 100.0)]);
    release(&mut machine, &[(8, 1, "hog")]);
    machine.quiet_ticks(9, &[(8, 100.0)]);
    assert_eq!(moves(&machine.tick(&[(8, 100.0)])), [8]);
}

#[test]
fn a_tree_that_came_back_calm_is_routed_by_its_next_burst() {
    let mut machine = routed();
    while !matches!(machine.tick(&[]).as_slice(), [Action::Recover { .. }]) {}
    machine.scopes.remove(&unit(7));
    machine.spawn(7, 1, "bash script");
    machine.spawn(8, 7, "hog");
    machine.step(Event::Recovered {
        unit: unit(7),
        outcome: Ok(vec![id(7), id(8)]),
    });
    machine.sample();
    machine.quiet_ticks(3, &[(8, 100.0)]);
    assert_eq!(moves(&machine.tick(&[(8, 100.0)])), [8]);
}
