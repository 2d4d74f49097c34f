//! What the tier promises, tried on real containers, as root:
//! `cargo test -p testbed --features container-tests container::tests`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::{Container, ContainerSource, Home, SUITES};
use crate::guest::{Guest, PAYLOAD_IN_GUEST};
use crate::payload::{Payloads, Profile};

const WAIT: Duration = Duration::from_secs(60);

/// Containers whose payload has one file, `text`.
fn source(suite: &str) -> (ContainerSource, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(folder.path().join("text"), "payload\n").unwrap();
    let payloads = Payloads::new(Some(folder.path()), Profile::Dev).unwrap();
    (ContainerSource::new(suite, &payloads).unwrap(), folder)
}

fn run(container: &mut Container, argv: &[&str]) -> (i32, String) {
    let mut output = Vec::new();
    let status = container
        .run(argv, WAIT, &mut |bytes| output.extend_from_slice(bytes))
        .unwrap();
    (status, String::from_utf8(output).unwrap())
}

fn shell(container: &mut Container, script: &str) -> (i32, String) {
    run(container, &["sh", "-c", script])
}

#[test]
fn every_suite_boots_with_both_user_managers_and_ends_in_order() {
    for suite in SUITES {
        let (source, _payload) = source(suite);
        let mut container = source.boot().unwrap();
        let script = "systemctl is-system-running; systemctl is-active user@1000.service user@1001.service; \
                      cat /proc/self/cgroup | sed -n s/^0:://p";
        assert_eq!(
            shell(&mut container, script),
            (
                0,
                "running\nactive\nactive\n/system.slice/testbed-1.service\n".into()
            ),
            "{suite}"
        );
        Box::new(container).shutdown().unwrap();
    }
}

#[test]
fn a_fresh_container_has_nothing_of_another_and_the_image_stays_as_it_is() {
    let (source, _payload) = source("trixie");
    for _ in 0..2 {
        let mut container = source.boot().unwrap();
        let script =
            "ls /root/left /etc/left 2>/dev/null; touch /root/left /etc/left && rm /etc/hosts";
        assert_eq!(shell(&mut container, script), (0, String::new()));
    }
    assert!(!source.image.join("etc/left").exists());
    assert!(source.image.join("etc/hosts").exists());
}

#[test]
fn any_argument_arrives_and_the_exit_status_comes_back() {
    let (source, _payload) = source("bookworm");
    let mut container = source.boot().unwrap();
    let words = [
        "",
        " a  b ",
        "$HOME ${HOME} $$",
        "%n %%",
        "it's \"x\" \\",
        "two\nlines",
        "ü",
    ];
    let mut argv = vec!["printf", "<%s>"];
    argv.extend(words);
    let expected: String = words.iter().map(|word| format!("<{word}>")).collect();
    assert_eq!(run(&mut container, &argv), (0, expected));
    assert_eq!(
        shell(&mut container, "echo err >&2; exit 3"),
        (3, "err\n".into())
    );
    assert_eq!(shell(&mut container, "kill -KILL $$").0, 137);
    assert_eq!(run(&mut container, &["/no/such/program"]).0, 127);
}

#[test]
fn a_timeout_kills_the_command_and_leaves_the_guest_usable() {
    let (source, _payload) = source("trixie");
    let mut container = source.boot().unwrap();
    let mut output = Vec::new();
    let begin = Instant::now();
    let error = container
        .run(
            &["sh", "-c", "echo before; exec sleep 4711"],
            Duration::from_secs(2),
            &mut |bytes| output.extend_from_slice(bytes),
        )
        .unwrap_err();
    assert!(begin.elapsed() < WAIT);
    assert!(
        error.to_string().contains("did not end within 2 s"),
        "{error}"
    );
    assert_eq!(output, b"before\n");
    assert_eq!(
        shell(&mut container, "pgrep -c -x sleep; echo still here").1,
        "0\nstill here\n"
    );
}

#[test]
fn the_host_is_out_of_reach() {
    let (source, _payload) = source("trixie");
    let mut container = source.boot().unwrap();
    for path in [
        "/proc/sys/kernel/panic",
        "/proc/sys/vm/swappiness",
        "/sys/kernel/mm/transparent_hugepage/enabled",
        &format!("{PAYLOAD_IN_GUEST}/text"),
    ] {
        let (status, output) = run(
            &mut container,
            &["sh", "-c", "cat /dev/null >> \"$1\"", "sh", path],
        );
        assert!(
            status != 0 && output.contains("Read-only file system"),
            "{path}: {output}"
        );
    }
    assert_eq!(
        shell(
            &mut container,
            "ls /sys/class/net; runuser -u dev cat /opt/workload-guard/text"
        )
        .1,
        "lo\npayload\n"
    );
}

#[test]
fn two_at_once_do_not_see_each_other_and_leave_nothing_behind() {
    let (source, _payload) = source("trixie");
    let mut first = source.boot().unwrap();
    let mut second = source.boot().unwrap();
    shell(
        &mut first,
        "systemd-run --quiet --unit=only-in-first sleep infinity",
    );
    assert_eq!(
        shell(&mut first, "systemctl is-active only-in-first").1,
        "active\n"
    );
    assert_eq!(
        shell(&mut second, "systemctl is-active only-in-first").1,
        "inactive\n"
    );
    let machines = [first.machine.clone(), second.machine.clone()];
    let homes = [&first, &second].map(|container| match &container.home {
        Home::Cgroup(cgroup) => Some(cgroup.path().to_owned()),
        Home::Scope(_) => None,
    });
    drop(first);
    // The other lives on.
    assert_eq!(
        shell(&mut second, "systemctl is-system-running").1,
        "running\n"
    );
    drop(second);
    for (machine, home) in machines.iter().zip(homes) {
        // A cgroup can be removed only when no process is in it.
        assert!(home.is_none_or(|home| !home.exists()));
        assert!(
            !Path::new("/run/systemd/nspawn/propagate")
                .join(machine)
                .exists()
        );
    }
}

#[test]
fn the_journal_shows_a_crash() {
    let (source, _payload) = source("trixie");
    let mut container = source.boot().unwrap();
    shell(
        &mut container,
        "systemd-run --quiet --wait --unit=crashes sh -c 'kill -SEGV $$$$'",
    );
    let journal = container.journal().unwrap();
    assert!(
        journal
            .lines()
            .any(|line| line.contains("crashes.service") && line.contains("status=11/SEGV")),
        "{journal}"
    );
}
