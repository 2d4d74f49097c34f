//! With app.slice watched: what is an app's own stays, what somebody started in a terminal goes.

use std::time::Duration;

use super::{Machine, moves};

const APPS: &str = "/user.slice/user-1000.slice/user@1000.service/app.slice";
const INTERVAL: Duration = Duration::from_secs(2);

/// Lets `pids` burn for `samples`; answers the roots that were asked for.
fn burn(machine: &mut Machine, pids: &[u32], samples: u32) -> Vec<u32> {
    let mut asked = Vec::new();
    for _ in 0..samples {
        for pid in pids {
            machine.burn(*pid, 95.0, INTERVAL);
        }
        machine.now += INTERVAL;
        let actions = machine.sample();
        asked.extend(moves(&actions));
    }
    asked
}

fn app(unit: &str) -> String {
    format!("{APPS}/{unit}")
}

#[test]
fn a_browser_that_burns_is_at_work_for_the_person() {
    let mut machine = Machine::new();
    let browser = app("app-gnome-firefox-4242.scope");
    machine.spawn_in(&browser, 10, 1, "firefox");
    machine.spawn_in(&browser, 11, 10, "firefox -contentproc tab");
    machine.spawn_in(&browser, 12, 10, "firefox -contentproc tab");
    machine.sample();
    assert_eq!(burn(&mut machine, &[10, 11, 12], 20), [0u32; 0]);
}

#[test]
fn an_editors_language_server_stays_and_its_build_goes() {
    let mut machine = Machine::new();
    let editor = app("app-gnome-code-77.scope");
    machine.spawn_in(&editor, 10, 1, "code");
    machine.spawn_in(&editor, 11, 10, "rust-analyzer");
    machine.sample();
    assert_eq!(burn(&mut machine, &[10, 11], 10), [0u32; 0]);
    machine.spawn_in(&editor, 12, 11, "cargo check --workspace");
    assert_eq!(burn(&mut machine, &[12], 1), [12]);
}

#[test]
fn what_is_started_in_a_terminal_is_not_the_terminals() {
    for unit in [
        "app-org.kde.konsole-9.scope",
        "app-org.gnome.Terminal.slice/vte-spawn-1.scope",
    ] {
        let mut machine = Machine::new();
        let cgroup = app(unit);
        machine.spawn_in(&cgroup, 10, 1, "konsole");
        machine.spawn_in(&cgroup, 11, 10, "bash");
        machine.spawn_in(&cgroup, 12, 11, "crunch");
        // An agent starts its commands in sessions without a terminal.
        machine.spawn_in(&cgroup, 13, 11, "agent");
        machine.spawn_in(&cgroup, 14, 13, "simulate");
        for pid in [11, 12, 13] {
            machine.running(pid).has_terminal = true;
        }
        machine.running(11).leads_session = true;
        machine.running(14).leads_session = true;
        machine.sample();
        assert_eq!(burn(&mut machine, &[10, 12, 14], 4), [12, 14], "{unit}");
    }
}

#[test]
fn what_is_no_app_needs_no_terminal() {
    let mut machine = Machine::new();
    machine.spawn_in(&app("run-u12.scope"), 10, 1, "crunch");
    machine.sample();
    assert_eq!(burn(&mut machine, &[10], 4), [10]);
}
