//! The product's programs.

use anyhow::{Result, ensure};

use super::command::{self, Ended};

/// The command line, where every guest has it.
pub const CLI: &str = "/opt/workload-guard/workload-guard";

/// Runs `workload-guard bench ARGS` as root to its end.
pub fn bench(args: &[&str]) -> Result<Ended> {
    let mut argv = vec![CLI, "bench"];
    argv.extend(args);
    command::run(&argv)
}

/// Fails unless a program ended with `status`.
pub fn ended_with(ended: &Ended, status: i32, what: &str) -> Result<()> {
    ensure!(
        ended.status == status,
        "{what} ended with {}, not {status}: {}",
        ended.status,
        ended.said()
    );
    Ok(())
}

/// Fails unless a program said `words`.
pub fn said(ended: &Ended, words: &str) -> Result<()> {
    ensure!(
        ended.said().contains(words),
        "{words:?} was not said, but this: {}",
        ended.said()
    );
    Ok(())
}
