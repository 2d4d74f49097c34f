//! `--host` and `--machine`: the guard of another user, over a real sshd and through machined's `.host`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Result, ensure};
use serde_json::Value;
use workload_guard_dbus::names::GUARD_UNIT;

use super::{CONTAINER, Scenario};
use crate::harness::command::{self, Ended};
use crate::harness::guard::{Guard, QUIET};
use crate::harness::outcome::{Verdict, step};
use crate::harness::root;
use crate::harness::session::{HOME, PAYLOAD, Session};
use crate::harness::wait::{PATIENCE, until_true};

pub const SCENARIO: Scenario = Scenario {
    name: "another-sessions-guard",
    tiers: CONTAINER,
    quick: true,
    full: false,
    exclusive: false,
    timeout_s: 180,
    run,
};

const HOST: &str = "other@127.0.0.1:2222";
const CONTAINER_NAME: &str = "other@.host";

/// An sshd of the scenario's own, as Debian sets it up: PAM opens the session that has the user bus.
const SSHD: &str = "\
set -eu
mkdir -p /run/sshd /tmp/sshd
ssh-keygen -q -t ed25519 -N '' -f /tmp/sshd/key
printf '%s\\n' 'Port 2222' 'ListenAddress 127.0.0.1' 'HostKey /tmp/sshd/key' 'UsePAM yes' \
  'PasswordAuthentication no' 'KbdInteractiveAuthentication no' >/tmp/sshd/config
install -d -o other -g other -m 700 /home/other/.ssh
install -o other -g other -m 600 /home/dev/.ssh/id_ed25519.pub /home/other/.ssh/authorized_keys
systemd-run --quiet --unit=scenario-sshd /usr/sbin/sshd -D -f /tmp/sshd/config
";

fn run(session: &Session) -> Verdict {
    let own = Guard::install(session, QUIET)?;
    as_other(&format!("{PAYLOAD}/xtask install --dist {PAYLOAD}"))?;
    let ssh = Path::new(HOME).join(".ssh");
    fs::create_dir_all(&ssh)?;
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o700))?;
    fs::write(ssh.join("config"), "Host *\nStrictHostKeyChecking accept-new\nBatchMode yes\nLogLevel ERROR\n")?;
    let key = ssh.join("id_ed25519");
    command::ok(&["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", &key.to_string_lossy()])?;
    root::ok(&["sh", "-c", SSHD])?;
    until_true("sshd listens", PATIENCE, || {
        Ok(command::run(&["ssh", "-p", "2222", "other@127.0.0.1", "true"])?.status == 0)
    })?;

    over(&["-H", HOST], |words| command::run(words), &own)?;
    over(&["-M", CONTAINER_NAME], |words| root::run(&at_home(words)), &own)?;

    refused(&["-H", HOST, "run", "true"], 2, "ssh other@127.0.0.1")?;
    refused(&["-H", HOST, "version"], 2, "works on the machine")?;
    refused(&["-H", "-oProxyCommand=touch /tmp/owned", "status"], 2, "")?;
    refused(&["-H", "x@-oProxyCommand=touch /tmp/owned", "status"], 2, "begin with a dash")?;
    refused(&["--host=$(touch /tmp/owned)", "status"], 2, "does not contain")?;
    ensure!(!Path::new("/tmp/owned").exists(), "a host's name became a command");
    refused(&["-H", "nobody@127.0.0.1:2222", "status"], 69, "ssh says")?;
    refused(&["-H", "other@127.0.0.1:2223", "status"], 69, "ssh says")?;
    refused(&["-M", "other@nowhere", "status"], 69, "machinectl list")?;
    step("what works here alone, options for host names, and hosts that are not there are refused");
    Ok(())
}

/// Everything that is asked over the bus, of another guard than ours.
fn over(target: &[&str], run: impl Fn(&[&str]) -> Result<Ended>, own: &Guard) -> Result<()> {
    let ask = |words: &[&str]| -> Result<String> {
        let argv = [&["workload-guard"], target, words].concat();
        let ended = run(&argv)?;
        ensure!(ended.status == 0, "{}: {}", command::line(&argv), ended.said());
        Ok(ended.stdout)
    };
    // It does not run yet, or no longer: it is started there.
    as_other(&format!("systemctl --user stop {GUARD_UNIT}"))?;
    let status: Value = serde_json::from_str(&ask(&["status", "--json"])?)?;
    ensure!(status["version"].is_string() && status["holds"] == Value::Array(vec![]), "{status}");
    ask(&["pause", "--for", "10m", "from", "afar"])?;
    let holds: Value = serde_json::from_str(&ask(&["holds", "--json"])?)?;
    ensure!(holds[0]["kind"] == "pause" && holds[0]["reason"] == "from afar", "{holds}");
    let there = as_other("workload-guard status --format '{state}'")?;
    ensure!(there == "paused", "the other guard is {there}");
    ensure!(own.state()? != "paused", "our own guard was paused");
    let line = ask(&["status", "--format", "{state} {holds}"])?;
    ensure!(line.trim() == "paused 1", "{line}");
    for words in [&["config"][..], &["quota"], &["watch"], &["stats"], &["reload"], &["resume"]] {
        ask(words)?;
    }
    let argv = [&["workload-guard"], target, &["release", "1"]].concat();
    let wrong = run(&argv)?;
    ensure!(wrong.status == 1 && wrong.stderr.contains("other@"), "{wrong:?}");
    step(format_args!("{}: status, pause, holds, config, quota, watch, stats, reload, resume", target.join(" ")));
    Ok(())
}

/// Root has no `~/.local/bin` of the scenario's user.
fn at_home<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let mut words = words.to_vec();
    words[0] = "/home/dev/.local/bin/workload-guard";
    words
}

/// A shell command as the other user, in its session.
fn as_other(script: &str) -> Result<String> {
    let script = format!(
        "cd /home/other && exec runuser -u other -- env HOME=/home/other XDG_RUNTIME_DIR=/run/user/1001 \
         DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/1001/bus PATH=/home/other/.local/bin:/usr/bin:/bin {script}"
    );
    root::ok(&["sh", "-c", &script])
}

fn refused(words: &[&str], status: i32, text: &str) -> Result<()> {
    let argv = [&["workload-guard"], words].concat();
    let ended = command::run(&argv)?;
    ensure!(
        ended.status == status && ended.stderr.contains(text),
        "{}: {ended:?}, not {status} with {text:?}",
        command::line(&argv)
    );
    Ok(())
}
