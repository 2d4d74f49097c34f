//! Tests of the shadow policy.

use std::time::Duration;

use proptest::prelude::*;

use super::*;

const INTERVAL: Duration = Duration::from_secs(2);

fn on() -> Settings {
    let mut settings = Settings::default();
    settings.shadow.enabled = true;
    settings
}

/// A machine with one process after the other.
struct Machine {
    shadow: Shadow,
    settings: Settings,
    now: Duration,
    used: u64,
}

fn process(pid: u32, cpu_usec: u64, line: &str) -> Process {
    Process {
        id: ProcId { pid, start: 5 },
        ppid: 1,
        cgroup: "/work.scope".into(),
        cpu_usec,
        reaped_usec: 0,
        leads_session: false,
        has_terminal: false,
        argv: line.split(' ').map(Box::from).collect(),
    }
}

impl Machine {
    fn new(settings: Settings) -> Machine {
        Machine {
            shadow: Shadow::default(),
            settings,
            now: Duration::from_secs(100),
            used: 0,
        }
    }

    fn tell(&mut self, sample: &Sample, inside: &[Process]) -> Vec<Candidate> {
        self.now += INTERVAL;
        self.shadow
            .sample(sample, inside, Moment(self.now), &self.settings)
    }

    fn shown(&mut self, cpu: f64) -> Sample {
        self.used += (cpu / 100.0 * INTERVAL.as_micros() as f64) as u64;
        Sample {
            processes: vec![process(7, self.used, "hog --fast")],
            ..Sample::default()
        }
    }

    fn tick(&mut self, cpu: f64) -> Vec<Decision> {
        let sample = self.shown(cpu);
        let told = self.tell(&sample, &[]);
        told.iter().map(|candidate| candidate.decision).collect()
    }

    fn quiet(&mut self, times: usize, cpu: f64) {
        for n in 0..times {
            assert_eq!(self.tick(cpu), [], "sample {n}");
        }
    }
}

#[test]
fn sustained_load_would_be_routed_and_come_back_once_each() {
    let mut machine = Machine::new(on());
    // The first sample is no rate.
    machine.quiet(4, 90.0);
    let sample = machine.shown(90.0);
    let told = machine.tell(&sample, &[]);
    let expected = Candidate {
        decision: Decision::Route,
        id: ProcId { pid: 7, start: 5 },
        cpu: 90.0,
        average: 90.0,
        threshold: 70.0,
        samples: 4,
        cgroup: "/work.scope".into(),
        argv: ["hog", "--fast"].map(Box::from).into(),
    };
    assert_eq!(told, [expected]);
    machine.quiet(10, 90.0);
    // 58.5, 38.0, then ten low ones and 20 s.
    machine.quiet(12, 0.0);
    assert_eq!(machine.tick(0.0), [Decision::Recover]);
    machine.quiet(50, 0.0);
}

#[test]
fn a_process_that_is_not_shown_used_nothing() {
    let mut machine = Machine::new(on());
    machine.quiet(4, 90.0);
    assert_eq!(machine.tick(90.0), [Decision::Route]);
    let mut told = Vec::new();
    for _ in 0..13 {
        told.extend(machine.tell(&Sample::default(), &[]));
    }
    let decisions: Vec<Decision> = told.iter().map(|candidate| candidate.decision).collect();
    assert_eq!(decisions, [Decision::Recover]);
}

#[test]
fn the_average_goes_on_while_the_process_is_moved_to_where_it_is_not_watched() {
    let mut machine = Machine::new(on());
    machine.quiet(4, 90.0);
    assert_eq!(machine.tick(90.0), [Decision::Route]);
    let gone = Sample {
        ended: vec![ProcId { pid: 7, start: 5 }],
        ..Sample::default()
    };
    // One sample lacks it: it was on its way.
    assert_eq!(machine.tell(&gone, &[]), []);
    for n in 0..12 {
        let inside = process(7, machine.used, "hog --fast");
        assert_eq!(
            machine.tell(&Sample::default(), &[inside]),
            [],
            "sample {n}"
        );
    }
    let inside = process(7, machine.used, "hog --fast");
    let told = machine.tell(&Sample::default(), &[inside]);
    assert_eq!(told[0].decision, Decision::Recover);
}

#[test]
fn who_ends_is_forgotten_after_the_samples_that_a_move_may_take() {
    let mut machine = Machine::new(on());
    machine.quiet(3, 90.0);
    let gone = Sample {
        ended: vec![ProcId { pid: 7, start: 5 }],
        ..Sample::default()
    };
    machine.tell(&gone, &[]);
    for _ in 0..MAX_MISSING {
        machine.tell(&Sample::default(), &[]);
    }
    assert!(machine.shadow.is_empty());
}

#[test]
fn who_was_inside_and_ended_is_forgotten_too() {
    let mut machine = Machine::new(on());
    let inside = process(8, 0, "hog");
    machine.tell(&Sample::default(), &[inside]);
    for _ in 0..=MAX_MISSING {
        machine.tell(&Sample::default(), &[]);
    }
    assert!(machine.shadow.is_empty());
}

#[test]
fn an_excluded_process_is_no_candidate_and_an_off_shadow_remembers_nothing() {
    let mut settings = on();
    settings.routing.exclude_patterns = vec!["--fast".to_owned()];
    let mut machine = Machine::new(settings);
    machine.quiet(20, 100.0);
    machine.settings.shadow.enabled = false;
    machine.quiet(1, 100.0);
    assert!(machine.shadow.is_empty());
}

#[test]
fn who_was_excluded_while_hot_is_not_brought_back_from_nowhere() {
    let mut settings = on();
    settings.routing.exclude_patterns = vec!["--fast".to_owned()];
    let mut machine = Machine::new(settings);
    machine.quiet(20, 100.0);
    // It becomes a program that is not excluded, and calms down.
    let calm = Sample {
        processes: vec![process(7, machine.used, "other")],
        ..Sample::default()
    };
    for _ in 0..30 {
        assert_eq!(machine.tell(&calm, &[]), []);
    }
}

#[test]
fn over_a_gap_the_average_starts_again() {
    let mut machine = Machine::new(on());
    machine.quiet(4, 90.0);
    machine.now += Duration::from_secs(3600);
    machine.quiet(4, 90.0);
    assert_eq!(machine.tick(90.0), [Decision::Route]);
}

#[test]
fn no_more_processes_are_followed_than_the_bound() {
    let mut machine = Machine::new(on());
    let many = Sample {
        processes: (0..MAX_TRACKED as u32 + 50)
            .map(|pid| process(pid, 0, "x"))
            .collect(),
        ..Sample::default()
    };
    machine.tell(&many, &[]);
    assert_eq!(machine.shadow.len(), MAX_TRACKED);
}

proptest! {
    /// Route and recovery take turns, and the one that is due comes with its samples beyond its threshold.
    #[test]
    fn decisions_take_turns(loads in proptest::collection::vec(0.0..120.0f64, 1..200)) {
        let mut machine = Machine::new(on());
        let mut expected = Decision::Route;
        for load in loads {
            let sample = machine.shown(load);
            for candidate in machine.tell(&sample, &[]) {
                prop_assert_eq!(candidate.decision, expected);
                match expected {
                    Decision::Route => {
                        prop_assert!(candidate.average >= 70.0 && candidate.samples == 4);
                        expected = Decision::Recover;
                    }
                    Decision::Recover => {
                        prop_assert!(candidate.average <= 35.0 && candidate.samples >= 10);
                        expected = Decision::Route;
                    }
                }
            }
        }
    }
}
