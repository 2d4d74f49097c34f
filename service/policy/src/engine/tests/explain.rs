//! What a person is told of each situation. The words are in `snapshots/`, to be read as they are shown.

use std::fmt::Write;
use std::time::Duration;

use super::{Machine, SOURCE, id, one_move, unit, workload};
use crate::action::{Failure, Placement, RecoverCause};
use crate::eligibility::{Facts, NeverMoved, UnitFacts};
use crate::engine::MAX_WORKLOADS;
use crate::engine::explain::{Explanation, Noted, Question};
use crate::event::{Event, Ticket};
use crate::holds::{Deadline, Hold, HoldEvent, Kind, Owner, Terms};
use crate::id::Moment;
use crate::settings::Settings;

const APP: &str =
    "/user.slice/user-1000.slice/user@1000.service/app.slice/app-gnome-firefox-1.scope";

struct Told {
    text: String,
    count: usize,
}

impl Told {
    fn note(&mut self, situation: &str, explanation: &Explanation) {
        self.count += 1;
        writeln!(self.text, "# {situation}: {:?}", explanation.verdict).expect("text");
        for sentence in &explanation.sentences {
            writeln!(self.text, "{sentence}").expect("text");
        }
        self.text.push('\n');
    }
}

fn question(machine: &Machine, pid: u32) -> Question {
    let cgroup = machine
        .processes
        .get(&pid)
        .map(|process| process.cgroup.to_string());
    Question {
        id: id(pid),
        cgroup: cgroup.unwrap_or_else(|| SOURCE.to_owned()),
        facts: Facts::default(),
        watched: Some("protected-workload.slice".to_owned()),
        noted: None,
    }
}

fn ask(machine: &Machine, question: &Question) -> Explanation {
    machine.engine.explain(question, Moment(machine.now))
}

fn explain(machine: &Machine, pid: u32) -> Explanation {
    ask(machine, &question(machine, pid))
}

/// A process that was moved into its workload by this test.
fn inside(machine: &Machine, pid: u32, root: u32) -> Explanation {
    let mut question = question(machine, pid);
    question.cgroup = format!("/heavy.slice/heavy-workload.slice/{}", unit(root));
    question.watched = None;
    question.noted = Some(Noted {
        why: "rule cargo".to_owned(),
        source: "app-term.scope".to_owned(),
        source_ended: false,
        throttled: Some(0),
    });
    ask(machine, &question)
}

fn terms(reason: &str) -> Terms {
    Terms {
        owner: Owner {
            bus_name: None,
            pid: 77,
            command: "workload-guard".to_owned(),
        },
        reason: reason.to_owned(),
        subject: String::new(),
        since: 0,
        until: Some(Deadline {
            boot: Duration::from_secs(1_000_000),
            wall: 1_800_000_000,
        }),
    }
}

fn hold(machine: &mut Machine, id: u64, kind: Kind) {
    let terms = terms("a demo");
    machine.step(Event::Hold(HoldEvent::Restored(Hold { id, kind, terms })));
}

/// A process that was shown twice, and used that much.
fn with(line: &str, percents: &[f64]) -> Machine {
    let mut machine = Machine::new();
    machine.spawn(10, 1, line);
    machine.sample();
    for percent in percents {
        machine.tick(&[(10, *percent)]);
    }
    machine
}

fn never(told: &mut Told) {
    let of = |unit: UnitFacts| Facts {
        unit,
        ..Facts::default()
    };
    let cases: [(&str, Facts); 12] = [
        (
            "another user's",
            Facts {
                foreign_uid: Some(0),
                ..Facts::default()
            },
        ),
        (
            "a kernel thread",
            Facts {
                kernel_thread: true,
                ..Facts::default()
            },
        ),
        (
            "a real-time task",
            Facts {
                realtime: true,
                ..Facts::default()
            },
        ),
        (
            "a manager",
            Facts {
                manager: true,
                ..Facts::default()
            },
        ),
        (
            "the bus",
            Facts {
                bus: true,
                ..Facts::default()
            },
        ),
        (
            "the guard",
            Facts {
                guard: true,
                ..Facts::default()
            },
        ),
        (
            "a Flatpak",
            of(UnitFacts {
                sandbox: true,
                ..UnitFacts::default()
            }),
        ),
        (
            "a service's main process",
            of(UnitFacts {
                main_or_control: true,
                ..UnitFacts::default()
            }),
        ),
        (
            "a service's notifier",
            of(UnitFacts {
                notifier: true,
                ..UnitFacts::default()
            }),
        ),
        (
            "a terminal's shell",
            Facts {
                terminal_leader: true,
                ..Facts::default()
            },
        ),
        (
            "a login shell",
            Facts {
                login_shell: true,
                ..Facts::default()
            },
        ),
        (
            "in a session scope",
            of(UnitFacts {
                outside_user_manager: true,
                ..UnitFacts::default()
            }),
        ),
    ];
    // However hot it is.
    let machine = with("hog", &[95.0; 3]);
    for (situation, facts) in cases {
        let question = Question {
            facts,
            ..question(&machine, 10)
        };
        told.note(situation, &ask(&machine, &question));
    }
    let nowhere = Question {
        watched: None,
        ..question(&machine, 10)
    };
    told.note("not watched", &ask(&machine, &nowhere));
}

fn counted(told: &mut Told) {
    told.note("not seen yet", &explain(&Machine::new(), 10));
    told.note("seen once", &explain(&with("editor", &[]), 10));
    told.note("calm", &explain(&with("editor", &[3.2]), 10));
    told.note("hot once", &explain(&with("hog", &[92.0]), 10));
    told.note(
        "hot for three samples",
        &explain(&with("hog", &[92.0; 3]), 10),
    );
    told.note(
        "hot, then one sample below",
        &explain(&with("hog", &[92.0, 92.0, 40.0]), 10),
    );

    let mut machine = with("script", &[]);
    for _ in 0..2 {
        machine.running(10).reaped_usec += 1_800_000;
        machine.tick(&[]);
    }
    told.note("its short-lived children are hot", &explain(&machine, 10));

    let mut machine = with("script", &[]);
    machine.spawn(11, 10, "hog");
    machine.sample();
    machine.exec(10, "terminal");
    machine.tick(&[(11, 40.0)]);
    machine.tick(&[(11, 95.0)]);
    told.note("a child that goes on is hot", &explain(&machine, 10));

    let mut machine = Machine::new();
    machine.spawn_in(APP, 10, 1, "firefox");
    machine.sample();
    for _ in 0..6 {
        machine.tick(&[(10, 95.0)]);
    }
    told.note("an app's own", &explain(&machine, 10));

    let mut settings = Settings::default();
    settings.adaptive.enabled = true;
    let mut machine = Machine::with(settings);
    machine.spawn(10, 1, "git gc");
    machine.sample();
    machine.tick(&[(10, 1.0)]);
    told.note("adaptive, too little known", &explain(&machine, 10));
    for _ in 0..12 {
        machine.tick(&[(10, 1.0)]);
    }
    machine.tick(&[(10, 60.0)]);
    told.note("adaptive, somewhat unusual", &explain(&machine, 10));
}

fn kept(told: &mut Told) {
    let mut settings = Settings::default();
    settings.routing.exclude_patterns = vec!["--keep".to_owned()];
    let mut machine = Machine::with(settings);
    machine.spawn(10, 1, "make --keep-going");
    machine.sample();
    told.note("excluded by the settings", &explain(&machine, 10));

    let mut machine = Machine::new();
    machine.spawn(10, 1, "make");
    hold(&mut machine, 3, Kind::Pause);
    machine.sample();
    told.note("known, and paused", &explain(&machine, 10));

    let mut machine = Machine::new();
    machine.spawn(10, 1, "shell");
    machine.spawn(11, 10, "make");
    machine.spawn(12, 11, "cc");
    hold(&mut machine, 4, Kind::Exempt { root: id(11) });
    machine.sample();
    told.note("exempt itself", &explain(&machine, 11));
    machine.exec(12, "cargo build");
    machine.sample();
    told.note("an ancestor is exempt", &explain(&machine, 12));
    machine.exec(10, "make all");
    machine.sample();
    told.note("would take an exempt one along", &explain(&machine, 10));

    let mut machine = with("make", &[]);
    let failure = Failure::NeverMoved(NeverMoved::Realtime);
    machine.not_moved(10, failure);
    told.note("was refused", &explain(&machine, 10));

    let mut machine = with("make", &[]);
    machine.not_moved(10, Failure::Timeout("systemd is slow".to_owned()));
    machine.now += Duration::from_secs(5);
    told.note("was tried just now", &explain(&machine, 10));
}

fn on_the_way(told: &mut Told) {
    let mut machine = Machine::new();
    machine.spawn(10, 1, "make");
    machine.spawn(11, 10, "cc");
    machine.spawn(12, 11, "cargo build");
    machine.sample();
    told.note("is being moved", &explain(&machine, 10));
    told.note("an ancestor is being moved", &explain(&machine, 12));

    // What holds it back ends, and no sample has come since.
    let mut machine = Machine::new();
    machine.spawn(10, 1, "make");
    machine.spawn(11, 10, "cargo build");
    hold(&mut machine, 3, Kind::Pause);
    machine.sample();
    machine.step(Event::Hold(HoldEvent::Resume { ticket: Ticket(1) }));
    told.note("known, before the next sample", &explain(&machine, 10));
    told.note("an ancestor is about to go", &explain(&machine, 11));

    let mut machine = Machine::new();
    machine.spawn(10, 1, "hog");
    hold(&mut machine, 3, Kind::Pause);
    machine.sample();
    for _ in 0..5 {
        machine.tick(&[(10, 95.0)]);
    }
    machine.step(Event::Hold(HoldEvent::Resume { ticket: Ticket(1) }));
    told.note("hot, before the next sample", &explain(&machine, 10));
    for root in 1000..1000 + MAX_WORKLOADS as u32 {
        machine.step(Event::Adopted(workload(root, "heavy", Placement::Placed)));
    }
    told.note("too many workloads", &explain(&machine, 10));
}

fn back(machine: &mut Machine, root: u32) {
    let unit = unit(root);
    machine.scopes.remove(&unit);
    machine.step(Event::Recovered {
        unit,
        outcome: Ok(vec![id(root)]),
    });
}

fn returned(told: &mut Told) {
    let mut machine = Machine::new();
    machine.spawn(10, 1, "make");
    let order = one_move(machine.sample());
    machine.moved(&order);
    machine.sample();
    machine.step(Event::Release {
        ticket: Ticket(1),
        unit: unit(10),
    });
    back(&mut machine, 10);
    machine.spawn(10, 1, "make");
    machine.now += Duration::from_secs(2);
    machine.sample();
    machine.tick(&[(10, 12.0)]);
    told.note("came back just now", &explain(&machine, 10));
    machine.spawn(11, 10, "cargo build");
    machine.sample();
    told.note("started by what came back", &explain(&machine, 11));
    for _ in 0..12 {
        machine.tick(&[(10, 12.0)]);
    }
    told.note("known, but came back calm", &explain(&machine, 10));
}

fn in_a_workload(told: &mut Told) {
    let mut machine = Machine::new();
    machine.spawn(10, 1, "cargo build");
    let order = one_move(machine.sample());
    machine.moved(&order);
    told.note("routed just now", &inside(&machine, 10, 10));
    let burn = |machine: &mut Machine, percent: u64, times: u32| {
        for _ in 0..times {
            *machine.scopes.get_mut(&unit(10)).expect("its scope") += 20_000 * percent;
            machine.now += Duration::from_secs(2);
            machine.sample();
        }
    };
    burn(&mut machine, 300, 3);
    told.note("routed and busy", &inside(&machine, 10, 10));
    told.note("a child of what is routed", &inside(&machine, 11, 10));
    burn(&mut machine, 3, 4);
    told.note("routed, calm for a while", &inside(&machine, 10, 10));

    let mut question = question(&machine, 10);
    question.cgroup = format!("/heavy.slice/heavy-workload.slice/{}", unit(10));
    question.noted = Some(Noted {
        why: "92% CPU, at or above 70% for 4 samples".to_owned(),
        source: "app-term.scope".to_owned(),
        source_ended: true,
        throttled: Some(12_340_000),
    });
    told.note(
        "its source has ended, and its budget held it up",
        &ask(&machine, &question),
    );
    if let Some(noted) = &mut question.noted {
        noted.throttled = None;
    }
    told.note(
        "the kernel does not tell of budgets",
        &ask(&machine, &question),
    );

    let pin = Kind::Pin {
        process: id(10),
        unit: unit(10),
    };
    hold(&mut machine, 5, pin);
    told.note("routed and pinned", &inside(&machine, 10, 10));
    machine.step(Event::Hold(HoldEvent::LetGo {
        ticket: Ticket(1),
        id: 5,
    }));
    hold(&mut machine, 6, Kind::Pause);
    told.note("routed and paused", &inside(&machine, 10, 10));
    machine.step(Event::Hold(HoldEvent::Resume { ticket: Ticket(2) }));

    burn(&mut machine, 3, 7);
    told.note("on its way back", &inside(&machine, 10, 10));
    let outcome = Err(Failure::Timeout("systemd is slow".to_owned()));
    machine.step(Event::Recovered {
        unit: unit(10),
        outcome,
    });
    told.note("bringing it back failed", &inside(&machine, 10, 10));
}

fn placed(told: &mut Told) {
    let mut machine = Machine::new();
    let agent = Kind::Lease { unit: unit(10) };
    machine.step(Event::Adopted(workload(10, "protected", Placement::Placed)));
    told.note("placed", &inside(&machine, 10, 10));
    machine.spawn_in(&format!("/protected.slice/{}", unit(10)), 11, 10, "cc");
    machine.sample();
    machine.tick(&[(11, 4.0)]);
    told.note("started by what was placed", &explain(&machine, 11));
    hold(&mut machine, 7, agent);
    told.note("placed for a lease", &inside(&machine, 10, 10));
    machine.step(Event::Hold(HoldEvent::Elapsed(Duration::from_secs(
        2_000_000,
    ))));
    told.note("its lease is over", &inside(&machine, 10, 10));
    let outcome = Err(Failure::Timeout("systemd is slow".to_owned()));
    machine.step(Event::Recovered {
        unit: unit(10),
        outcome,
    });
    told.note(
        "its lease is over and releasing it failed",
        &inside(&machine, 10, 10),
    );
}

#[test]
fn every_situation_is_told_in_words() {
    let mut told = Told {
        text: String::new(),
        count: 0,
    };
    never(&mut told);
    counted(&mut told);
    kept(&mut told);
    on_the_way(&mut told);
    returned(&mut told);
    in_a_workload(&mut told);
    placed(&mut told);
    assert!(told.count >= 20, "{}", told.count);
    insta::assert_snapshot!(told.text);
}

#[test]
fn a_cause_that_is_owed_has_words() {
    // The others cannot be owed: they are tried again when they come up again.
    let mut machine = Machine::new();
    machine.step(Event::Adopted(workload(10, "heavy", Placement::Routed)));
    hold(&mut machine, 2, Kind::Exempt { root: id(10) });
    machine.step(Event::Hold(HoldEvent::Carried { unit: unit(10) }));
    let outcome = Err(Failure::Timeout("systemd is slow".to_owned()));
    machine.step(Event::Recovered {
        unit: unit(10),
        outcome,
    });
    let tracked = machine.engine.workload(&unit(10)).expect("it is there");
    assert_eq!(tracked.owed, Some(RecoverCause::Exempted));
    let text = inside(&machine, 10, 10).sentences.join(" ");
    assert!(
        text.contains("exempted from routing; that failed"),
        "{text}"
    );
}

#[test]
fn a_rule_is_told_with_file_and_line() {
    let mut machine = Machine::new();
    machine.spawn(10, 1, "make");
    hold(&mut machine, 3, Kind::Pause);
    machine.sample();
    let rule = explain(&machine, 10).rule.expect("a rule");
    let (file, rest) = rule.split_once(".toml:").expect("FILE.toml:LINE");
    assert!(
        !file.is_empty()
            && rest
                .split(' ')
                .next()
                .is_some_and(|line| line.parse::<usize>().is_ok()),
        "{rule}"
    );
}
