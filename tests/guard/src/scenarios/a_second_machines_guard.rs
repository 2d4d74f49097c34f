//! `--host` and `--machine` against a second systemd: a container inside the guest, with a real sshd and machined.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::ensure;
use serde_json::Value;

use super::{CONTAINER, Scenario};
use crate::harness::command;
use crate::harness::guard::{Guard, QUIET};
use crate::harness::outcome::{Verdict, step};
use crate::harness::root;
use crate::harness::session::{HOME, Session};
use crate::harness::wait::{PATIENCE, until_true};

pub const SCENARIO: Scenario = Scenario {
    name: "a-second-machines-guard",
    tiers: CONTAINER,
    quick: false,
    full: false,
    exclusive: false,
    timeout_s: 180,
    run,
};

const HOST: &str = "dev@127.0.0.1:2223";

/// A copy of the guest that boots inside it: its files laid over, another identity, an sshd of its own.
const SECOND: &str = "\
set -eu
mkdir -p /run/second /run/sshd
mount -t tmpfs second /run/second
mkdir /run/second/up /run/second/work /run/second/root
mount -t overlay second -o lowerdir=/,upperdir=/run/second/up,workdir=/run/second/work /run/second/root
cd /run/second/root
tr -d - </proc/sys/kernel/random/uuid >etc/machine-id
echo second >etc/hostname
ssh-keygen -q -t ed25519 -N '' -f etc/ssh/second_key
printf '%s\\n' 'Port 2223' 'ListenAddress 127.0.0.1' 'HostKey /etc/ssh/second_key' 'UsePAM yes' \
  'PasswordAuthentication no' 'KbdInteractiveAuthentication no' >etc/ssh/second_config
install -d -o dev -g dev -m 700 home/dev/.ssh
install -o dev -g dev -m 600 /home/dev/.ssh/id_ed25519.pub home/dev/.ssh/authorized_keys
printf '%s\\n' '[Service]' 'RuntimeDirectory=sshd' 'ExecStart=/usr/sbin/sshd -D -f /etc/ssh/second_config' \
  >etc/systemd/system/second-sshd.service
mkdir -p etc/systemd/system/multi-user.target.wants
ln -s ../second-sshd.service etc/systemd/system/multi-user.target.wants/second-sshd.service
systemd-run --quiet --unit=second -p Delegate=yes -p KillMode=mixed -- systemd-nspawn --quiet --keep-unit --boot \
  --machine=second --directory=/run/second/root --bind-ro=/opt/workload-guard --link-journal=no --resolv-conf=off \
  --timezone=off
";

fn run(session: &Session) -> Verdict {
    let own = Guard::install(session, QUIET)?;
    let ssh = Path::new(HOME).join(".ssh");
    fs::create_dir_all(&ssh)?;
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o700))?;
    fs::write(ssh.join("config"), "Host *\nStrictHostKeyChecking accept-new\nBatchMode yes\nLogLevel ERROR\n")?;
    let key = ssh.join("id_ed25519");
    command::ok(&["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", &key.to_string_lossy()])?;
    root::ok(&["sh", "-c", SECOND])?;
    until_true("the second one's sshd lets us in", PATIENCE, || {
        let ended = command::run(&["ssh", "-p", "2223", "dev@127.0.0.1", "systemctl", "--user", "is-system-running"])?;
        ensure!(ended.stdout.trim() == "running", "{}", ended.said());
        Ok(true)
    })
    .or_else(|error| Err(error.context(root::run(&["journalctl", "-u", "second", "-n", "40"])?.said())))?;

    command::ok(&["workload-guard", "-H", HOST, "pause", "from", "afar"])?;
    let holds: Value = serde_json::from_str(&command::ok(&["workload-guard", "-H", HOST, "holds", "--json"])?)?;
    ensure!(holds[0]["reason"] == "from afar", "{holds}");
    ensure!(own.holds()?.is_empty(), "our own guard was asked");
    step("-H: the second one's guard is paused, ours is not");

    let line = root::ok(&[
        "/home/dev/.local/bin/workload-guard",
        "-M",
        "dev@second",
        "status",
        "--format",
        "{state} {holds}",
    ])?;
    ensure!(line == "paused 1", "{line}");
    step("-M: the same guard");
    root::ok(&["systemctl", "stop", "second"])?;
    root::ok(&["umount", "/run/second/root"])?;
    Ok(())
}
