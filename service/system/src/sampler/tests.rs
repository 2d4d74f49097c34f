//! Recorded trees; real processes in recorded groups.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use guard_policy::event::Process;

use super::group::Shared;
use super::{Look, Sampler};
use crate::cgroup::{CgroupFs, usage_usec};
use crate::proc::ProcFs;
use crate::proc::stat_line as line;

/// A recorded machine.
struct Machine {
    root: tempfile::TempDir,
}

impl Machine {
    fn new() -> Machine {
        let machine = Machine {
            root: tempfile::tempdir().unwrap(),
        };
        let setting = machine
            .root
            .path()
            .join("proc/sys/kernel/randomize_va_space");
        fs::create_dir_all(setting.parent().unwrap()).unwrap();
        fs::write(setting, "2\n").unwrap();
        machine
    }

    fn group(&self, path: &str, pids: &[u32]) {
        let folder = self.folder(path);
        fs::create_dir_all(&folder).unwrap();
        let text: String = pids.iter().map(|pid| format!("{pid}\n")).collect();
        fs::write(folder.join("cgroup.procs"), text).unwrap();
        fs::write(folder.join("cpu.stat"), "usage_usec 77\nuser_usec 70\n").unwrap();
    }

    fn folder(&self, path: &str) -> PathBuf {
        self.root
            .path()
            .join("cgroup")
            .join(path.trim_start_matches('/'))
    }

    /// Lets every group use CPU, so that the next look reads all of it.
    fn busy(&self) {
        busy_below(&self.root.path().join("cgroup"));
    }

    fn process(&self, pid: u32, stat: &str, cmdline: &str) {
        let folder = self.root.path().join(format!("proc/{pid}"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("stat"), stat).unwrap();
        fs::write(folder.join("cmdline"), cmdline).unwrap();
    }

    fn sampler(&self) -> Sampler {
        let cgroups = CgroupFs::rooted(self.root.path().join("cgroup"));
        Sampler::new(cgroups, ProcFs::new(self.root.path().join("proc")))
    }

    /// The recorded groups with the real processes.
    fn live_sampler(&self) -> Sampler {
        Sampler::new(
            CgroupFs::rooted(self.root.path().join("cgroup")),
            ProcFs::default(),
        )
    }
}

fn busy_below(folder: &Path) {
    let file = folder.join("cpu.stat");
    if let Some(used) = fs::read(&file).ok().and_then(|text| usage_usec(&text)) {
        fs::write(file, format!("usage_usec {}\n", used + 1)).unwrap();
    }
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            busy_below(&entry.path());
        }
    }
}

fn pids(look: &Look) -> Vec<u32> {
    let mut pids: Vec<u32> = look
        .sample
        .processes
        .iter()
        .map(|process| process.id.pid)
        .collect();
    pids.sort_unstable();
    pids
}

fn process(look: &Look, pid: u32) -> &Process {
    look.sample
        .processes
        .iter()
        .find(|process| process.id.pid == pid)
        .unwrap()
}

fn ended(look: &Look) -> Vec<u32> {
    let mut pids: Vec<u32> = look.sample.ended.iter().map(|id| id.pid).collect();
    pids.sort_unstable();
    pids
}

fn argv(look: &Look, pid: u32) -> Vec<String> {
    process(look, pid)
        .argv
        .iter()
        .map(|argument| argument.to_string())
        .collect()
}

fn strings(list: &[&str]) -> Vec<String> {
    list.iter().map(|text| text.to_string()).collect()
}

#[test]
fn everything_below_a_parent_is_seen_once() {
    let machine = Machine::new();
    machine.group("/p.slice", &[]);
    machine.group("/p.slice/a.scope", &[10, 11, 10]);
    machine.group("/p.slice/lwg-protected-placed-12-5.scope", &[12]);
    machine.group("/p.slice/b.service/inner/deep", &[13, 0]);
    machine.group("/elsewhere.slice", &[14]);
    for pid in 10..=14 {
        machine.process(
            pid,
            &line(pid, "a) R 1 (", 1, (100, 20), 5, 4096),
            "prog\0x\0",
        );
    }
    let mut sampler = machine.sampler();
    let look = sampler.sample(
        &strings(&["/p.slice", "/p.slice/b.service", "/none.slice"]),
        &[],
    );
    // b.service has no cgroup.procs of its own here, so it counts as gone; its parent's look goes on.
    assert_eq!(pids(&look), [10, 11, 12]);

    machine.group("/p.slice/b.service", &[]);
    machine.group("/p.slice/b.service/inner", &[]);
    machine.busy();
    let look = sampler.sample(
        &strings(&["/p.slice", "/p.slice/b.service", "/none.slice"]),
        &[],
    );
    assert_eq!(pids(&look), [10, 11, 12, 13]);
    let seen = process(&look, 13);
    assert_eq!(&*seen.cgroup, "/p.slice/b.service/inner/deep");
    assert_eq!((seen.id.start, seen.ppid), (5, 1));
    assert_eq!(seen.cpu_usec, 120 * 1_000_000 / procfs::ticks_per_second());
    assert_eq!(
        look.watched[1],
        ("/p.slice/b.service".to_owned(), 1),
        "counted though read before"
    );
    assert_eq!(look.watched[2], ("/none.slice".to_owned(), 0));
}

#[test]
fn a_process_that_ends_during_the_look_is_left_out() {
    let machine = Machine::new();
    machine.group("/p.slice", &[10, 11, 12, 13]);
    machine.process(10, &line(10, "x", 1, (0, 0), 5, 4096), "x\0");
    machine.process(12, &line(12, "x", 1, (0, 0), 5, 4096), "x\0");
    let zombie = line(13, "x", 1, (0, 0), 5, 4096)
        .replace(") S ", ") Z ")
        .replace(" 20 0 3 0 ", " 20 0 1 0 ");
    machine.process(13, &zombie, "");
    let look = machine.sampler().sample(&strings(&["/p.slice"]), &[]);
    assert_eq!(pids(&look), [10, 12]);
    assert_eq!(look.watched, [("/p.slice".to_owned(), 2)]);
}

#[test]
fn a_command_line_is_read_again_only_after_an_exec() {
    let machine = Machine::new();
    machine.group("/p.slice", &[10]);
    machine.process(10, &line(10, "sh", 1, (0, 0), 5, 4096), "sh\0");
    let mut sampler = machine.sampler();
    let parents = strings(&["/p.slice"]);
    let first = sampler.sample(&parents, &[]);

    // More CPU, the same program: the new text shows that the file was not read.
    machine.process(10, &line(10, "sh", 1, (9, 9), 5, 4096), "unread\0");
    machine.busy();
    let second = sampler.sample(&parents, &[]);
    assert!(Arc::ptr_eq(
        &process(&first, 10).argv,
        &process(&second, 10).argv
    ));
    assert!(process(&second, 10).cpu_usec > process(&first, 10).cpu_usec);

    machine.process(10, &line(10, "sh", 1, (9, 9), 5, 8192), "make\0-j8\0");
    machine.busy();
    assert_eq!(argv(&sampler.sample(&parents, &[]), 10), ["make", "-j8"]);

    machine.process(10, &line(10, "ninja", 1, (9, 9), 5, 8192), "ninja\0");
    machine.busy();
    assert_eq!(
        argv(&sampler.sample(&parents, &[]), 10),
        ["ninja"],
        "same addresses, other name"
    );

    machine.process(10, &line(10, "ninja", 1, (9, 9), 6, 8192), "other\0");
    machine.busy();
    let reused = sampler.sample(&parents, &[]);
    assert_eq!(
        (argv(&reused, 10), process(&reused, 10).id.start),
        (strings(&["other"]), 6)
    );
}

#[test]
fn hidden_addresses_mean_that_the_command_line_is_read_each_time() {
    let machine = Machine::new();
    machine.group("/p.slice", &[10]);
    machine.process(10, &line(10, "sh", 1, (0, 0), 5, 0), "sh\0");
    let mut sampler = machine.sampler();
    let parents = strings(&["/p.slice"]);
    let first = sampler.sample(&parents, &[]);
    machine.busy();
    let second = sampler.sample(&parents, &[]);
    assert!(
        Arc::ptr_eq(&process(&first, 10).argv, &process(&second, 10).argv),
        "equal text stays shared"
    );
    machine.process(10, &line(10, "sh", 1, (0, 0), 5, 0), "sh\0-c\0make\0");
    machine.busy();
    assert_eq!(
        argv(&sampler.sample(&parents, &[]), 10),
        ["sh", "-c", "make"]
    );
}

#[test]
fn without_random_addresses_the_command_line_is_read_each_time() {
    let machine = Machine::new();
    fs::write(
        machine
            .root
            .path()
            .join("proc/sys/kernel/randomize_va_space"),
        "0\n",
    )
    .unwrap();
    machine.group("/p.slice", &[10]);
    machine.process(10, &line(10, "sh", 1, (0, 0), 5, 4096), "sh\0aaaa\0");
    let mut sampler = machine.sampler();
    sampler.sample(&strings(&["/p.slice"]), &[]);
    machine.process(10, &line(10, "sh", 1, (0, 0), 5, 4096), "sh\0bbbb\0");
    machine.busy();
    assert_eq!(
        argv(&sampler.sample(&strings(&["/p.slice"]), &[]), 10),
        ["sh", "bbbb"]
    );
}

#[test]
fn groups_that_come_and_go_are_noticed_at_the_next_look() {
    let machine = Machine::new();
    machine.group("/p.slice", &[]);
    machine.group("/p.slice/a.scope", &[10]);
    machine.group("/p.slice/b.scope", &[11]);
    for pid in 10..=13 {
        machine.process(pid, &line(pid, "x", 1, (0, 0), 5, 4096), "x\0");
    }
    // Files of removed folders can be read on here, unlike those of removed groups: keep none open.
    let mut sampler = machine.sampler();
    sampler.shared = Shared::keeping(0);
    let parents = strings(&["/p.slice"]);
    assert_eq!(pids(&sampler.sample(&parents, &[])), [10, 11]);
    // As many groups as before.
    fs::remove_dir_all(machine.folder("/p.slice/a.scope")).unwrap();
    machine.group("/p.slice/c.scope", &[12]);
    machine.busy();
    assert_eq!(pids(&sampler.sample(&parents, &[])), [11, 12]);
    machine.group("/p.slice/c.scope/inner", &[13]);
    machine.busy();
    assert_eq!(pids(&sampler.sample(&parents, &[])), [11, 12, 13]);
    fs::remove_dir_all(machine.folder("/p.slice")).unwrap();
    let look = sampler.sample(&parents, &[]);
    assert_eq!(ended(&look), [11, 12, 13]);
    assert!(look.sample.processes.is_empty() && look.watched == [("/p.slice".to_owned(), 0)]);
    machine.group("/p.slice", &[10]);
    assert_eq!(pids(&sampler.sample(&parents, &[])), [10]);
}

#[test]
fn a_scope_is_reported_while_it_exists() {
    let machine = Machine::new();
    machine.group("/h.slice", &[]);
    machine.group("/h.slice/one.scope", &[12, 10]);
    machine.group("/h.slice/one.scope/inner", &[11]);
    let scope = |unit: &str| (unit.to_owned(), format!("/h.slice/{unit}"));
    let mut sampler = machine.sampler();
    let look = sampler.sample(
        &[],
        &[scope("one.scope"), scope("gone.scope"), scope("../x")],
    );
    assert_eq!(look.sample.workloads.len(), 1);
    assert_eq!(
        (
            look.sample.workloads[0].unit.as_str(),
            look.sample.workloads[0].usage_usec
        ),
        ("one.scope", 77)
    );
    assert_eq!(look.scope_pids.len(), 1);
    assert_eq!(look.scope_pids["one.scope"], [10, 11, 12]);
    assert!(look.sample.processes.is_empty(), "a scope is not watched");
}

#[test]
fn a_long_list_is_read_whole() {
    let machine = Machine::new();
    let many: Vec<u32> = (100_000..104_000).collect();
    machine.group("/h.slice/one.scope", &many);
    let scopes = [("one.scope".to_owned(), "/h.slice/one.scope".to_owned())];
    assert_eq!(
        machine.sampler().sample(&[], &scopes).scope_pids["one.scope"],
        many
    );
}

/// A shell that waits for a line, then runs `then`; dropped, it is killed.
struct Shell(Child);

impl Shell {
    fn new(script: &str) -> Shell {
        let child = Command::new("/bin/sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Shell(child)
    }

    /// Writes a line, and waits for one back.
    fn exchange(&mut self, text: &str) -> String {
        writeln!(self.0.stdin.as_mut().unwrap(), "{text}").unwrap();
        let mut answer = String::new();
        // One byte of buffer, so that nothing of a later answer is taken.
        BufReader::with_capacity(1, self.0.stdout.as_mut().unwrap())
            .read_line(&mut answer)
            .unwrap();
        answer
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn an_exec_of_a_real_process_is_seen() {
    let machine = Machine::new();
    // cat answers only once it runs.
    let mut shell = Shell::new("read x; exec cat -u");
    let pid = shell.0.id();
    machine.group("/p.slice", &[pid]);
    let mut sampler = machine.live_sampler();
    let parents = strings(&["/p.slice"]);
    let first = sampler.sample(&parents, &[]);
    assert_eq!(argv(&first, pid)[0], "/bin/sh");
    let before = ProcFs::default().stat(pid).unwrap().unwrap().image;
    assert!(before.is_visible());
    machine.busy();
    let second = sampler.sample(&parents, &[]);
    assert!(Arc::ptr_eq(
        &process(&first, pid).argv,
        &process(&second, pid).argv
    ));

    writeln!(shell.0.stdin.as_mut().unwrap(), "go").unwrap();
    assert_eq!(shell.exchange("there?"), "there?\n");
    assert_ne!(ProcFs::default().stat(pid).unwrap().unwrap().image, before);
    machine.busy();
    let third = sampler.sample(&parents, &[]);
    assert_eq!(argv(&third, pid), ["cat", "-u"]);
    assert_eq!(process(&third, pid).id, process(&first, pid).id);
}

#[test]
fn an_exec_through_a_script_of_the_same_interpreter_is_seen() {
    let machine = Machine::new();
    let script = machine.root.path().join("sh");
    fs::write(&script, "#!/bin/sh\nwhile read x; do echo $x; done\n").unwrap();
    // Run by the interpreter, so that no writable descriptor of the file is in the way (ETXTBSY).
    let mut shell = Shell::new(&format!("read x; exec /bin/sh {}", script.display()));
    let pid = shell.0.id();
    machine.group("/p.slice", &[pid]);
    let mut sampler = machine.live_sampler();
    let parents = strings(&["/p.slice"]);
    assert_eq!(argv(&sampler.sample(&parents, &[]), pid)[1], "-c");

    writeln!(shell.0.stdin.as_mut().unwrap(), "go").unwrap();
    assert_eq!(shell.exchange("there?"), "there?\n");
    machine.busy();
    // The same program, the same name, another script.
    assert_eq!(
        argv(&sampler.sample(&parents, &[]), pid),
        ["/bin/sh", script.to_str().unwrap()]
    );
}

#[test]
fn a_real_process_that_was_killed_is_left_out() {
    let machine = Machine::new();
    let mut shell = Shell::new("read x");
    let pid = shell.0.id();
    machine.group("/p.slice", &[pid, std::process::id()]);
    let mut sampler = machine.live_sampler();
    let parents = strings(&["/p.slice"]);
    assert_eq!(sampler.sample(&parents, &[]).sample.processes.len(), 2);
    shell.0.kill().unwrap();
    shell.0.wait().unwrap();
    machine.busy();
    let look = sampler.sample(&parents, &[]);
    assert_eq!(pids(&look), [std::process::id()]);
    assert_eq!(ended(&look), [pid]);
}
