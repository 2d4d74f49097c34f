//! systemd-nspawn's readiness messages (`sd_notify(3)`): they say when the container's system manager is ready and
//! which process is its leader, so that nobody has to poll.

use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

/// The longest silence after which the caller is asked whether the container still lives.
const PATIENCE: Duration = Duration::from_millis(500);

/// A socket for `NOTIFY_SOCKET`.
#[derive(Debug)]
pub struct NotifySocket {
    socket: UnixDatagram,
    path: PathBuf,
    // Holds the socket's file.
    _folder: TempDir,
}

impl NotifySocket {
    /// Binds a socket in a folder that only we can enter.
    pub fn bind() -> Result<Self> {
        let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
        let path = folder.path().join("notify");
        let socket =
            UnixDatagram::bind(&path).with_context(|| format!("cannot bind {}", path.display()))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        Ok(Self {
            socket,
            path,
            _folder: folder,
        })
    }

    /// The value for `NOTIFY_SOCKET`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until the container is ready and returns its leader's PID.
    ///
    /// `alive` is asked now and then; its error ends the waiting.
    pub fn wait_ready(
        &self,
        deadline: Instant,
        alive: &mut dyn FnMut() -> Result<()>,
    ) -> Result<u32> {
        let mut seen = Seen::default();
        let mut buffer = [0; 4096];
        loop {
            match self.socket.recv(&mut buffer) {
                Ok(length) => seen.message(&String::from_utf8_lossy(&buffer[..length])),
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
                {
                    alive()?
                }
                Err(error) => return Err(error).context("cannot read from the readiness socket"),
            }
            if let (Some(leader), true) = (seen.leader, seen.ready) {
                return Ok(leader);
            }
            if Instant::now() > deadline {
                bail!(
                    "its system manager did not report readiness in time (said so far: {seen:?})"
                );
            }
        }
    }
}

/// What the messages said so far.
#[derive(Debug, Default)]
struct Seen {
    leader: Option<u32>,
    ready: bool,
}

impl Seen {
    fn message(&mut self, text: &str) {
        for line in text.lines() {
            if let Some(pid) = line.strip_prefix("X_NSPAWN_LEADER_PID=") {
                self.leader = pid.parse().ok();
            }
            self.ready |= line == "READY=1";
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leader_and_readiness_come_in_two_messages() {
        let socket = NotifySocket::bind().unwrap();
        let sender = UnixDatagram::unbound().unwrap();
        for message in [
            "STATUS=Container running.\nX_NSPAWN_LEADER_PID=4711",
            "STATUS=x",
            "READY=1\n",
        ] {
            sender.send_to(message.as_bytes(), socket.path()).unwrap();
        }
        let deadline = Instant::now() + Duration::from_secs(20);
        assert_eq!(socket.wait_ready(deadline, &mut || Ok(())).unwrap(), 4711);
    }

    #[test]
    fn a_dead_container_ends_the_waiting() {
        let socket = NotifySocket::bind().unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        let error = socket
            .wait_ready(deadline, &mut || bail!("it died"))
            .unwrap_err();
        assert_eq!(error.to_string(), "it died");
    }

    #[test]
    fn a_silent_container_ends_at_the_deadline() {
        let socket = NotifySocket::bind().unwrap();
        let error = socket
            .wait_ready(Instant::now(), &mut || Ok(()))
            .unwrap_err();
        assert!(error.to_string().contains("readiness"), "{error}");
    }
}
