//! The user bus of another machine or of a container, as systemctl reaches it: systemd-stdio-bridge there, started by
//! ssh or systemd-run here, with the bus protocol on its standard input and output.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use async_io::Timer;
use futures_lite::FutureExt;
use zbus::Connection;

use crate::args::Target;
use crate::bus;
use crate::error::CliError;

/// The longest wait for the other side, as sd-bus waits: a person may be asked for a passphrase meanwhile.
const CONNECT: Duration = Duration::from_secs(90);
/// How long the bridge may take to end once the connection is gone.
const END: Duration = Duration::from_secs(2);
/// Another ssh, as systemctl takes it.
const SSH: &str = "SYSTEMD_SSH";
const BRIDGE: &str = "systemd-stdio-bridge";
/// What the other side's login shell, whichever it is, is told. The bridge's own --user is of no use here: it counts
/// for containers alone, and the bus would be the system's.
const THERE: &str =
    r#"sh -c 'exec systemd-stdio-bridge "-punix:path=${XDG_RUNTIME_DIR:-/run/user/$(id -u)}/bus"'"#;

/// The program that carries the connection. It ends with it.
#[derive(Debug)]
pub struct Bridge(Child);

impl Drop for Bridge {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Connects; what is done with the connection is to be [`bus::driven`]. The connection comes first, so that it is gone when the bridge is ended.
pub async fn connect(target: &Target, call: Duration) -> Result<(Connection, Bridge), CliError> {
    let argv = argv(target, std::env::var_os(SSH).as_deref());
    let pair = UnixStream::pair().and_then(|(ours, theirs)| {
        let input = OwnedFd::from(theirs);
        Ok((ours, input.try_clone()?, input))
    });
    let (ours, output, input) =
        pair.map_err(|error| CliError::Failed(format!("no pair of sockets: {error}")))?;
    // What it says of itself goes to the terminal: a question of ssh's, or why it cannot.
    let child = Command::new(&argv[0])
        .args(&argv[1..])
        .stdin(Stdio::from(input))
        .stdout(Stdio::from(output))
        .spawn()
        .map_err(|error| {
            let program = argv[0].display();
            CliError::Unavailable(format!("{target} cannot be reached: {program}: {error}"))
        })?;
    let mut bridge = Bridge(child);
    let connected = async {
        let builder = zbus::connection::Builder::async_io_unix_stream(ours);
        builder
            .method_timeout(bus::CALL_TIMEOUT + call)
            .internal_executor(false)
            .build()
            .await
    };
    let late = async {
        Timer::after(CONNECT).await;
        Err(zbus::Error::InputOutput(
            std::io::Error::from(std::io::ErrorKind::TimedOut).into(),
        ))
    };
    match connected.or(late).await {
        Ok(connection) => Ok((connection, bridge)),
        Err(error) => {
            let status = ended(&mut bridge.0).await;
            Err(CliError::Unavailable(why(
                target,
                status,
                &error.to_string(),
            )))
        }
    }
}

/// How the bridge ended, if it did.
async fn ended(child: &mut Child) -> Option<i32> {
    let mut left = END;
    let step = Duration::from_millis(20);
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status.code().unwrap_or(-1));
        }
        left = left.checked_sub(step)?;
        Timer::after(step).await;
    }
}

/// What to start. `ssh` is the value of `$SYSTEMD_SSH`.
fn argv(target: &Target, ssh: Option<&OsStr>) -> Vec<OsString> {
    let mut argv: Vec<OsString> = Vec::new();
    match target {
        Target::Host { destination, port } => {
            argv.push(ssh.unwrap_or("ssh".as_ref()).to_owned());
            argv.push("-xT".into());
            if let Some(port) = port {
                argv.extend(["-p".into(), port.to_string().into()]);
            }
            argv.extend(["--", destination, THERE].map(OsString::from));
        }
        // What `systemctl --user -M` starts.
        Target::Machine { user, name } => {
            let user = format!("-pUser={user}");
            argv.extend(["systemd-run", "-M", name, "-PGq", "--wait", &user].map(OsString::from));
            argv.extend(
                [
                    "-pPAMName=login",
                    BRIDGE,
                    "-punix:path=${XDG_RUNTIME_DIR}/bus",
                ]
                .map(OsString::from),
            );
        }
    }
    argv
}

/// Why there is no connection. `status` is how the bridge ended.
fn why(target: &Target, status: Option<i32>, error: &str) -> String {
    match (target, status) {
        (Target::Host { .. }, Some(255)) => {
            format!("{target} cannot be reached; what ssh says of it is above")
        }
        (Target::Host { .. }, Some(126 | 127)) => {
            format!("{target} has no {BRIDGE}, which is a part of systemd")
        }
        (Target::Host { .. }, Some(_)) => format!(
            "{target} has no user bus for this user; what it says is above. Without a session there: \
             loginctl enable-linger USER"
        ),
        (Target::Machine { .. }, Some(_)) => format!(
            "{target} has no user bus that can be reached; what systemd-run says of it is above. It takes root, the \
             container must be up (machinectl list), and the user must exist in it"
        ),
        (_, None) => format!("{target} does not answer as a bus does: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bridge_is_started_as_systemctl_starts_it() {
        let line = |target: &Target, ssh: Option<&str>| {
            let argv = argv(target, ssh.map(OsStr::new));
            let words: Vec<_> = argv.iter().map(|word| word.to_string_lossy()).collect();
            words.join(" ")
        };
        let host = Target::Host {
            destination: "me@build".into(),
            port: Some(2222),
        };
        assert_eq!(
            line(&host, None),
            format!("ssh -xT -p 2222 -- me@build {THERE}")
        );
        assert!(line(&host, Some("/opt/ssh")).starts_with("/opt/ssh -xT "));
        let machine = Target::Machine {
            user: "me".into(),
            name: ".host".into(),
        };
        assert_eq!(
            line(&machine, None),
            "systemd-run -M .host -PGq --wait -pUser=me -pPAMName=login systemd-stdio-bridge \
             -punix:path=${XDG_RUNTIME_DIR}/bus"
        );
    }

    #[test]
    fn each_failure_has_its_own_way_out() {
        let host = Target::Host {
            destination: "build".into(),
            port: None,
        };
        let text = |status| why(&host, status, "broken pipe");
        assert!(text(Some(255)).contains("ssh says"));
        assert!(text(Some(127)).contains(BRIDGE));
        assert!(text(Some(1)).contains("enable-linger"));
        assert!(text(None).contains("broken pipe"));
    }
}
