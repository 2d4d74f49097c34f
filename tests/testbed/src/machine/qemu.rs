//! A running QEMU: started with its sockets, killed when dropped or when this process dies.

use std::fs::{File, OpenOptions};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Child;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::json;

use super::channel::Channel;
use super::emulator::Emulator;
use super::qmp::Qmp;

/// How much of the console an error shows: a kernel panic from its first oops on, and the traces of other CPUs after it.
const TAIL_LINES: usize = 400;

/// A QEMU process.
#[derive(Debug)]
pub struct Qemu {
    child: Child,
    /// Its monitor.
    pub qmp: Qmp,
    /// The guest's agent. It answers as soon as it runs; what is asked before waits for it.
    pub agent: Channel,
    log: File,
}

impl Qemu {
    /// Starts QEMU in the folder `directory` with `arguments` made by [`super::command`].
    ///
    /// No file is left behind however this process ends: all that QEMU has of us are two nameless sockets and a
    /// nameless log. QEMU is killed when the *thread* that called this ends (`PR_SET_PDEATHSIG`, prctl(2)), so call it
    /// on the thread that uses the machine or on one that lives as long.
    pub fn start(emulator: &Emulator, arguments: &[String], directory: &Path) -> Result<Self> {
        let (agent, agent_of_qemu) = UnixStream::pair().context("cannot make a socket")?;
        let (monitor, monitor_of_qemu) = UnixStream::pair().context("cannot make a socket")?;
        let log = nameless_log()?;
        let mut command = emulator.command(&["setpriv", "--pdeathsig", "KILL", "--"]);
        command
            .args(arguments)
            .current_dir(directory)
            .stdin(OwnedFd::from(agent_of_qemu))
            .stdout(OwnedFd::from(monitor_of_qemu))
            .stderr(log.try_clone().context("cannot duplicate a file")?);
        let child = command
            .spawn()
            .context("cannot start setpriv (package util-linux)")?;
        // It holds QEMU's ends of the sockets; with them open here, we would not see them close.
        drop(command);
        let mut child = Kill(Some(child));
        let qmp = Qmp::over(monitor)
            .with_context(|| format!("{emulator} does not start:\n{}", tail(&log)))?;
        Ok(Self {
            child: child.0.take().expect("set above"),
            qmp,
            agent: Channel::over(agent),
            log,
        })
    }

    /// The last lines of QEMU's messages and the guest's console.
    pub fn log_tail(&self) -> String {
        tail(&self.log)
    }

    /// Asks QEMU to end and waits until it has; the guest is not asked.
    ///
    /// # Errors
    /// When it does not end by `deadline` (it is then killed) or fails.
    pub fn quit(mut self, deadline: Instant) -> Result<()> {
        self.qmp.execute("quit", json!({}))?;
        self.qmp.closed(deadline).context("QEMU does not quit")?;
        let status = self.child.wait().context("cannot wait for QEMU")?;
        if !status.success() {
            bail!("QEMU ended with {status}:\n{}", self.log_tail());
        }
        Ok(())
    }
}

impl Drop for Qemu {
    fn drop(&mut self) {
        kill(&mut self.child);
    }
}

/// A child that is not to outlive a failed start.
struct Kill(Option<Child>);

impl Drop for Kill {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            kill(child);
        }
    }
}

fn kill(child: &mut Child) {
    // Both fail only when it has ended and been waited for.
    let _ = child.kill();
    let _ = child.wait();
}

/// A file without a name, for appending: QEMU opens it anew through /dev/fd/2 for the console.
fn nameless_log() -> Result<File> {
    let named = tempfile::NamedTempFile::new().context("cannot create a temporary file")?;
    OpenOptions::new()
        .read(true)
        .append(true)
        .open(named.path())
        .with_context(|| format!("cannot open {}", named.path().display()))
}

fn tail(log: &File) -> String {
    let text = match contents(log) {
        Ok(bytes) => printable(&bytes),
        Err(error) => return format!("(its log cannot be read: {error:#})"),
    };
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    if lines.is_empty() {
        return "(nothing on its console)".to_owned();
    }
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

fn contents(log: &File) -> Result<Vec<u8>> {
    let length = usize::try_from(log.metadata()?.len()).map_err(|_| anyhow!("too long"))?;
    let mut bytes = vec![0; length];
    log.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

/// Without the console's escape sequences, which would colour the reader's terminal or clear it.
fn printable(bytes: &[u8]) -> String {
    let mut text = String::new();
    let lossy = String::from_utf8_lossy(bytes);
    let mut characters = lossy.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\u{1b}' => {
                if characters.next_if_eq(&'[').is_some() {
                    // A control sequence ends with its first letter or other final byte (ECMA-48, 5.4).
                    while characters
                        .next_if(|next| !('@'..='~').contains(next))
                        .is_some()
                    {}
                }
                characters.next();
            }
            '\n' | '\t' => text.push(character),
            _ if character.is_control() => {}
            _ => text.push(character),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn escape_sequences_are_removed() {
        let bytes = b"\x1bc\x1b[?7l\x1b[2J\x1b[0;1;39mBooting\x1b[0m\r\nnext\xff";
        assert_eq!(printable(bytes), "Booting\nnext\u{fffd}");
        assert_eq!(printable(b"cut off\x1b["), "cut off");
    }

    #[test]
    fn the_tail_is_the_last_lines() {
        let mut log = nameless_log().unwrap();
        assert_eq!(tail(&log), "(nothing on its console)");
        for number in 0..500 {
            writeln!(log, "line {number}\n").unwrap();
        }
        let tail = tail(&log);
        assert!(
            tail.starts_with("line 100\n") && tail.ends_with("line 499"),
            "{tail}"
        );
    }
}
