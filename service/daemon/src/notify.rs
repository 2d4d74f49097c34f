//! What systemd is told of the service (sd_notify(3)).

use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The notification socket, where the service manager gave one.
pub struct Notifier {
    socket: Option<UnixDatagram>,
    status: String,
}

impl Notifier {
    /// From `$NOTIFY_SOCKET`; without it every call does nothing.
    pub fn from_environment() -> Notifier {
        Notifier {
            socket: connect(),
            status: String::new(),
        }
    }

    /// How often `WATCHDOG=1` is due: half of `$WATCHDOG_USEC`, as sd_watchdog_enabled(3) advises.
    pub fn watchdog_interval() -> Option<Duration> {
        let usec: u64 = std::env::var("WATCHDOG_USEC").ok()?.parse().ok()?;
        (usec > 0).then(|| Duration::from_micros(usec / 2))
    }

    /// One line for `systemctl status`; sent only when it changes.
    pub fn status(&mut self, line: String) {
        if line != self.status {
            self.send(&format!("STATUS={line}"));
            self.status = line;
        }
    }

    /// The loop is alive.
    pub fn watchdog(&self) {
        self.send("WATCHDOG=1");
    }

    /// The service is about to end.
    pub fn stopping(&self) {
        self.send("STOPPING=1");
    }

    fn send(&self, message: &str) {
        if let Some(socket) = &self.socket {
            // Nobody to tell if even this fails: systemd then acts on its own timers.
            let _ = socket.send(message.as_bytes());
        }
    }
}

fn connect() -> Option<UnixDatagram> {
    let path = std::env::var_os("NOTIFY_SOCKET")?;
    let address = match path.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(&path),
    };
    let socket = UnixDatagram::unbound().ok()?;
    socket.connect_addr(&address.ok()?).ok()?;
    Some(socket)
}
