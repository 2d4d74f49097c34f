//! A shell as a reader of the documentation has one: what a command sets, the next one finds.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// Behind it comes the status of what was typed.
const END: &str = "\u{1e}ended ";

/// One bash, whose standard error is its standard output.
pub struct Shell {
    child: Child,
    stdin: ChildStdin,
    output: Receiver<Vec<u8>>,
}

impl Shell {
    /// Starts it in `folder`, as `command` has it: bash with what comes before it.
    pub fn start(command: &[&str], folder: &str) -> Result<Shell> {
        let mut child = Command::new(command[0])
            .args(&command[1..])
            .args(["--noprofile", "--norc"])
            .current_dir(folder)
            .env("TERM", "dumb")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start bash")?;
        let mut stdout = child.stdout.take().context("no pipe")?;
        let stdin = child.stdin.take().context("no pipe")?;
        let (send, output) = mpsc::channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = stdout.read(&mut buffer) {
                if send.send(buffer[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        let mut shell = Shell {
            child,
            stdin,
            output,
        };
        shell.run("exec 2>&1", Duration::from_secs(10))?;
        Ok(shell)
    }

    /// Types a command; answers its status and what it said.
    pub fn run(&mut self, command: &str, patience: Duration) -> Result<(i32, String)> {
        // Its own standard input is empty: it would read what is typed next.
        writeln!(
            self.stdin,
            "{{ {command}\n}} </dev/null\nprintf '{END}%d\\n' $?"
        )?;
        let deadline = Instant::now() + patience;
        let mut said = Vec::new();
        loop {
            let text = String::from_utf8_lossy(&said);
            if let Some((before, after)) = text.split_once(END)
                && let Some(status) = after.strip_suffix('\n')
            {
                return Ok((status.parse()?, before.to_owned()));
            }
            match self
                .output
                .recv_timeout(deadline.saturating_duration_since(Instant::now()))
            {
                Ok(bytes) => said.extend(bytes),
                Err(RecvTimeoutError::Timeout) => bail!(
                    "no end within {} s; it said so far: {text}",
                    patience.as_secs()
                ),
                Err(RecvTimeoutError::Disconnected) => bail!("the shell ended; it said: {text}"),
            }
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_sets_the_next_one_finds() {
        let mut shell = Shell::start(&["bash"], "/").unwrap();
        let patience = Duration::from_secs(60);
        assert_eq!(
            shell.run("a=1; echo x >&2", patience).unwrap(),
            (0, "x\n".into())
        );
        assert_eq!(
            shell.run("echo $a; (exit 3)", patience).unwrap(),
            (3, "1\n".into())
        );
        assert_eq!(
            shell.run("sleep 300 &", patience).unwrap(),
            (0, String::new())
        );
        assert_eq!(
            shell.run("kill $!; cat", patience).unwrap(),
            (0, String::new())
        );
        let error = shell.run("exit", patience).unwrap_err().to_string();
        assert!(error.contains("ended"), "{error}");
    }
}
