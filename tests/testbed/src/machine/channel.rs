//! Runs commands in the guest through its agent, over the virtio-serial port that QEMU connects to a socket of ours.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::protocol::{self, Answer};

/// What the guest may take beyond a command's own time to start it, kill it and tell us.
const GRACE: Duration = Duration::from_secs(20);

/// Of a command that SIGKILL ended, as timeout(1) reports it.
const KILLED: i32 = 128 + 9;

/// Our end of the port.
#[derive(Debug)]
pub struct Channel {
    stream: UnixStream,
    /// Set once an answer was cut off: what comes next would be out of step.
    lost: bool,
}

impl Channel {
    /// Over the socket whose other end QEMU has.
    pub fn over(stream: UnixStream) -> Self {
        Self {
            stream,
            lost: false,
        }
    }

    /// As [`crate::guest::Guest::run`].
    pub fn run(
        &mut self,
        argv: &[&str],
        timeout: Duration,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<i32> {
        if self.lost {
            bail!("the machine's agent was lost in an earlier command");
        }
        let token = token()?;
        let line = protocol::request(&token, timeout, argv)?;
        let begin = Instant::now();
        // Until the answer is complete. An error on the way leaves it set.
        self.lost = true;
        let status = self.talk(&line, Answer::to(&token), begin + timeout + GRACE, sink);
        self.lost = status.is_err();
        let status = status.with_context(|| format!("running {} in the machine", shown(argv)))?;
        if status == KILLED && begin.elapsed() >= timeout {
            bail!(
                "{} did not end within {timeout:?} and was killed",
                shown(argv)
            );
        }
        Ok(status)
    }

    fn talk(
        &mut self,
        line: &str,
        mut answer: Answer,
        deadline: Instant,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<i32> {
        // Writing cannot wait for long: QEMU takes the bytes or is gone.
        self.stream
            .set_write_timeout(Some(GRACE))
            .context("cannot set a timeout")?;
        self.stream
            .write_all(line.as_bytes())
            .context("cannot write to the machine's agent")?;
        let mut buffer = vec![0; 65536];
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                if answer.has_begun() {
                    bail!("the command was to be killed, but the machine's agent does not say so");
                }
                bail!("the machine's agent does not answer");
            }
            self.stream
                .set_read_timeout(Some(left))
                .context("cannot set a timeout")?;
            let length = match self.stream.read(&mut buffer) {
                Ok(0) => bail!("the machine ended"),
                Ok(length) => length,
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
                {
                    continue;
                }
                Err(error) => return Err(error).context("the machine ended"),
            };
            if let Some(status) = answer.feed(&buffer[..length], sink)? {
                return Ok(status);
            }
        }
    }
}

/// A command for an error message: a script or a hostile argument may be long.
fn shown(argv: &[&str]) -> String {
    format!("{:.200}", argv.join(" "))
}

/// 128 random bits: no output contains it by chance.
fn token() -> Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .context("cannot read /dev/urandom")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};

    use super::*;

    /// A channel to a thread that answers each request line as `answer` says.
    fn channel(answer: impl Fn(&str) -> String + Send + 'static) -> Channel {
        let (ours, theirs) = UnixStream::pair().unwrap();
        std::thread::spawn(move || {
            let mut writer = theirs.try_clone().unwrap();
            for line in BufReader::new(theirs).lines().map_while(Result::ok) {
                let token = line.split(' ').next().unwrap();
                if writer.write_all(answer(token).as_bytes()).is_err() {
                    return;
                }
            }
        });
        Channel::over(ours)
    }

    fn ended(token: &str, status: i32) -> String {
        format!("\x1e{token} begin\nhello\n\x1e{token} end {status}\n")
    }

    #[test]
    fn output_and_status_come_back_for_each_command() {
        let mut channel = channel(|token| ended(token, 3));
        for _ in 0..2 {
            let mut output = Vec::new();
            let status = channel
                .run(&["x"], Duration::from_secs(5), &mut |bytes| {
                    output.extend_from_slice(bytes);
                })
                .unwrap();
            assert_eq!((status, output.as_slice()), (3, b"hello\n".as_slice()));
        }
    }

    #[test]
    fn a_killed_command_is_a_timeout_only_when_its_time_was_up() {
        let mut channel = channel(|token| ended(token, KILLED));
        let mut run = |timeout| channel.run(&["x"], timeout, &mut |_| {});
        assert_eq!(run(Duration::from_secs(60)).unwrap(), KILLED);
        assert!(
            run(Duration::ZERO)
                .unwrap_err()
                .to_string()
                .contains("did not end")
        );
        assert_eq!(run(Duration::from_secs(60)).unwrap(), KILLED);
    }

    #[test]
    fn a_cut_off_answer_makes_the_channel_unusable() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut channel = Channel::over(ours);
        drop(theirs);
        assert!(
            channel
                .run(&["x"], Duration::from_secs(5), &mut |_| {})
                .is_err()
        );
        let error = channel
            .run(&["x"], Duration::from_secs(5), &mut |_| {})
            .unwrap_err();
        assert!(error.to_string().contains("earlier"), "{error:#}");
    }
}
