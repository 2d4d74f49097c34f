//! Runs scenarios in guests, some side by side.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::report::{Finished, Report};
use super::scenario::Scenario;
use super::tally::Outcome;
use super::verdict;
use crate::guest::{Guest, GuestSource, PAYLOAD_IN_GUEST};

/// A worker's own sources of guests; the index is a [`Job`]'s.
pub type Sources = Vec<Box<dyn GuestSource>>;

/// A scenario to run in a guest of the source with that index.
#[derive(Debug, Clone, Copy)]
pub struct Job<'a> {
    /// Which source.
    pub source: usize,
    /// Which scenario.
    pub scenario: &'a Scenario,
}

/// Runs `jobs`, each in a fresh guest: as many at once as there are workers, the exclusive ones alone at the end.
pub fn run(workers: Vec<Sources>, jobs: Vec<Job<'_>>, report: &Report) {
    let (alone, shared): (Vec<_>, Vec<_>) =
        jobs.into_iter().partition(|job| job.scenario.exclusive);
    let queue = Mutex::new(VecDeque::from(shared));
    let mut workers = workers;
    thread::scope(|scope| {
        for sources in &mut workers {
            scope.spawn(|| {
                while let Some(job) = take(&queue) {
                    run_one(&mut *sources[job.source], job.scenario, report);
                }
            });
        }
    });
    if let Some(sources) = workers.first_mut() {
        for job in alone {
            run_one(&mut *sources[job.source], job.scenario, report);
        }
    }
}

fn take<'a>(queue: &Mutex<VecDeque<Job<'a>>>) -> Option<Job<'a>> {
    queue.lock().expect("taking does not panic").pop_front()
}

fn run_one(source: &mut dyn GuestSource, scenario: &Scenario, report: &Report) {
    let name = source.name().to_owned();
    report.begins(&name, &scenario.name);
    let mut begin = Instant::now();
    let (mut outcome, mut output, mut journal) = observe(source, scenario);
    // Once: a second time in a row would be more than chance.
    if matches!(outcome, Outcome::Failed(_)) && verdict::emulator_failed(&journal) {
        report.again(&name, &scenario.name);
        begin = Instant::now();
        (outcome, output, journal) = observe(source, scenario);
    }
    report.ends(&Finished {
        guest: &name,
        scenario: &scenario.name,
        outcome,
        took: begin.elapsed(),
        measures: scenario.exclusive,
        output,
        journal,
    });
}

/// Boots, runs, reads the journal; the guest ends by being dropped: no scenario depends on an orderly end, and a
/// process that ignores SIGTERM must not hold up the run.
fn observe(source: &mut dyn GuestSource, scenario: &Scenario) -> (Outcome, String, String) {
    let mut guest = match source.fresh() {
        Ok(guest) => guest,
        Err(error) => {
            return (
                Outcome::Failed(format!("{error:#}")),
                String::new(),
                String::new(),
            );
        }
    };
    let mut output = Vec::new();
    let ran = run_boots(&mut *guest, scenario, &mut |bytes| {
        output.extend_from_slice(bytes);
    });
    let output = String::from_utf8_lossy(&output).into_owned();
    let (journal, unreadable) = match guest.journal() {
        Ok(journal) => (journal, None),
        Err(error) => (String::new(), Some(error)),
    };
    let outcome = match (ran, unreadable) {
        (Err(error), _) => Outcome::Failed(format!("{error:#}")),
        // Without it a crash would go unseen.
        (Ok(_), Some(error)) => {
            Outcome::Failed(format!("the guest's journal cannot be read: {error:#}"))
        }
        (Ok(status), None) => verdict::judge(status, &output, &journal),
    };
    (outcome, output, journal)
}

/// Runs the scenario's program in each boot that it takes, until one fails; returns the last one's status.
fn run_boots(
    guest: &mut dyn Guest,
    scenario: &Scenario,
    sink: &mut dyn FnMut(&[u8]),
) -> Result<i32> {
    let program = format!("{PAYLOAD_IN_GUEST}/{}", scenario.program);
    let timeout = scenario.timeout().max(Duration::from_secs(1));
    if scenario.boots == 1 {
        return guest.run(&[&program, "run", &scenario.name], timeout, sink);
    }
    for boot in 0..scenario.boots {
        let number = boot.to_string();
        let argv = [&program, "run", &scenario.name, "--boot", &number];
        let status = if boot + 1 < scenario.boots {
            guest.run_to_reboot(&argv, timeout, sink)?
        } else {
            guest.run(&argv, timeout, sink)?
        };
        if status != 0 {
            return Ok(status);
        }
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::super::scenario::Tier;
    use super::super::tally::Tally;
    use super::*;

    /// Guests that know how many of them run at once, and what they were asked.
    #[derive(Clone, Default)]
    struct Fake {
        running: Arc<AtomicUsize>,
        log: Arc<Mutex<Vec<(String, usize)>>>,
        /// What the guest's console says next.
        consoles: Arc<Mutex<Vec<&'static str>>>,
    }

    struct FakeGuest(Fake);

    impl GuestSource for Fake {
        fn name(&self) -> &str {
            "fake"
        }

        fn fresh(&mut self) -> Result<Box<dyn Guest + '_>> {
            self.running.fetch_add(1, Ordering::SeqCst);
            Ok(Box::new(FakeGuest(self.clone())))
        }
    }

    impl Guest for FakeGuest {
        fn name(&self) -> &str {
            "fake"
        }

        fn run(&mut self, argv: &[&str], _: Duration, sink: &mut dyn FnMut(&[u8])) -> Result<i32> {
            let running = self.0.running.load(Ordering::SeqCst);
            self.0
                .log
                .lock()
                .unwrap()
                .push((argv[2].to_owned(), running));
            match argv[2] {
                "fails" => Ok(1),
                "skips" => {
                    sink(b"step\nthe reason\n");
                    Ok(77)
                }
                "dies" => anyhow::bail!("the guest died"),
                "dies at first" if self.0.log.lock().unwrap().len() == 1 => {
                    anyhow::bail!("the machine ended")
                }
                _ => Ok(0),
            }
        }

        fn run_to_reboot(
            &mut self,
            argv: &[&str],
            timeout: Duration,
            sink: &mut dyn FnMut(&[u8]),
        ) -> Result<i32> {
            sink(b"reboots ");
            self.run(argv, timeout, sink)
        }

        fn journal(&mut self) -> Result<String> {
            Ok(self
                .0
                .consoles
                .lock()
                .unwrap()
                .pop()
                .unwrap_or_default()
                .to_owned())
        }

        fn shutdown(self: Box<Self>) -> Result<()> {
            Ok(())
        }
    }

    impl Drop for FakeGuest {
        fn drop(&mut self) {
            self.0.running.fetch_sub(1, Ordering::SeqCst);
        }
    }

    fn scenario(name: &str, exclusive: bool) -> Scenario {
        Scenario {
            name: name.into(),
            program: "guard-scenarios".into(),
            tiers: vec![Tier::Container],
            quick: false,
            full: false,
            exclusive,
            boots: 1,
            timeout_s: 1,
        }
    }

    #[test]
    fn every_job_runs_once_and_exclusive_ones_run_last_and_alone() {
        let fake = Fake::default();
        let workers: Vec<Sources> = (0..2).map(|_| vec![Box::new(fake.clone()) as _]).collect();
        let scenarios = [
            scenario("alone", true),
            scenario("passes", false),
            scenario("fails", false),
            scenario("skips", false),
            scenario("dies", false),
        ];
        let jobs = scenarios
            .iter()
            .map(|scenario| Job {
                source: 0,
                scenario,
            })
            .collect();
        let folder = tempfile::tempdir().unwrap();
        let report = Report::new(Tally::new(false), false, folder.path().to_owned());
        run(workers, jobs, &report);
        assert_eq!(report.tally().line(), "2 passed, 2 failed, 1 skipped");
        let log = fake.log.lock().unwrap();
        assert_eq!(log.len(), 5);
        assert_eq!(log.last().unwrap(), &("alone".to_owned(), 1));
    }

    #[test]
    fn what_the_emulator_broke_runs_again_once() {
        const INT3: &str = "[ 8.0] Oops: int3: 0000 [#1] SMP";
        for (name, consoles, runs, line) in [
            (
                "dies at first",
                vec![INT3],
                2,
                "1 passed, 0 failed, 0 skipped",
            ),
            (
                "dies",
                vec![INT3, INT3, INT3],
                2,
                "0 passed, 1 failed, 0 skipped",
            ),
            (
                "dies",
                vec!["[ 8.0] Oops: 0002 [#1] SMP"],
                1,
                "0 passed, 1 failed, 0 skipped",
            ),
        ] {
            let fake = Fake::default();
            *fake.consoles.lock().unwrap() = consoles;
            let folder = tempfile::tempdir().unwrap();
            let report = Report::new(Tally::new(false), false, folder.path().to_owned());
            run_one(&mut fake.clone(), &scenario(name, false), &report);
            assert_eq!(report.tally().line(), line, "{name}");
            assert_eq!(fake.log.lock().unwrap().len(), runs, "{name}");
        }
    }

    #[test]
    fn a_scenario_of_several_boots_goes_on_until_one_fails() {
        for (name, ran, line) in [
            ("passes", 3, "1 passed, 0 failed, 0 skipped"),
            ("fails", 1, "0 passed, 1 failed, 0 skipped"),
        ] {
            let fake = Fake::default();
            let folder = tempfile::tempdir().unwrap();
            let report = Report::new(Tally::new(false), false, folder.path().to_owned());
            let scenario = Scenario {
                boots: 3,
                ..scenario(name, false)
            };
            run_one(&mut fake.clone(), &scenario, &report);
            assert_eq!(report.tally().line(), line, "{name}");
            assert_eq!(fake.log.lock().unwrap().len(), ran, "{name}");
        }
        let mut guest = FakeGuest(Fake::default());
        let mut output = Vec::new();
        let scenario = Scenario {
            boots: 3,
            ..scenario("passes", false)
        };
        run_boots(&mut guest, &scenario, &mut |bytes| {
            output.extend_from_slice(bytes);
        })
        .unwrap();
        // All boots but the last.
        assert_eq!(output, b"reboots reboots ");
    }
}
