//! QEMU's control protocol: JSON lines over a socket.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// How long QEMU may take to answer a command. It answers from its main loop, within milliseconds.
const ANSWER: Duration = Duration::from_secs(30);

/// A connection to the monitor of a running QEMU.
#[derive(Debug)]
pub struct Qmp {
    reader: BufReader<UnixStream>,
    /// Events that came while a command's answer was awaited.
    events: Vec<Value>,
}

impl Qmp {
    /// Over the socket whose other end QEMU has; waits for its greeting.
    pub fn over(stream: UnixStream) -> Result<Self> {
        let mut qmp = Self {
            reader: BufReader::new(stream),
            events: Vec::new(),
        };
        qmp.message(Instant::now() + ANSWER)
            .context("no greeting from QEMU")?;
        qmp.execute("qmp_capabilities", json!({}))?;
        Ok(qmp)
    }

    /// Runs a command and returns its `return` member.
    ///
    /// # Errors
    /// With QEMU's own description when it refuses, or when it is gone.
    pub fn execute(&mut self, command: &str, arguments: Value) -> Result<Value> {
        let mut line = json!({ "execute": command, "arguments": arguments }).to_string();
        line.push('\n');
        self.reader
            .get_mut()
            .write_all(line.as_bytes())
            .with_context(|| format!("cannot send {command} to QEMU"))?;
        let deadline = Instant::now() + ANSWER;
        loop {
            let mut message = self
                .message(deadline)
                .with_context(|| format!("no answer to {command} from QEMU"))?;
            if let Some(error) = message.get("error") {
                bail!(
                    "QEMU refuses {command}: {}",
                    error["desc"].as_str().unwrap_or("no reason given")
                );
            }
            match message.get_mut("return") {
                Some(value) => return Ok(value.take()),
                None => self.events.push(message),
            }
        }
    }

    /// Waits for the first event for which `pick` has a result, also among those that have come already.
    ///
    /// # Errors
    /// At the deadline, or when QEMU is gone.
    pub fn wait<T>(
        &mut self,
        deadline: Instant,
        mut pick: impl FnMut(&str, &Value) -> Option<T>,
    ) -> Result<T> {
        let mut pick = |event: &Value| pick(event["event"].as_str()?, &event["data"]);
        for event in std::mem::take(&mut self.events) {
            if let Some(found) = pick(&event) {
                return Ok(found);
            }
        }
        loop {
            let event = self.message(deadline)?;
            if let Some(found) = pick(&event) {
                return Ok(found);
            }
        }
    }

    /// Waits for a migration to or from a file to end.
    pub fn migrated(&mut self, deadline: Instant) -> Result<()> {
        let status = self
            .wait(deadline, |event, data| {
                match (event, data["status"].as_str()) {
                    ("MIGRATION", Some(status @ ("completed" | "failed"))) => {
                        Some(status.to_owned())
                    }
                    _ => None,
                }
            })
            .context("waiting for the snapshot's transfer")?;
        if status != "completed" {
            bail!("QEMU says that the snapshot's transfer {status}");
        }
        Ok(())
    }

    /// Waits until QEMU has closed the connection, as it does when it ends.
    pub fn closed(&mut self, deadline: Instant) -> Result<()> {
        loop {
            match self.line(deadline)? {
                Some(_) => {}
                None => return Ok(()),
            }
        }
    }

    fn message(&mut self, deadline: Instant) -> Result<Value> {
        let Some(line) = self.line(deadline)? else {
            bail!("QEMU ended");
        };
        serde_json::from_str(&line).with_context(|| format!("QEMU sent {line:?}"))
    }

    fn line(&mut self, deadline: Instant) -> Result<Option<String>> {
        let mut line = Vec::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                bail!("QEMU did not do it in time");
            }
            self.reader
                .get_ref()
                .set_read_timeout(Some(left))
                .context("cannot set a timeout")?;
            match self.reader.read_until(b'\n', &mut line) {
                Ok(_) if line.ends_with(b"\n") => {
                    return Ok(Some(String::from_utf8_lossy(&line).into_owned()));
                }
                Ok(_) => return Ok(None),
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                // A QEMU that was killed with unread bytes resets the connection.
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(None),
                Err(error) => return Err(error).context("cannot read from QEMU"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A QEMU that says all of `script` at once and then goes away.
    fn qmp(script: &str) -> Result<Qmp> {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs
            .write_all(format!("{{\"QMP\":{{}}}}\n{{\"return\":{{}}}}\n{script}").as_bytes())
            .unwrap();
        theirs.shutdown(std::net::Shutdown::Write).unwrap();
        // Kept open for our commands, which nobody reads.
        std::mem::forget(theirs);
        Qmp::over(ours)
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(5)
    }

    #[test]
    fn an_event_between_command_and_answer_is_kept() {
        let mut qmp = qmp(concat!(
            "{\"event\":\"MIGRATION\",\"data\":{\"status\":\"active\"}}\n",
            "{\"event\":\"MIGRATION\",\"data\":{\"status\":\"completed\"}}\n",
            "{\"return\":{\"x\":1}}\n"
        ))
        .unwrap();
        assert_eq!(qmp.execute("a", json!({})).unwrap(), json!({"x": 1}));
        qmp.migrated(soon()).unwrap();
        qmp.closed(soon()).unwrap();
    }

    #[test]
    fn a_refusal_has_qemus_reason() {
        let mut qmp =
            qmp("{\"error\":{\"class\":\"GenericError\",\"desc\":\"no such thing\"}}\n").unwrap();
        let error = qmp.execute("frob", json!({})).unwrap_err().to_string();
        assert_eq!(error, "QEMU refuses frob: no such thing");
    }

    #[test]
    fn a_failed_transfer_and_an_early_end_are_errors() {
        let mut failed =
            qmp("{\"event\":\"MIGRATION\",\"data\":{\"status\":\"failed\"}}\n").unwrap();
        assert!(failed.migrated(soon()).is_err());
        let error = qmp("").unwrap().execute("x", json!({})).unwrap_err();
        assert!(format!("{error:#}").contains("QEMU ended"), "{error:#}");
    }
}
