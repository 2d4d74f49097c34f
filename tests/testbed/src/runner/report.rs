//! How results are shown: one line each, whole blocks for failures, never interleaved.

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context, Result};

use super::tally::{Outcome, Tally};
use crate::progress;

/// How many of the journal's last lines a failure shows; the whole of it goes to a file.
const JOURNAL_LINES: usize = 60;

/// What is known about a scenario that has run.
#[derive(Debug)]
pub struct Finished<'a> {
    /// As [`crate::guest::Guest::name`].
    pub guest: &'a str,
    /// The scenario's name.
    pub scenario: &'a str,
    /// How it ended.
    pub outcome: Outcome,
    /// From the order to boot until the verdict.
    pub took: Duration,
    /// Whether it measures: then what it printed is a result, and is shown when it passed as well.
    pub measures: bool,
    /// What it printed.
    pub output: String,
    /// The guest's journal.
    pub journal: String,
}

/// Collects results from several threads.
#[derive(Debug)]
pub struct Report {
    tally: Mutex<Tally>,
    ci: bool,
    /// Folder for the whole output of what failed.
    failures: PathBuf,
}

impl Report {
    /// Starts from `tally`; failures are written to the folder `failures`.
    pub fn new(tally: Tally, ci: bool, failures: PathBuf) -> Self {
        Self {
            tally: Mutex::new(tally),
            ci,
            failures,
        }
    }

    /// A scenario begins.
    pub fn begins(&self, guest: &str, scenario: &str) {
        progress::hint(&format!("{guest}  {scenario}"));
    }

    /// A scenario runs a second time, since its machine died of the emulator.
    pub fn again(&self, guest: &str, scenario: &str) {
        let _turn = self.tally.lock().expect("no printing thread panics");
        progress::clear_hint();
        println!(
            "again {guest} {scenario}: QEMU ran a breakpoint that the kernel had taken away (int3), and the machine died"
        );
    }

    /// A scenario has ended.
    pub fn ends(&self, finished: &Finished<'_>) {
        let outcome = finished.outcome.clone().strict(self.ci);
        let line = line(&outcome, finished);
        let mut tally = self.tally.lock().expect("no printing thread panics");
        tally.add(&outcome);
        progress::clear_hint();
        if !matches!(outcome, Outcome::Failed(_)) {
            println!("{line}");
            if finished.measures {
                print_block(&finished.output);
            }
            return;
        }
        println!(
            "{line}\n--- output of {} in {}",
            finished.scenario, finished.guest
        );
        print_block(&finished.output);
        println!("--- end of the journal of {}", finished.guest);
        let lines: Vec<&str> = finished.journal.lines().collect();
        print_block(&lines[lines.len().saturating_sub(JOURNAL_LINES)..].join("\n"));
        match self.keep(finished) {
            Ok(path) => println!("--- all of it is in {}", path.display()),
            Err(error) => println!("--- (not kept: {error:#})"),
        }
    }

    /// A whole tier or suite could not run.
    pub fn left_out(&self, what: &str, outcome: Outcome) {
        let outcome = outcome.strict(self.ci);
        let mut tally = self.tally.lock().expect("no printing thread panics");
        tally.add(&outcome);
        match outcome {
            Outcome::Passed => println!("pass {what}"),
            Outcome::Failed(reason) => println!("FAIL {what}: {reason}"),
            Outcome::Skipped(reason) => println!("skip {what}: {reason}"),
        }
    }

    /// The sums.
    pub fn tally(self) -> Tally {
        self.tally.into_inner().expect("no printing thread panics")
    }

    fn keep(&self, finished: &Finished<'_>) -> Result<PathBuf> {
        fs::create_dir_all(&self.failures)
            .with_context(|| format!("cannot create {}", self.failures.display()))?;
        let name = format!(
            "{}-{}.log",
            finished.guest.replace('/', "-"),
            finished.scenario
        );
        let path = self.failures.join(name);
        let text = format!(
            "{:?}\n{}\n--- journal\n{}",
            finished.outcome, finished.output, finished.journal
        );
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }
}

fn line(outcome: &Outcome, finished: &Finished<'_>) -> String {
    let (word, reason) = match outcome {
        Outcome::Passed => ("pass", None),
        Outcome::Failed(reason) => ("FAIL", Some(reason)),
        Outcome::Skipped(reason) => ("skip", Some(reason)),
    };
    let mut line = format!(
        "{word} {:18} {:44} {:>8}",
        finished.guest,
        finished.scenario,
        progress::seconds(finished.took)
    );
    if let Some(reason) = reason {
        line.push_str(&format!("  {reason}"));
    }
    line
}

fn print_block(text: &str) {
    for line in text.lines() {
        println!("    {line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(outcome: Outcome) -> Finished<'static> {
        Finished {
            guest: "container/sid",
            scenario: "a-scenario",
            outcome,
            took: Duration::from_millis(2340),
            measures: false,
            output: "what it said".into(),
            journal: "what systemd said".into(),
        }
    }

    #[test]
    fn a_line_has_guest_name_time_and_reason() {
        let finished = finished(Outcome::Skipped("no cpu controller".into()));
        let line = line(&finished.outcome, &finished);
        let words: Vec<_> = line.split_whitespace().collect();
        assert_eq!(
            words,
            [
                "skip",
                "container/sid",
                "a-scenario",
                "2.3",
                "s",
                "no",
                "cpu",
                "controller"
            ]
        );
    }

    #[test]
    fn a_failure_is_kept_whole() {
        let folder = tempfile::tempdir().unwrap();
        let report = Report::new(Tally::new(false), false, folder.path().join("failures"));
        report.ends(&finished(Outcome::Failed("exit status 1".into())));
        report.ends(&finished(Outcome::Passed));
        report.left_out("machine", Outcome::Skipped("x".into()));
        let text = fs::read_to_string(folder.path().join("failures/container-sid-a-scenario.log"))
            .unwrap();
        assert!(
            text.contains("exit status 1")
                && text.contains("what it said")
                && text.contains("what systemd said")
        );
        assert_eq!(report.tally().line(), "1 passed, 1 failed, 1 skipped");
    }
}
