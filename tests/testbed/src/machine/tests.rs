//! What the tier promises, tried on real machines: `cargo test -p testbed --features machine-tests machine::tests`.

use std::fs;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use super::emulator::Emulator;
use super::guest::Machine;
use super::qemu::Qemu;
use super::{Hardware, Machines};
use crate::guest::{Guest, PAYLOAD_IN_GUEST, Payload};
use crate::host::packages;
use crate::images;

const WAIT: Duration = Duration::from_secs(60);

/// Machines whose payload has one file, `text`.
fn machines(text: &str) -> (Machines, TempDir) {
    let payload = tempfile::tempdir().unwrap();
    fs::write(payload.path().join("text"), text).unwrap();
    packages::require(&[packages::MACHINE]).unwrap();
    let tree = images::ensure("trixie-machine").unwrap();
    let machines = Machines::open(
        &images::machines().unwrap(),
        &tree,
        Hardware::default(),
        &Payload::at(payload.path()),
    )
    .unwrap();
    (machines, payload)
}

fn shell(machine: &mut Machine, script: &str) -> (i32, String) {
    let mut output = Vec::new();
    let status = machine
        .run(&["sh", "-c", script], WAIT, &mut |bytes| {
            output.extend_from_slice(bytes);
        })
        .unwrap();
    (status, String::from_utf8_lossy(&output).into_owned())
}

#[test]
fn a_restored_machine_has_the_payload_of_now_and_nothing_of_another() {
    let read_and_write = format!(
        "cat {PAYLOAD_IN_GUEST}/text; ls /root/left /run/left 2>/dev/null; touch /root/left /run/left; sync"
    );
    for text in ["first\n", "second, longer\n"] {
        let (machines, _payload) = machines(text);
        for _ in 0..2 {
            let mut machine = machines.restore().unwrap();
            assert_eq!(shell(&mut machine, &read_and_write).1, text);
            Box::new(machine).shutdown().unwrap();
        }
    }
}

#[test]
fn a_restored_machine_is_healthy_and_its_clock_is_right() {
    let (machines, _payload) = machines("");
    let mut machine = machines.restore().unwrap();
    let (_, state) = shell(
        &mut machine,
        "systemctl is-system-running; systemctl is-active user@1000.service; \
         cat /sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/cgroup.controllers; \
         nproc; cat /sys/devices/system/cpu/cpu0/topology/thread_siblings_list",
    );
    assert_eq!(state, "running\nactive\ncpu memory pids\n8\n0-1\n");
    let (_, clock) = shell(&mut machine, "date +%s");
    let host = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let guest: u64 = clock.trim().parse().unwrap();
    assert!(guest.abs_diff(host) < 60, "guest {guest}, host {host}");
}

#[test]
fn any_argument_arrives_and_a_timeout_leaves_the_machine_usable() {
    let (machines, _payload) = machines("");
    let mut machine = machines.restore().unwrap();
    let mut output = Vec::new();
    let error = machine
        .run(
            &["sh", "-c", "echo before; sleep 60"],
            Duration::from_secs(1),
            &mut |bytes| output.extend_from_slice(bytes),
        )
        .unwrap_err();
    assert!(format!("{error:#}").contains("did not end"), "{error:#}");
    assert_eq!(output, b"before\n");
    assert_eq!(shell(&mut machine, "kill -TERM $$").0, 143);
    let hostile = "\n\\\u{1}'\" ∞$(x)".repeat(4000);
    output.clear();
    let status = machine
        .run(&["printf", "%s", &hostile], WAIT, &mut |bytes| {
            output.extend_from_slice(bytes);
        })
        .unwrap();
    assert_eq!(status, 0);
    assert!(
        output == hostile.as_bytes(),
        "{} bytes came back",
        output.len()
    );
}

#[test]
fn a_machine_that_dies_says_so_and_leaves_its_console() {
    let (machines, _payload) = machines("");
    let mut machine = machines.restore().unwrap();
    let error = machine
        .run(
            &["sh", "-c", "echo c > /proc/sysrq-trigger"],
            WAIT,
            &mut |_| {},
        )
        .unwrap_err();
    assert!(
        format!("{error:#}").contains("the machine ended"),
        "{error:#}"
    );
    let report = machine.journal().unwrap();
    assert!(report.contains("sysrq"), "{report}");
}

#[test]
fn a_start_that_fails_says_why() {
    let emulator = Emulator::ensure().unwrap();
    let error =
        Qemu::start(&emulator, &["--no-such-option".to_owned()], Path::new("/")).unwrap_err();
    let text = format!("{error:#}");
    assert!(
        text.contains("QEMU of") && text.contains("no-such-option"),
        "{text}"
    );
}
