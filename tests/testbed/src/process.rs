//! Child processes: output as it comes, a deadline, and no reader left waiting for a pipe that a stray
//! descendant keeps open.

use std::ffi::OsStr;
use std::io::{PipeReader, Read};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// How a streamed command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// By itself.
    Exited(ExitStatus),
    /// Its time was up; its process group was killed.
    TimedOut,
}

/// The exit status as a shell reports it: 128 + N for signal N.
pub fn shell_status(status: ExitStatus) -> i32 {
    status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// A command that is told to end (SIGTERM) when the calling thread ends before it, as when we are killed: it runs in a
/// process group of its own, where an interrupt at our terminal does not reach it.
pub fn tied(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig=TERM", "--"]).arg(program);
    command
}

/// Runs `command` without stdin in a process group of its own, giving its stdout and stderr to `sink` as they come.
///
/// Ends when the command itself ends, even if a descendant that left its process group still holds the pipe.
pub fn stream(command: Command, timeout: Duration, sink: &mut dyn FnMut(&[u8])) -> Result<Ended> {
    let mut command = command;
    let program = command.get_program().to_string_lossy().into_owned();
    let deadline = Instant::now() + timeout;
    let (mut output, writer) = std::io::pipe().context("cannot make a pipe")?;
    let (ended, end_mark) = std::io::pipe().context("cannot make a pipe")?;
    let stderr = writer.try_clone().context("cannot clone a pipe")?;
    command
        .stdin(Stdio::null())
        .stdout(writer)
        .stderr(stderr)
        .process_group(0);
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot start {program}"))?;
    // The command holds the pipe's writing ends; without this the reader never sees the end.
    drop(command);
    let group = Pid::from_raw(i32::try_from(child.id()).expect("a PID fits in i32"));
    let waiter = thread::spawn(move || {
        let status = child.wait();
        drop(end_mark);
        status
    });

    let mut timed_out = false;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() && !timed_out {
            timed_out = true;
            // The group is gone already when the command ended at this very moment.
            let _ = killpg(group, Signal::SIGKILL);
        }
        let wait = if timed_out { None } else { Some(left) };
        let (readable, child_ended) = wait_for(&output, &ended, wait)?;
        if readable && forward(&mut output, sink)? {
            continue;
        }
        if child_ended {
            break;
        }
        if readable {
            // Nobody writes any more; all that is left to wait for is the end of the command.
            let (_, child_ended) = wait_for(&ended, &ended, wait)?;
            if child_ended {
                break;
            }
        }
    }
    let status = waiter
        .join()
        .expect("the waiter does not panic")
        .with_context(|| format!("cannot wait for {program}"))?;
    Ok(if timed_out {
        Ended::TimedOut
    } else {
        Ended::Exited(status)
    })
}

/// Runs `command` to its end and returns its stdout; fails with its stderr when it fails.
pub fn output_of(command: &mut Command) -> Result<String> {
    let shown = format!("{command:?}");
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start {shown}"))?;
    if !output.status.success() {
        bail!(
            "{shown} failed ({}): {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Waits until `output` has something (or its end) to read, or `ended` has been closed: which of the two is so.
fn wait_for(
    output: &PipeReader,
    ended: &PipeReader,
    wait: Option<Duration>,
) -> Result<(bool, bool)> {
    let mut fds = [
        PollFd::new(output.as_fd(), PollFlags::POLLIN),
        PollFd::new(ended.as_fd(), PollFlags::POLLIN),
    ];
    let wait = match wait {
        None => PollTimeout::NONE,
        // Rounded up, so that the last fraction of a millisecond is not spent spinning.
        Some(left) => {
            PollTimeout::try_from(left.as_millis().saturating_add(1)).unwrap_or(PollTimeout::MAX)
        }
    };
    match poll(&mut fds, wait) {
        Ok(_) => {}
        Err(nix::errno::Errno::EINTR) => return Ok((false, false)),
        Err(error) => return Err(error).context("cannot poll a pipe"),
    }
    let ready = |fd: &PollFd<'_>| fd.any().unwrap_or(false);
    Ok((ready(&fds[0]), ready(&fds[1])))
}

/// Hands on what is there to read; false at the end of the stream.
fn forward(output: &mut PipeReader, sink: &mut dyn FnMut(&[u8])) -> Result<bool> {
    let mut buffer = [0; 8192];
    let length = output.read(&mut buffer).context("cannot read a pipe")?;
    sink(&buffer[..length]);
    Ok(length > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, timeout: Duration) -> (Ended, String) {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let mut seen = Vec::new();
        let ended = stream(command, timeout, &mut |bytes| seen.extend_from_slice(bytes)).unwrap();
        (ended, String::from_utf8(seen).unwrap())
    }

    #[test]
    fn output_and_status_arrive() {
        let (ended, seen) = sh("echo out; echo err >&2; exit 3", Duration::from_secs(20));
        let Ended::Exited(status) = ended else {
            panic!("timed out")
        };
        assert_eq!((shell_status(status), seen.as_str()), (3, "out\nerr\n"));
    }

    #[test]
    fn a_tied_command_ends_with_the_thread_that_started_it() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let starter = thread::spawn(move || {
            let mut command = tied("sh");
            // Once it has written, the tie is in place.
            command
                .args(["-c", "echo started; exec sleep 60"])
                .stdout(writer);
            let child = command.spawn().unwrap();
            drop(command);
            let mut line = [0; 8];
            reader.read_exact(&mut line).unwrap();
            (child, reader)
        });
        let (mut child, mut reader) = starter.join().unwrap();
        let mut rest = Vec::new();
        reader.read_to_end(&mut rest).unwrap();
        assert_eq!(shell_status(child.wait().unwrap()), 143);
    }

    #[test]
    fn a_signal_is_128_and_its_number() {
        let (ended, _) = sh("kill -TERM $$", Duration::from_secs(20));
        let Ended::Exited(status) = ended else {
            panic!("timed out")
        };
        assert_eq!(shell_status(status), 143);
    }

    #[test]
    fn a_deadline_kills_and_keeps_the_output() {
        let (ended, seen) = sh("echo before; sleep 60", Duration::from_millis(300));
        assert_eq!((ended, seen.as_str()), (Ended::TimedOut, "before\n"));
    }

    #[test]
    fn a_descendant_that_keeps_the_pipe_does_not_hold_us() {
        let begin = Instant::now();
        let (ended, seen) = sh("echo done; setsid sleep 20 & ", Duration::from_secs(15));
        assert!(matches!(ended, Ended::Exited(_)), "{ended:?}");
        assert_eq!(seen, "done\n");
        assert!(begin.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn closing_both_outputs_early_is_not_the_end() {
        let (ended, _) = sh("exec >&- 2>&-; sleep 0.2; exit 5", Duration::from_secs(20));
        let Ended::Exited(status) = ended else {
            panic!("timed out")
        };
        assert_eq!(shell_status(status), 5);
    }
}
