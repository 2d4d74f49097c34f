//! A bus of one's own, with a guard and a systemd that only record.

mod guard;
mod history;
mod systemd;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

pub use guard::FakeGuard;
pub use systemd::FakeSystemd;

const CONFIG: &str = r#"<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>unix:dir=DIR</listen>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
</busconfig>
"#;

/// A dbus-daemon that knows no activation; it ends when dropped.
pub struct Bus {
    daemon: Child,
    address: String,
    dir: TempDir,
}

impl Bus {
    /// Starts one; none, with a printed reason, where dbus-daemon is not installed.
    pub fn start() -> Option<Bus> {
        let dir = tempfile::tempdir().unwrap();
        let config = dir.path().join("bus.conf");
        std::fs::write(
            &config,
            CONFIG.replace("DIR", &dir.path().display().to_string()),
        )
        .unwrap();
        let started = Command::new("dbus-daemon")
            .arg(format!("--config-file={}", config.display()))
            .args(["--nofork", "--nopidfile", "--print-address=1"])
            .stdout(Stdio::piped())
            // It complains of limits that only a system's own bus needs.
            .stderr(Stdio::null())
            .spawn();
        let mut daemon = match started {
            Ok(daemon) => daemon,
            Err(error) => {
                eprintln!("skipped: dbus-daemon cannot be started ({error}); install dbus-daemon");
                assert!(
                    std::env::var_os("CI").is_none(),
                    "a skip is a failure under CI"
                );
                return None;
            }
        };
        let mut address = String::new();
        let stdout = daemon.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut address).unwrap();
        let address = address.trim().to_owned();
        assert!(!address.is_empty(), "dbus-daemon did not start");
        Some(Bus {
            daemon,
            address,
            dir,
        })
    }

    /// A folder that goes with the bus.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// A connection's builder.
    fn builder(&self) -> zbus::connection::Builder<'_> {
        zbus::connection::Builder::address(self.address.as_str()).unwrap()
    }

    /// The command line, with this bus as the user's.
    pub fn cli(&self) -> Command {
        self.program(Path::new(env!("CARGO_BIN_EXE_workload-guard")))
    }

    /// The same under another name.
    pub fn program(&self, path: &Path) -> Command {
        let mut command = Command::new(path);
        command
            .env("DBUS_SESSION_BUS_ADDRESS", &self.address)
            .stdin(Stdio::null());
        command
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

/// Exit status, stdout and stderr.
pub fn run(command: &mut Command) -> (i32, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        status.code().expect("ended by itself"),
        text(stdout),
        text(stderr),
    )
}
