//! The unit tier: `cargo test --workspace`, and what its output says.

use std::io::Write;
use std::time::Duration;

use anyhow::Result;

use super::tally::{Outcome, Tally};
use crate::payload::{self, Workspace};
use crate::process::{self, Ended, shell_status};
use crate::progress;

/// With a cold cache everything is compiled first.
const DEADLINE: Duration = Duration::from_secs(30 * 60);

/// Sums over all test binaries.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Tests that passed.
    pub passed: usize,
    /// Tests that failed.
    pub failed: usize,
    /// Tests marked `#[ignore]`.
    pub ignored: usize,
}

/// Runs the workspace's tests, those whose name contains `filter` if there is one.
pub fn unit(workspace: &Workspace, filters: &[String], tally: &mut Tally) -> Result<()> {
    let mut arguments = vec!["--workspace", "--no-fail-fast"];
    if !filters.is_empty() {
        arguments.push("--");
        arguments.extend(filters.iter().map(String::as_str));
    }
    run(workspace, "unit", &arguments, tally)
}

/// Runs the tests of the guests' own promises: a scenario can rely on them only if they hold.
pub fn promises(
    workspace: &Workspace,
    container: bool,
    machine: bool,
    tally: &mut Tally,
) -> Result<()> {
    let mut arguments = vec!["--package=testbed", "--bin=xtask"];
    let mut filters = Vec::new();
    for (wanted, feature, filter) in [
        (container, "--features=container-tests", "container::tests"),
        (machine, "--features=machine-tests", "machine::tests"),
    ] {
        if wanted {
            arguments.push(feature);
            filters.push(filter);
        }
    }
    arguments.push("--");
    arguments.extend(filters);
    run(workspace, "promises", &arguments, tally)
}

/// Runs `cargo test`, shows what runs, and counts.
fn run(workspace: &Workspace, what: &str, arguments: &[&str], tally: &mut Tally) -> Result<()> {
    let mut command = payload::tied_cargo();
    command
        .args(["test", "--color=never"])
        .args(arguments)
        .current_dir(&workspace.workspace_root);
    let mut output = Vec::new();
    let mut shown = 0;
    let ended = process::stream(command, DEADLINE, &mut |bytes| {
        output.extend_from_slice(bytes);
        shown = show_headlines(&output, shown);
    })?;
    progress::clear_hint();
    let text = String::from_utf8_lossy(&output);
    let counts = count(&text);
    let problem = match ended {
        Ended::TimedOut => Some(format!(
            "cargo test did not end within {} min",
            DEADLINE.as_secs() / 60
        )),
        Ended::Exited(status) if !status.success() && counts.failed == 0 => Some(format!(
            "cargo test failed (status {}) without a failed test: it does not compile, or a test binary died",
            shell_status(status)
        )),
        Ended::Exited(_) => None,
    };
    if counts.failed > 0 || problem.is_some() {
        print!("{text}");
        for name in failed_names(&text) {
            println!("FAIL {what}: {name}");
        }
    }
    tally.passed += counts.passed;
    tally.failed += counts.failed;
    if let Some(problem) = problem {
        println!("FAIL {what}: {problem}");
        tally.add(&Outcome::Failed(problem));
    }
    for _ in 0..counts.ignored {
        tally.add(&Outcome::Skipped("marked #[ignore]".into()));
    }
    if counts.ignored > 0 {
        println!("skip {what}: {} tests are marked #[ignore]", counts.ignored);
    }
    Ok(())
}

/// Prints what is being compiled as a passing hint and which binary runs with what result as lines, for the complete
/// lines from byte `from` on; returns where the rest begins.
fn show_headlines(output: &[u8], from: usize) -> usize {
    let Some(end) = output[from..].iter().rposition(|&byte| byte == b'\n') else {
        return from;
    };
    let end = from + end + 1;
    for line in String::from_utf8_lossy(&output[from..end]).lines() {
        let words = line.trim_start();
        if words.starts_with("Running ")
            || words.starts_with("Doc-tests ")
            || line.starts_with("test result: ")
        {
            progress::clear_hint();
            println!("  {words}");
        } else if words.starts_with("Compiling ")
            || (line.starts_with("test ") && line.contains(" ... "))
        {
            progress::hint(words);
        }
    }
    let _ = std::io::stdout().flush();
    end
}

/// The names of failed tests, as libtest prints them.
fn failed_names(output: &str) -> impl Iterator<Item = &str> {
    output
        .lines()
        .filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"))
}

/// Adds up the `test result:` lines of libtest.
pub fn count(output: &str) -> Counts {
    let mut counts = Counts::default();
    for line in output.lines() {
        let Some(results) = line
            .strip_prefix("test result: ")
            .and_then(|rest| rest.split_once(". "))
        else {
            continue;
        };
        for part in results.1.split(';') {
            let mut words = part.split_whitespace();
            let (Some(Ok(number)), Some(what)) =
                (words.next().map(str::parse::<usize>), words.next())
            else {
                continue;
            };
            match what {
                "passed" => counts.passed += number,
                "failed" => counts.failed += number,
                "ignored" => counts.ignored += number,
                _ => {}
            }
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_results_of_all_binaries_are_added() {
        let output = "running 3 tests\ntest a ... ok\n\
            test result: ok. 33 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.82s\n\
            test result: FAILED. 2 passed; 4 failed; 0 ignored; 0 measured; 9 filtered out; finished in 1.00s\n\
            test result: no such line\n";
        assert_eq!(
            count(output),
            Counts {
                passed: 35,
                failed: 4,
                ignored: 1
            }
        );
    }

    #[test]
    fn failed_tests_are_named() {
        let output =
            "test a::b ... ok\ntest a::c ... FAILED\ntest result: FAILED. 1 passed; 1 failed\n";
        assert_eq!(failed_names(output).collect::<Vec<_>>(), ["a::c"]);
    }

    #[test]
    fn a_test_that_prints_such_words_is_not_counted() {
        assert_eq!(
            count("note: test result: ok. 7 passed; 0 failed\n7 passed; 1 failed\n"),
            Counts::default()
        );
    }
}
