//! Command lines that run something in a guest: pure.
//!
//! Commands run as transient units of the guest's own manager: a process that merely entered the namespaces would
//! stay in the host's cgroup, outside of everything that the guest's systemd knows.

use std::process::Command;

/// How a command's stdio is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdio {
    /// As ours: pipes, files.
    Pipe,
    /// A terminal of the guest's own, forwarded from ours.
    Terminal,
}

/// `nsenter` into all namespaces of the guest's init; what follows is found in the guest.
pub fn nsenter(leader: u32) -> Command {
    let mut command = Command::new("nsenter");
    command.arg(format!("--target={leader}")).args([
        "--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--",
    ]);
    command
}

/// `argv` as the service `unit` of the guest's system manager, as root.
pub fn as_root(argv: &[&str], unit: &str, stdio: Stdio) -> Vec<String> {
    let mut line = transient(argv[0], stdio);
    line.push(format!("--unit={unit}"));
    line.extend(
        // Remaining processes of a command that has ended do not hold up its result for the default 90 s.
        ["--setenv=HOME=/root", "--property=TimeoutStopSec=5s", "--"].map(str::to_owned),
    );
    line.extend(shell_wrapped(argv));
    line
}

/// `argv` as a service of the user manager of uid 1000 (`dev`), as that user, with its session's environment.
///
/// To be run as root in the guest.
pub fn as_dev(argv: &[&str], stdio: Stdio) -> Vec<String> {
    let mut line: Vec<String> = [
        "setpriv",
        "--reuid=1000",
        "--regid=1000",
        "--init-groups",
        "env",
        "--ignore-environment",
        "PATH=/usr/local/bin:/usr/bin:/bin",
        "HOME=/home/dev",
        "USER=dev",
        "LANG=C.UTF-8",
        "XDG_RUNTIME_DIR=/run/user/1000",
        "DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/1000/bus",
    ]
    .map(str::to_owned)
    .into();
    line.extend(transient(argv[0], stdio));
    line.extend(["--user", "--same-dir", "--"].map(str::to_owned));
    line.extend(shell_wrapped(argv));
    line
}

fn transient(program: &str, stdio: Stdio) -> Vec<String> {
    let stdio = match stdio {
        Stdio::Pipe => "--pipe",
        Stdio::Terminal => "--pty",
    };
    let mut line: Vec<String> = ["systemd-run", "--quiet", "--wait", "--collect", stdio]
        .map(str::to_owned)
        .into();
    // Else the journal and the terminal's title show the wrapping shell.
    line.push(format!("--description={program}"));
    line
}

/// A shell around the command makes a death by signal the status 128 + N: systemd-run has no status for it.
/// systemd expands `$` in a service's arguments, so each is doubled.
fn shell_wrapped(argv: &[&str]) -> Vec<String> {
    ["/bin/sh", "-c", r#""$@"; exit $?"#, "sh"]
        .iter()
        .chain(argv)
        .map(|word| word.replace('$', "$$"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dollars_are_doubled_once_per_manager() {
        let line = as_root(&["echo", "$HOME"], "u", Stdio::Pipe);
        assert_eq!(line.last().unwrap(), "$$HOME");
        assert!(line.contains(&r#""$$@"; exit $$?"#.to_owned()));
        let dev = as_dev(&["echo", "$HOME"], Stdio::Pipe);
        assert_eq!(dev.last().unwrap(), "$$HOME");
    }

    #[test]
    fn the_command_follows_the_end_of_options() {
        let line = as_root(&["--version"], "u", Stdio::Terminal);
        let end = line.iter().position(|word| word == "--").unwrap();
        assert_eq!(line[end + 1], "/bin/sh");
        assert!(line[..end].contains(&"--pty".to_owned()));
    }
}
