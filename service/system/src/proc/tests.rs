//! Recorded trees, and this process's own children.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use guard_policy::id::ProcId;

use super::stat::tests::line;
use super::{MAX_ARGV, ProcFs};

fn record(root: &Path, pid: u32, stat: &str, cmdline: &[u8], cgroup: &str) {
    let folder = root.join(pid.to_string());
    fs::create_dir_all(folder.join("task").join(pid.to_string())).unwrap();
    fs::write(folder.join("stat"), stat).unwrap();
    fs::write(folder.join("task").join(pid.to_string()).join("stat"), stat).unwrap();
    fs::write(folder.join("cmdline"), cmdline).unwrap();
    fs::write(
        folder.join("cgroup"),
        format!("1:name=systemd:/\n0::{cgroup}\n"),
    )
    .unwrap();
    fs::write(
        folder.join("status"),
        format!("Name:\tx\nTgid:\t{pid}\nUid:\t1000\t1000\t1000\t1000\n"),
    )
    .unwrap();
}

fn simple(root: &Path, pid: u32, ppid: u32, start: u64) {
    record(
        root,
        pid,
        &line(pid, "x", ppid, (0, 0), start, 4096),
        b"x\0",
        "/a",
    );
}

#[test]
fn a_process_is_read_from_a_recorded_tree() {
    let root = tempfile::tempdir().unwrap();
    record(
        root.path(),
        42,
        &line(42, "ma) ke", 7, (10, 5), 99, 4096),
        b"make\0-j8\0",
        "/user.slice/a.scope",
    );
    let proc = ProcFs::new(root.path());
    assert_eq!(
        proc.identify(42).unwrap(),
        Some(ProcId { pid: 42, start: 99 })
    );
    assert_eq!(proc.cgroup(42).as_deref(), Some("/user.slice/a.scope"));
    assert_eq!(
        proc.argv(42).unwrap().unwrap(),
        ["make".into(), "-j8".into()]
    );
    assert_eq!(proc.uids(42).unwrap().unwrap().other_than(1000), None);
    assert!(
        proc.policies(42)
            .unwrap()
            .unwrap()
            .iter()
            .all(|(_, stat)| !stat.is_realtime())
    );
    assert_eq!(proc.pids().unwrap(), [42]);
}

#[test]
fn a_process_that_is_gone_is_no_error() {
    let root = tempfile::tempdir().unwrap();
    let proc = ProcFs::new(root.path());
    assert_eq!(proc.identify(42).unwrap(), None);
    assert_eq!(proc.stat(42).unwrap(), None);
    assert_eq!(proc.cgroup(42), None);
    assert_eq!(proc.argv(42).unwrap(), None);
    assert_eq!(proc.uids(42).unwrap(), None);
    assert!(proc.policies(42).unwrap().is_none());
    assert_eq!(proc.children(42).unwrap(), None);
    assert_eq!(proc.identify(0).unwrap(), None);
}

#[test]
fn a_thread_id_is_not_a_process() {
    let root = tempfile::tempdir().unwrap();
    simple(root.path(), 43, 1, 5);
    fs::write(
        root.path().join("43/status"),
        "Name:\tx\nTgid:\t42\nUid:\t1\t1\t1\t1\n",
    )
    .unwrap();
    assert_eq!(ProcFs::new(root.path()).identify(43).unwrap(), None);
}

#[test]
fn a_malformed_file_is_named() {
    let root = tempfile::tempdir().unwrap();
    simple(root.path(), 42, 1, 5);
    fs::write(root.path().join("42/stat"), "42 (x").unwrap();
    let error = ProcFs::new(root.path()).stat(42).unwrap_err().to_string();
    assert!(error.ends_with("42/stat is not a stat line"), "{error}");
}

#[test]
fn a_huge_command_line_is_bounded() {
    let root = tempfile::tempdir().unwrap();
    record(
        root.path(),
        42,
        &line(42, "x", 1, (0, 0), 5, 4096),
        &vec![b'a'; 3 * MAX_ARGV],
        "/a",
    );
    let argv = ProcFs::new(root.path()).argv(42).unwrap().unwrap();
    assert_eq!(argv.iter().map(|a| a.len()).sum::<usize>(), MAX_ARGV);
}

#[test]
fn descendants_follow_the_parents_within_the_list() {
    let root = tempfile::tempdir().unwrap();
    for (pid, ppid, start) in [
        (10, 1, 100),
        (11, 10, 110),
        (12, 11, 120),
        (13, 1, 130),
        (14, 13, 140),
        (15, 12, 150),
    ] {
        simple(root.path(), pid, ppid, start);
    }
    // 16 says that 10 is its parent, but is older: its parent was an earlier 10.
    simple(root.path(), 16, 10, 50);
    let proc = ProcFs::new(root.path());
    let pids = |list: Vec<ProcId>| list.iter().map(|id| id.pid).collect::<Vec<_>>();
    let id = |start| ProcId { pid: 10, start };
    assert_eq!(
        pids(proc.descendants(id(100), &proc.pids().unwrap()).unwrap()),
        [11, 12, 15]
    );
    assert_eq!(
        pids(proc.descendants(id(100), &[11, 15, 999]).unwrap()),
        [11],
        "12 is elsewhere, 999 is gone"
    );
    assert!(
        proc.descendants(id(101), &proc.pids().unwrap())
            .unwrap()
            .is_empty(),
        "another 10"
    );
    // No children files in this tree: the scan serves.
    assert_eq!(pids(proc.all_descendants(id(100)).unwrap()), [11, 12, 15]);
}

#[test]
fn own_children_are_found_alive_and_gone() {
    let proc = ProcFs::default();
    let mut child = Command::new("sh")
        .args(["-c", "sleep 1000 & echo $!; wait"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut text = String::new();
    std::io::BufRead::read_line(
        &mut std::io::BufReader::new(child.stdout.as_mut().unwrap()),
        &mut text,
    )
    .unwrap();
    let grandchild: u32 = text.trim().parse().unwrap();

    let me = proc.identify(std::process::id()).unwrap().unwrap();
    let root = proc.identify(child.id()).unwrap().unwrap();
    let below = proc.all_descendants(me).unwrap();
    assert!(
        below.contains(&root) && below.iter().any(|id| id.pid == grandchild),
        "{below:?}"
    );
    assert_eq!(
        proc.descendants(root, &proc.pids().unwrap()).unwrap().len(),
        1
    );
    assert_eq!(
        proc.stat(child.id()).unwrap().unwrap().ppid,
        std::process::id()
    );
    assert_eq!(proc.argv(child.id()).unwrap().unwrap()[0].as_ref(), "sh");

    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(grandchild as i32),
        nix::sys::signal::Signal::SIGKILL,
    )
    .unwrap();
    child.wait().unwrap();
    assert!(!proc.is_alive(root).unwrap());
    assert!(proc.all_descendants(root).unwrap().is_empty());
}
