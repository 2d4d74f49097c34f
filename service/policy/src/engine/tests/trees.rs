//! Trees that are hot though no process of theirs lives long.

use std::sync::Arc;
use std::time::Duration;

use super::{Machine, id, moves, one_move};
use crate::action::{Action, Failure, Why};
use crate::eligibility::NeverMoved;
use crate::rules::RuleSet;
use crate::settings::Settings;

const INTERVAL: Duration = Duration::from_secs(2);

/// A terminal 10 with its shell 11, and no rules.
fn terminal() -> Machine {
    let mut machine = Machine::new();
    let none = Arc::new(RuleSet::default());
    machine
        .engine
        .configure(Arc::new(Settings::default()), none);
    machine.spawn(10, 1, "terminal");
    machine.spawn(11, 10, "bash");
    machine.running(11).leads_session = true;
    machine.sample();
    machine
}

/// A child ends, and its parent waits for it.
fn reap(machine: &mut Machine, pid: u32) {
    let child = machine.processes.remove(&pid).expect("a child");
    machine.running(child.ppid).reaped_usec += child.cpu_usec + child.reaped_usec;
}

/// Children that came and went within the interval.
fn short(machine: &mut Machine, parent: u32, percent: f64) {
    let usec = percent / 100.0 * INTERVAL.as_micros() as f64;
    machine.running(parent).reaped_usec += usec as u64;
}

/// Compilers of a `make -jN`, each of which lives for one sample and a bit.
struct Compilers {
    parent: u32,
    next: u32,
    living: Vec<u32>,
}

impl Compilers {
    fn of(parent: u32) -> Compilers {
        Compilers {
            parent,
            next: 100,
            living: Vec::new(),
        }
    }

    /// An interval in which `jobs` of them take all of a CPU each: half of it the old, half of it the new.
    fn tick(&mut self, machine: &mut Machine, jobs: u32) -> Vec<Action> {
        for pid in std::mem::take(&mut self.living) {
            machine.burn(pid, 50.0, INTERVAL);
            reap(machine, pid);
        }
        for _ in 0..jobs {
            machine.spawn(self.next, self.parent, "cc1");
            machine.burn(self.next, 50.0, INTERVAL);
            self.living.push(self.next);
            self.next += 1;
        }
        machine.tick(&[])
    }
}

/// Ticks until something is asked for, with how many it took.
fn until_asked(mut tick: impl FnMut() -> Vec<Action>) -> (u32, Vec<Action>) {
    for n in 1..=20 {
        let actions = tick();
        if !actions.is_empty() {
            return (n, actions);
        }
    }
    panic!("nothing is asked for");
}

#[test]
fn make_is_adopted_and_not_what_is_above_it() {
    let mut machine = terminal();
    machine.spawn(12, 11, "sh build.sh");
    machine.spawn(13, 12, "make -j8");
    let mut compilers = Compilers::of(13);
    let (ticks, actions) = until_asked(|| compilers.tick(&mut machine, 8));
    assert!(ticks <= 6, "{ticks}");
    let order = one_move(actions);
    assert_eq!(order.processes, [id(13)]);
    let Why::SustainedCpu {
        tree: true,
        cpu,
        hot_samples: 4,
        ..
    } = order.why
    else {
        panic!("{:?}", order.why);
    };
    assert!((790.0..=810.0).contains(&cpu), "{cpu}");
}

#[test]
fn an_idle_editor_beside_the_build_stays() {
    let mut machine = terminal();
    machine.spawn(12, 11, "sh session");
    machine.spawn(13, 12, "editor notes");
    machine.spawn(14, 12, "make -j2");
    let mut compilers = Compilers::of(14);
    let (_, actions) = until_asked(|| compilers.tick(&mut machine, 2));
    assert_eq!(moves(&actions), [14]);
    machine.moved(&one_move(actions));
    for _ in 0..8 {
        assert_eq!(machine.tick(&[(13, 2.0)]), []);
    }
}

#[test]
fn an_idle_parent_of_short_workers_is_adopted() {
    let mut machine = terminal();
    machine.spawn(12, 11, "npm test");
    machine.spawn(13, 12, "node runner");
    let (ticks, actions) = until_asked(|| {
        short(&mut machine, 13, 150.0);
        machine.tick(&[(13, 3.0)])
    });
    assert_eq!((ticks, moves(&actions)), (5, vec![13]));
}

#[test]
fn the_script_that_loops_over_compilers_is_adopted() {
    let mut machine = terminal();
    machine.spawn(12, 11, "sh loop.sh");
    let mut compilers = Compilers::of(12);
    let (_, actions) = until_asked(|| compilers.tick(&mut machine, 1));
    assert_eq!(moves(&actions), [12]);
}

#[test]
fn a_loop_typed_at_a_terminal_moves_nothing() {
    let mut machine = terminal();
    let mut compilers = Compilers::of(11);
    let (_, actions) = until_asked(|| compilers.tick(&mut machine, 1));
    // Refused where the process is looked at closely.
    assert_eq!(moves(&actions), [11]);
    machine.not_moved(11, Failure::NeverMoved(NeverMoved::TerminalLeader));
    for _ in 0..30 {
        assert_eq!(compilers.tick(&mut machine, 1), []);
    }
}

#[test]
fn a_hot_child_is_adopted_itself_however_the_parent_began() {
    let mut machine = terminal();
    machine.spawn(12, 11, "editor");
    machine.tick(&[]);
    // Two short tasks, one after the other, and then a long one.
    short(&mut machine, 12, 100.0);
    assert_eq!(machine.tick(&[]), []);
    short(&mut machine, 12, 100.0);
    assert_eq!(machine.tick(&[]), []);
    machine.spawn(13, 12, "hog");
    machine.burn(13, 100.0, INTERVAL);
    assert_eq!(machine.tick(&[]), []);
    let (ticks, actions) = until_asked(|| machine.tick(&[(13, 100.0)]));
    assert_eq!((ticks, moves(&actions)), (4, vec![13]));
    assert!(matches!(
        one_move(actions).why,
        Why::SustainedCpu { tree: false, .. }
    ));
}

#[test]
fn a_terminal_is_not_what_its_tabs_do() {
    let mut machine = terminal();
    for pid in [20, 21, 22] {
        machine.spawn(pid, 10, "bash");
        machine.running(pid).leads_session = true;
    }
    for _ in 0..30 {
        let loads = [(20, 50.0), (21, 50.0), (22, 50.0)];
        assert_eq!(machine.tick(&loads), []);
    }
}

#[test]
fn what_was_counted_while_a_child_lived_is_not_counted_when_it_ends() {
    let mut machine = terminal();
    machine.spawn(12, 11, "sh -c work");
    machine.spawn(13, 12, "worker");
    for _ in 0..10 {
        assert_eq!(machine.tick(&[(13, 60.0)]), []);
    }
    reap(&mut machine, 13);
    assert_eq!(machine.tick(&[]), []);
    // Else 600% would show now, at each process of the line.
    for pid in [10, 11, 12] {
        let tree = machine.engine.process(id(pid)).expect("known").tree;
        assert_eq!((tree.cpu, tree.hot_samples), (None, 0), "{pid}");
    }
    // A whole line that ends at once is waited for by the one above it.
    machine.spawn(14, 12, "worker");
    for _ in 0..10 {
        assert_eq!(machine.tick(&[(14, 60.0)]), []);
    }
    reap(&mut machine, 14);
    reap(&mut machine, 12);
    assert_eq!(machine.tick(&[]), []);
    let tree = machine.engine.process(id(11)).expect("known").tree;
    assert_eq!((tree.cpu, tree.hot_samples), (None, 0));
}

#[test]
fn orphans_are_nobodys_tree_and_one_calm_sample_starts_anew() {
    let mut machine = terminal();
    machine.spawn(12, 11, "make");
    machine.tick(&[]);
    for _ in 0..3 {
        short(&mut machine, 12, 100.0);
        assert_eq!(machine.tick(&[]), []);
    }
    short(&mut machine, 12, 60.0);
    assert_eq!(machine.tick(&[]), []);
    machine.spawn(13, 12, "daemon");
    assert_eq!(machine.tick(&[]), []);
    machine.running(13).ppid = 1;
    for _ in 0..3 {
        short(&mut machine, 12, 60.0);
        assert_eq!(machine.tick(&[(13, 60.0)]), [], "120% only together");
    }
    for _ in 0..3 {
        short(&mut machine, 12, 100.0);
        assert_eq!(machine.tick(&[]), []);
    }
    short(&mut machine, 12, 100.0);
    assert_eq!(moves(&machine.tick(&[])), [12]);
}

#[test]
fn who_comes_from_elsewhere_brings_no_load_along() {
    let mut machine = terminal();
    for n in 0..10 {
        // Started before the newest process that is known; it has used an hour.
        let pid = 2 + n;
        if pid < 10 {
            machine.spawn(pid, 10, "came back");
            machine.running(pid).cpu_usec = 3_600_000_000;
        }
        assert_eq!(machine.tick(&[]), []);
    }
}

#[test]
fn after_a_gap_trees_start_anew() {
    let mut machine = terminal();
    machine.spawn(12, 11, "make");
    machine.tick(&[]);
    for _ in 0..3 {
        short(&mut machine, 12, 100.0);
        assert_eq!(machine.tick(&[]), []);
    }
    machine.now += Duration::from_secs(3600);
    short(&mut machine, 12, 100_000.0);
    assert_eq!(machine.sample(), []);
    for _ in 0..3 {
        short(&mut machine, 12, 100.0);
        assert_eq!(machine.tick(&[]), []);
    }
    short(&mut machine, 12, 100.0);
    assert_eq!(moves(&machine.tick(&[])), [12]);
}
