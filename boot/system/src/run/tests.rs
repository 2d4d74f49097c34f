use std::path::Path;

use bench_profile::cpus::CpuSet;

use super::*;
use crate::affinity;
use crate::audit::Hit;

fn one_cpu() -> CpuSet {
    CpuSet::from(
        affinity::get()
            .expect("an affinity")
            .first()
            .expect("a CPU"),
    )
}

fn order(script: &str) -> Order {
    Order {
        file: "/bin/sh".into(),
        argv: ["sh", "-c", script].map(OsString::from).into(),
        cpus: one_cpu(),
        pin: true,
    }
}

/// The machine's counters, but of interrupts none but a timer's: what this machine does meanwhile is not the test's.
fn quiet() -> (tempfile::TempDir, Root) {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("proc")).expect("a folder");
    interrupts(folder.path(), 1);
    let root = Root::new(folder.path());
    (folder, root)
}

fn interrupts(folder: &Path, count: u32) {
    let cpu = one_cpu();
    std::fs::write(
        folder.join("proc/interrupts"),
        format!("CPU{cpu}\n 9: {count} IO-APIC 9-edge eth0\nLOC: 5 Local timer interrupts\n"),
    )
    .expect("a file");
}

#[test]
fn the_commands_status_comes_back() {
    let (_folder, root) = quiet();
    let status = |script: &str| run(&root, &order(script)).expect("it runs").status();
    assert_eq!(status("exit 0"), 0);
    assert_eq!(status("exit 7"), 7);
    assert_eq!(status("kill -TERM $$"), 143);
    // Signals are not blocked in the command, though they are in this thread.
    assert_eq!(status("kill -USR1 $$; exit 3"), 138);
}

#[test]
fn the_tree_is_kept_on_the_cpus_and_this_process_is_not() {
    let (folder, root) = quiet();
    let file = folder.path().join("allowed");
    let before = affinity::get().expect("an affinity");
    let script = format!(
        "sh -c 'grep Cpus_allowed_list /proc/self/status' > {}",
        file.display()
    );
    let report = run(&root, &order(&script)).expect("it runs");
    assert_eq!(report.status(), 0);
    let allowed = std::fs::read_to_string(file).expect("a file");
    assert_eq!(allowed, format!("Cpus_allowed_list:\t{}\n", one_cpu()));
    assert_eq!(affinity::get().expect("an affinity"), before);
}

#[test]
fn an_interrupt_during_the_run_is_125() {
    let (folder, root) = quiet();
    let script = format!(
        "sed -i 's/ 9: 1 / 9: 4 /' {}; exit 3",
        folder.path().join("proc/interrupts").display()
    );
    let mut order = order(&script);
    let report = run(&root, &order).expect("it runs");
    assert_eq!(report.status(), INTERFERENCE);
    assert!(
        matches!(
            report.audit.interference.as_slice(),
            [Hit {
                irq: 9,
                count: 3,
                ..
            }]
        ),
        "{report:?}"
    );
    // Nothing is judged where nothing is pinned.
    interrupts(folder.path(), 1);
    order.pin = false;
    assert_eq!(run(&root, &order).expect("it runs").status(), 3);
    // A run that was broken off is not to be repeated.
    interrupts(folder.path(), 1);
    order.pin = true;
    order.argv[2] = format!("{}; kill -TERM $$", script.split(';').next().expect("sed")).into();
    assert_eq!(run(&root, &order).expect("it runs").status(), 143);
}

#[test]
fn what_cannot_start_is_named() {
    let (_folder, root) = quiet();
    let mut order = order("");
    order.file = "/nonexistent/command".into();
    let error = run(&root, &order).expect_err("no such file");
    assert!(
        error.to_string().contains("/nonexistent/command"),
        "{error}"
    );
    order.file = "/bin/sh".into();
    order.cpus = CpuSet::from(1023);
    let error = run(&root, &order).expect_err("no such CPU");
    assert!(matches!(error, RunError::Affinity { .. }), "{error}");
}

#[test]
fn without_interrupts_nothing_is_started() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("ran");
    let order = order(&format!("touch {}", trace.display()));
    assert!(run(&Root::new(folder.path()), &order).is_err());
    assert!(!trace.exists());
}

#[test]
fn the_notes_tell_of_the_tree() {
    let (_folder, root) = quiet();
    let report = run(&root, &order("for i in 1 2 3; do /bin/true; done")).expect("it runs");
    let ids: Vec<&str> = report.audit.notes.iter().map(|note| note.id).collect();
    assert_eq!(ids, ["context-switches", "migrations"]);
}
