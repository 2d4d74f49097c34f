//! Running programs as the scenario's user and reading what they say.

use std::ffi::OsStr;
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

/// How a program ended and what it said.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ended {
    /// Exit status; 128 + N when signal N ended it, as a shell says it.
    pub status: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Ended {
    /// Both outputs, for a message.
    pub fn said(&self) -> String {
        format!("{}{}", self.stdout, self.stderr).trim().to_owned()
    }
}

/// Exit status as a shell says it.
pub fn shell_status(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// The arguments as one line.
pub fn line<S: AsRef<OsStr>>(argv: &[S]) -> String {
    argv.iter()
        .map(|arg| arg.as_ref().to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Runs `argv` to its end, whatever its status; stdin is empty.
pub fn run<S: AsRef<OsStr>>(argv: &[S]) -> Result<Ended> {
    finish(Command::new(argv[0].as_ref()).args(&argv[1..]))
        .with_context(|| format!("cannot run {}", line(argv)))
}

/// Runs a prepared command to its end, whatever its status; stdin is empty.
pub fn finish(command: &mut Command) -> Result<Ended> {
    let output = command.stdin(Stdio::null()).output()?;
    Ok(Ended {
        status: shell_status(output.status),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

/// Runs `argv` and answers its trimmed standard output; fails with what it said when its status is not 0.
pub fn ok<S: AsRef<OsStr>>(argv: &[S]) -> Result<String> {
    let ended = run(argv)?;
    ensure!(
        ended.status == 0,
        "{} ended with {}: {}",
        line(argv),
        ended.status,
        ended.said()
    );
    Ok(ended.stdout.trim().to_owned())
}
