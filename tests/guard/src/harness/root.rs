//! What a scenario needs root for, while it runs as the user.
//!
//! The process that was started as root listens on a socket that only the scenario's user may open, and runs what
//! it is told: both are the test, in a guest that is thrown away.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};

use anyhow::{Context, Result, ensure};

use super::command::{self, Ended};

/// Where root listens.
const SOCKET: &str = "/run/guard-scenarios.socket";

/// Serves requests in the background until the process ends.
pub fn serve(uid: u32) -> Result<()> {
    if fs::exists(SOCKET)? {
        fs::remove_file(SOCKET)?;
    }
    let listener =
        UnixListener::bind(SOCKET).with_context(|| format!("cannot listen on {SOCKET}"))?;
    fs::set_permissions(SOCKET, fs::Permissions::from_mode(0o600))?;
    std::os::unix::fs::chown(SOCKET, Some(uid), None)?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client that breaks off loses its answer, nothing else.
            std::thread::spawn(move || answer(stream));
        }
    });
    Ok(())
}

fn answer(stream: UnixStream) -> Result<()> {
    let mut request = String::new();
    BufReader::new(&stream).read_line(&mut request)?;
    let argv: Vec<String> = serde_json::from_str(&request)?;
    let ended = command::run(&argv).unwrap_or_else(|error| Ended {
        status: 127,
        stdout: String::new(),
        stderr: format!("{error:#}"),
    });
    let mut stream = stream;
    writeln!(stream, "{}", serde_json::to_string(&ended)?)?;
    Ok(())
}

/// Runs `argv` as root to its end.
pub fn run(argv: &[&str]) -> Result<Ended> {
    let mut stream = UnixStream::connect(SOCKET).with_context(|| {
        format!("root does not listen on {SOCKET}: is this `guard-scenarios run`?")
    })?;
    writeln!(stream, "{}", serde_json::to_string(argv)?)?;
    let mut reply = String::new();
    BufReader::new(stream).read_line(&mut reply)?;
    serde_json::from_str(&reply).context("root's answer")
}

/// Runs `argv` as root and answers its trimmed output; fails when its status is not 0.
pub fn ok(argv: &[&str]) -> Result<String> {
    let ended = run(argv)?;
    ensure!(
        ended.status == 0,
        "as root, {} ended with {}: {}",
        command::line(argv),
        ended.status,
        ended.said()
    );
    Ok(ended.stdout.trim().to_owned())
}

/// Starts a shell command as root that stays, and answers its PID. Its output goes nowhere: a pipe that it held
/// open would keep the answer from ending.
pub fn spawn(script: &str) -> Result<u32> {
    let script = format!("{{ {script}; }} </dev/null >/dev/null 2>&1 & echo $!");
    Ok(ok(&["sh", "-c", &script])?.parse()?)
}
