//! Holds, one at a time.

use std::time::Duration;

use super::{Machine, id, moves, one_move, unit, workload};
use crate::action::{Action, Failure, Placement, RecoverCause};
use crate::event::{Event, Request, Ticket};
use crate::holds::{Deadline, HoldEvent, MAX_HOLDS, MAX_PER_CLIENT, Owner, Terms, Wish};

fn terms(client: Option<&str>, seconds: Option<u64>) -> Terms {
    Terms {
        owner: Owner {
            bus_name: client.map(str::to_owned),
            pid: 50,
            command: "agent".to_owned(),
        },
        reason: "a meeting".to_owned(),
        subject: String::new(),
        since: 0,
        until: seconds.map(|seconds| Deadline {
            boot: Duration::from_secs(seconds),
            wall: 0,
        }),
    }
}

fn want(machine: &mut Machine, wish: Wish, terms: Terms) -> Result<u64, Failure> {
    let event = HoldEvent::Wanted {
        ticket: Ticket(1),
        wish,
        terms,
        caller_unit: None,
    };
    match machine.step(Event::Hold(event)).remove(0) {
        Action::Held { id, .. } => Ok(id),
        Action::Refuse { failure, .. } => Err(failure),
        other => panic!("no answer: {other:?}"),
    }
}

fn told(machine: &mut Machine, event: HoldEvent) -> Vec<Action> {
    machine.step(Event::Hold(event))
}

fn back(root: u32, cause: RecoverCause) -> Vec<Action> {
    vec![Action::Recover {
        unit: unit(root),
        cause,
        ticket: None,
    }]
}

/// A placed workload 7 with a lease.
fn leased(terms: Terms) -> Machine {
    let mut machine = Machine::new();
    machine.spawn(7, 1, "agent");
    let request = Request {
        ticket: Ticket(1),
        processes: vec![id(7)],
        class: "heavy".to_owned(),
        placement: Placement::Placed,
        reason: String::new(),
        caller_unit: None,
        lease: Some(terms),
    };
    let order = one_move(machine.step(Event::Request(request)));
    machine.moved(&order);
    machine
}

#[test]
fn paused_nothing_is_routed_and_what_was_counted_counts_afterwards() {
    let mut machine = Machine::new();
    machine.spawn(7, 1, "make");
    machine.spawn(8, 1, "hog");
    want(&mut machine, Wish::Pause, terms(None, None)).expect("room");
    machine.sample();
    machine.quiet_ticks(6, &[(8, 100.0)]);
    assert_eq!(machine.hear(7), []);
    let ended = told(&mut machine, HoldEvent::Resume { ticket: Ticket(2) });
    assert_eq!(
        ended,
        [Action::Unheld {
            ticket: Ticket(2),
            ended: 1
        }]
    );
    assert_eq!(moves(&machine.tick(&[(8, 100.0)])), [7, 8]);
}

#[test]
fn paused_explicit_placement_and_release_still_work() {
    let mut machine = Machine::new();
    machine.spawn(7, 1, "agent");
    want(&mut machine, Wish::Pause, terms(None, None)).expect("room");
    let order = one_move(vec![machine.request(1, &[7], "heavy", Placement::Placed)]);
    machine.moved(&order);
    let release = Event::Release {
        ticket: Ticket(2),
        unit: unit(7),
    };
    assert!(matches!(
        machine.step(release).as_slice(),
        [Action::Recover { .. }]
    ));
}

#[test]
fn a_move_that_waits_when_the_pause_begins_is_withheld() {
    let mut machine = Machine::new();
    machine.spawn(7, 1, "make");
    let order = one_move(machine.sample());
    assert!(!machine.engine.is_withheld(&order, &[]));
    want(&mut machine, Wish::Pause, terms(None, None)).expect("room");
    assert!(machine.engine.is_withheld(&order, &[]));
}

#[test]
fn an_exempt_tree_is_left_alone_and_its_neighbours_are_not() {
    let mut machine = Machine::new();
    machine.spawn(6, 1, "sh");
    machine.spawn(7, 6, "agent");
    machine.spawn(8, 7, "make");
    machine.spawn(9, 6, "ninja");
    want(&mut machine, Wish::Exempt(id(7)), terms(None, None)).expect("room");
    assert_eq!(moves(&machine.sample()), [9]);
    machine.exec(8, "cargo build");
    assert_eq!(machine.hear(8), []);
    machine.quiet_ticks(8, &[(7, 100.0), (8, 100.0)]);
}

#[test]
fn what_would_take_an_exempt_tree_along_is_left_alone_too() {
    let mut machine = Machine::new();
    machine.spawn(6, 1, "make");
    machine.spawn(7, 6, "agent");
    machine.spawn(8, 6, "ninja");
    want(&mut machine, Wish::Exempt(id(7)), terms(None, None)).expect("room");
    assert_eq!(moves(&machine.sample()), [8]);
}

#[test]
fn exempting_brings_a_routed_tree_back_at_once() {
    let mut machine = Machine::new();
    machine.spawn(7, 1, "make");
    let order = one_move(machine.sample());
    machine.moved(&order);
    want(&mut machine, Wish::Exempt(id(7)), terms(None, None)).expect("room");
    let carried = HoldEvent::Carried { unit: unit(7) };
    assert_eq!(told(&mut machine, carried), back(7, RecoverCause::Exempted));
}

#[test]
fn a_pinned_workload_stays_until_the_process_that_was_named_ends() {
    let mut machine = Machine::new();
    machine.spawn(7, 1, "make");
    let order = one_move(machine.sample());
    machine.moved(&order);
    let pin = Wish::Pin {
        process: id(7),
        unit: Some(unit(7)),
    };
    want(&mut machine, pin, terms(None, None)).expect("room");
    machine.quiet_ticks(30, &[]);
    told(&mut machine, HoldEvent::TreeEnded(id(7)));
    assert!(matches!(
        machine.tick(&[]).as_slice(),
        [Action::Recover {
            cause: RecoverCause::Calm { .. },
            ..
        }]
    ));
}

#[test]
fn only_a_workload_can_be_pinned() {
    let mut machine = Machine::new();
    let pin = Wish::Pin {
        process: id(7),
        unit: None,
    };
    let refused = want(&mut machine, pin, terms(None, None));
    assert!(
        matches!(refused, Err(Failure::NoSuchWorkload(_))),
        "{refused:?}"
    );
}

#[test]
fn routed_work_cannot_hold_the_guard_back() {
    let mut machine = Machine::new();
    machine.step(Event::Adopted(workload(7, "heavy", Placement::Routed)));
    machine.step(Event::Adopted(workload(8, "heavy", Placement::Placed)));
    let pin = Wish::Pin {
        process: id(7),
        unit: Some(unit(7)),
    };
    for caller in [7, 8] {
        for wish in [Wish::Pause, Wish::Exempt(id(7)), pin.clone()] {
            let event = HoldEvent::Wanted {
                ticket: Ticket(1),
                wish,
                terms: terms(None, None),
                caller_unit: Some(unit(caller)),
            };
            assert!(matches!(
                told(&mut machine, event).as_slice(),
                [Action::Refuse {
                    failure: Failure::OutOfReach(_),
                    ..
                }]
            ));
        }
    }
    assert!(machine.engine.holds().is_empty());
}

#[test]
fn a_hold_ends_with_its_time_and_with_its_owner() {
    let mut machine = Machine::new();
    want(&mut machine, Wish::Pause, terms(None, Some(30))).expect("room");
    want(&mut machine, Wish::Pause, terms(Some(":1.5"), None)).expect("room");
    told(&mut machine, HoldEvent::Elapsed(Duration::from_secs(29)));
    assert_eq!(machine.engine.holds().len(), 2);
    assert_eq!(
        machine.engine.holds().next_end(),
        Some(Duration::from_secs(30))
    );
    told(&mut machine, HoldEvent::Elapsed(Duration::from_secs(30)));
    assert_eq!(machine.engine.holds().len(), 1);
    told(&mut machine, HoldEvent::OwnerLeft(":1.6".to_owned()));
    assert!(machine.engine.holds().is_paused());
    told(&mut machine, HoldEvent::OwnerLeft(":1.5".to_owned()));
    assert!(machine.engine.holds().is_empty());
}

#[test]
fn a_lease_releases_its_workload_when_the_owner_leaves() {
    let mut machine = leased(terms(Some(":1.5"), None));
    let left = HoldEvent::OwnerLeft(":1.5".to_owned());
    assert_eq!(told(&mut machine, left), back(7, RecoverCause::LeaseEnded));
    // Until that is done, a guard that is killed has it to do again.
    assert_eq!(machine.engine.holds().len(), 1);
    machine.step(Event::Recovered {
        unit: unit(7),
        outcome: Ok(vec![id(7)]),
    });
    assert!(machine.engine.holds().is_empty());
}

#[test]
fn an_owner_that_leaves_during_the_move_leaves_nothing_behind() {
    let mut machine = Machine::new();
    machine.spawn(7, 1, "agent");
    let request = Request {
        ticket: Ticket(1),
        processes: vec![id(7)],
        class: "heavy".to_owned(),
        placement: Placement::Placed,
        reason: String::new(),
        caller_unit: None,
        lease: Some(terms(Some(":1.5"), None)),
    };
    one_move(machine.step(Event::Request(request)));
    told(&mut machine, HoldEvent::OwnerLeft(":1.5".to_owned()));
    let outcome = Ok(workload(7, "heavy", Placement::Placed));
    let root = id(7);
    let actions = machine.step(Event::Moved { root, outcome });
    assert_eq!(actions, back(7, RecoverCause::LeaseEnded));
}

#[test]
fn a_release_that_failed_is_tried_again() {
    let mut machine = leased(terms(None, Some(30)));
    machine.scopes.insert(unit(7), 0);
    let over = HoldEvent::Elapsed(Duration::from_secs(31));
    assert_eq!(told(&mut machine, over.clone()).len(), 1);
    let refused = Failure::SystemdRefused("no".to_owned());
    machine.step(Event::Recovered {
        unit: unit(7),
        outcome: Err(refused),
    });
    assert_eq!(told(&mut machine, over), [], "not at once");
    machine.quiet_ticks(9, &[]);
    assert_eq!(machine.tick(&[]), back(7, RecoverCause::LeaseEnded));
}

#[test]
fn letting_go_of_a_lease_releases_and_a_cookie_counts_once() {
    let mut machine = leased(terms(Some(":1.5"), None));
    let id = machine.engine.holds().iter().next().expect("the lease").id;
    let actions = told(
        &mut machine,
        HoldEvent::LetGo {
            ticket: Ticket(2),
            id,
        },
    );
    assert_eq!(
        actions[0],
        Action::Unheld {
            ticket: Ticket(2),
            ended: 1
        }
    );
    assert_eq!(actions[1..], back(7, RecoverCause::LeaseEnded));
    machine.step(Event::Gone { unit: unit(7) });
    let again = told(
        &mut machine,
        HoldEvent::LetGo {
            ticket: Ticket(3),
            id,
        },
    );
    assert!(matches!(
        again.as_slice(),
        [Action::Refuse {
            failure: Failure::NoSuchHold(_),
            ..
        }]
    ));
}

#[test]
fn one_client_cannot_take_all_the_room() {
    let mut machine = Machine::new();
    let mut taken = 0;
    for client in 0..=MAX_HOLDS / MAX_PER_CLIENT {
        let name = format!(":1.{client}");
        for n in 0..=MAX_PER_CLIENT {
            let answer = want(&mut machine, Wish::Pause, terms(Some(&name), None));
            match answer {
                Ok(_) => taken += 1,
                Err(Failure::LimitExceeded(text)) if taken < MAX_HOLDS => {
                    assert_eq!(n, MAX_PER_CLIENT);
                    assert_eq!(text, format!("the bus client {name} has 64 holds already"));
                }
                Err(Failure::LimitExceeded(text)) => {
                    assert!(text.contains("64") || text.contains("256"), "{text}")
                }
                Err(other) => panic!("{other}"),
            }
        }
    }
    assert_eq!(taken, MAX_HOLDS);
    assert_eq!(machine.engine.holds().len(), MAX_HOLDS);
}
