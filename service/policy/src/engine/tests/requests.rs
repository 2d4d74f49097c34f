//! What callers ask for, and what is refused.

use super::{Machine, id, moves, one_move, unit, workload};
use crate::action::{Action, Failure, Placement, Why};
use crate::engine::{MAX_PROCESSES, MAX_WORKLOADS};
use crate::event::{Event, Request, Ticket};
use crate::id::ProcId;

fn refused(action: Action) -> Failure {
    match action {
        Action::Refuse { failure, .. } => failure,
        other => panic!("not refused: {other:?}"),
    }
}

fn accepted(action: Action) -> crate::action::Move {
    one_move(vec![action])
}

#[test]
fn a_request_is_a_move_with_its_ticket_and_reason() {
    let mut machine = Machine::new();
    let request = Request {
        ticket: Ticket(5),
        processes: vec![id(7), id(8), id(7)],
        class: "protected".to_owned(),
        placement: Placement::Placed,
        reason: "editor".to_owned(),
        caller_unit: Some("unknown.scope".to_owned()),
        lease: None,
    };
    let order = one_move(machine.step(Event::Request(request)));
    assert_eq!(order.processes, [id(7), id(8)]);
    assert_eq!(
        (order.class.as_str(), order.placement, order.ticket),
        ("protected", Placement::Placed, Some(Ticket(5)))
    );
    assert_eq!(
        order.why,
        Why::Asked {
            reason: "editor".to_owned()
        }
    );
}

#[test]
fn an_unknown_class_is_refused_with_the_known_ones() {
    let mut machine = Machine::new();
    let failure = refused(machine.request(1, &[7], "haevy", Placement::Placed));
    let words = "no class \"haevy\" (did you mean heavy?); there are browser, heavy, protected";
    assert_eq!(failure, Failure::UnknownClass(words.to_owned()));
}

#[test]
fn the_number_of_processes_is_bounded() {
    let mut machine = Machine::new();
    let many: Vec<u32> = (10..11 + MAX_PROCESSES as u32).collect();
    let failure = refused(machine.request(1, &many, "heavy", Placement::Placed));
    assert!(matches!(failure, Failure::LimitExceeded(_)));
    assert_eq!(
        accepted(machine.request(2, &many[1..], "heavy", Placement::Placed))
            .processes
            .len(),
        MAX_PROCESSES
    );
    assert!(matches!(
        refused(machine.request(3, &[], "heavy", Placement::Placed)),
        Failure::NoSuchProcess(_)
    ));
}

#[test]
fn the_number_of_workloads_is_bounded_for_callers_and_for_detection() {
    let mut machine = Machine::new();
    for pid in 0..MAX_WORKLOADS as u32 - 1 {
        machine.step(Event::Adopted(workload(
            1000 + pid,
            "heavy",
            Placement::Placed,
        )));
        machine.scopes.insert(unit(1000 + pid), 0);
    }
    // The last place is taken by a move in flight.
    accepted(machine.request(1, &[7], "heavy", Placement::Placed));
    assert!(matches!(
        refused(machine.request(2, &[8], "heavy", Placement::Placed)),
        Failure::LimitExceeded(_)
    ));
    machine.spawn(9, 1, "make");
    machine.quiet_ticks(2, &[]);
    machine.not_moved(7, Failure::NoSuchProcess("gone".to_owned()));
    assert_eq!(moves(&machine.tick(&[])), [9]);
}

#[test]
fn bounded_work_cannot_promote_itself_in_one_step_or_two() {
    let mut machine = Machine::new();
    machine.step(Event::Adopted(workload(7, "heavy", Placement::Routed)));
    machine.step(Event::Adopted(workload(8, "heavy", Placement::Placed)));
    machine.step(Event::Adopted(workload(9, "protected", Placement::Routed)));
    let ask = |machine: &mut Machine, caller: u32, class: &str, target: ProcId| {
        let request = Request {
            ticket: Ticket(1),
            processes: vec![target],
            class: class.to_owned(),
            placement: Placement::Placed,
            reason: String::new(),
            caller_unit: Some(unit(caller)),
            lease: None,
        };
        machine.step(Event::Request(request)).remove(0)
    };
    // Placed work neither: it may be routed work that placed itself in heavy first.
    for caller in [7, 8] {
        assert!(matches!(
            refused(ask(&mut machine, caller, "protected", id(70))),
            Failure::OutOfReach(_)
        ));
    }
    accepted(ask(&mut machine, 7, "heavy", id(71)));
    accepted(ask(&mut machine, 9, "protected", id(73)));
}

#[test]
fn what_is_on_its_way_is_busy() {
    let mut machine = Machine::new();
    let order = accepted(machine.request(1, &[7, 8], "heavy", Placement::Routed));
    for pid in [7, 8] {
        let failure = refused(machine.request(2, &[pid], "heavy", Placement::Routed));
        assert!(matches!(failure, Failure::LimitExceeded(why) if why.contains("busy")));
    }
    machine.moved(&order);
    // The same class again: still a move.
    accepted(machine.request(3, &[7], "heavy", Placement::Routed));
    // And no way back while that lasts.
    let release = Event::Release {
        ticket: Ticket(4),
        unit: unit(7),
    };
    assert!(matches!(
        refused(machine.step(release).remove(0)),
        Failure::LimitExceeded(_)
    ));
    machine.quiet_ticks(30, &[]);
}

#[test]
fn a_request_does_not_wait_for_a_cooldown() {
    let mut machine = Machine::new();
    machine.spawn(7, 1, "make");
    one_move(machine.sample());
    machine.not_moved(7, Failure::Timeout("late".to_owned()));
    machine.quiet_ticks(1, &[]);
    accepted(machine.request(1, &[7], "heavy", Placement::Routed));
}

#[test]
fn detection_leaves_a_requested_process_and_its_descendants_alone() {
    let mut machine = Machine::new();
    machine.spawn(7, 1, "make");
    machine.spawn(8, 7, "cargo build");
    accepted(machine.request(1, &[7], "protected", Placement::Placed));
    machine.sample();
    machine.quiet_ticks(10, &[(7, 100.0), (8, 100.0)]);
}
