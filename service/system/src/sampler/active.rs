//! Tests of what is read and what is not.

use std::fs;

use super::group::Shared;
use super::{LOOKS_PER_SWEEP, Sampler};
use crate::cgroup::CgroupFs;
use crate::proc::ProcFs;
use crate::proc::stat_line as line;

/// Two groups below a slice, one of them within the other, and a third one beside.
struct Tree {
    root: tempfile::TempDir,
    sampler: Sampler,
}

impl Tree {
    fn new() -> Tree {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("proc")).unwrap();
        let cgroups = CgroupFs::rooted(root.path().join("cgroup"));
        let sampler = Sampler::new(cgroups, ProcFs::new(root.path().join("proc")));
        let tree = Tree { root, sampler };
        tree.group("p.slice", 100, &[]);
        tree.group("p.slice/a.scope", 70, &[10, 11]);
        tree.group("p.slice/a.scope/inner", 30, &[12]);
        tree.group("p.slice/b.scope", 30, &[20]);
        for (pid, group) in [
            (10, "a.scope"),
            (11, "a.scope"),
            (12, "a.scope/inner"),
            (20, "b.scope"),
        ] {
            tree.process(pid, group);
        }
        tree
    }

    fn group(&self, path: &str, used: u64, pids: &[u32]) {
        let folder = self.root.path().join("cgroup").join(path);
        fs::create_dir_all(&folder).unwrap();
        let text: String = pids.iter().map(|pid| format!("{pid}\n")).collect();
        fs::write(folder.join("cgroup.procs"), text).unwrap();
        fs::write(folder.join("cpu.stat"), format!("usage_usec {used}\n")).unwrap();
    }

    fn process(&self, pid: u32, group: &str) {
        let folder = self.root.path().join(format!("proc/{pid}"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("stat"), line(pid, "x", 1, (0, 0), 5, 4096)).unwrap();
        fs::write(folder.join("cmdline"), "x\0").unwrap();
        fs::write(folder.join("cgroup"), format!("0::/p.slice/{group}\n")).unwrap();
    }

    fn end(&self, pid: u32) {
        fs::remove_dir_all(self.root.path().join(format!("proc/{pid}"))).unwrap();
    }

    /// Who was read, who has ended, and how many there are.
    fn look(&mut self) -> (Vec<u32>, Vec<u32>, u32) {
        let look = self.sampler.sample(&["/p.slice".to_owned()], &[]);
        let mut read: Vec<u32> = look
            .sample
            .processes
            .iter()
            .map(|process| process.id.pid)
            .collect();
        let mut ended: Vec<u32> = look.sample.ended.iter().map(|id| id.pid).collect();
        read.sort_unstable();
        ended.sort_unstable();
        (read, ended, look.watched[0].1)
    }
}

#[test]
fn an_idle_tree_is_settled_and_only_what_used_cpu_is_read() {
    let mut tree = Tree::new();
    assert_eq!(tree.look(), (vec![10, 11, 12, 20], vec![], 4));
    for _ in 0..10 {
        assert_eq!(tree.look(), (vec![], vec![], 4));
    }
    tree.group("p.slice", 101, &[]);
    tree.group("p.slice/a.scope", 71, &[10, 11]);
    assert_eq!(
        tree.look(),
        (vec![10, 11], vec![], 4),
        "not the idle one within it"
    );
    assert_eq!(tree.look(), (vec![], vec![], 4));
    tree.group("p.slice", 102, &[]);
    tree.group("p.slice/a.scope", 72, &[10, 11]);
    tree.group("p.slice/a.scope/inner", 31, &[12]);
    assert_eq!(tree.look(), (vec![10, 11, 12], vec![], 4));
}

#[test]
fn who_ends_is_told_once_and_a_used_pid_is_another_process() {
    let mut tree = Tree::new();
    tree.look();
    tree.end(11);
    tree.group("p.slice", 101, &[]);
    tree.group("p.slice/a.scope", 71, &[10]);
    assert_eq!(tree.look(), (vec![10], vec![11], 3));
    assert_eq!(tree.look(), (vec![], vec![], 3));
    let stat = line(10, "x", 1, (0, 0), 6, 4096);
    fs::write(tree.root.path().join("proc/10/stat"), stat).unwrap();
    tree.group("p.slice", 102, &[]);
    tree.group("p.slice/a.scope", 72, &[10]);
    assert_eq!(
        tree.look(),
        (vec![10], vec![10], 3),
        "the old one ended, the new one was read"
    );
}

#[test]
fn who_moves_from_a_busy_group_to_an_idle_one_has_not_ended() {
    let mut tree = Tree::new();
    tree.look();
    tree.process(11, "b.scope");
    tree.group("p.slice", 101, &[]);
    tree.group("p.slice/a.scope", 71, &[10]);
    tree.group("p.slice/b.scope", 30, &[20, 11]);
    assert_eq!(tree.look(), (vec![10, 11], vec![], 4));
    assert_eq!(tree.look(), (vec![], vec![], 4));
    // And it is known to be there when it ends.
    tree.end(11);
    tree.group("p.slice", 102, &[]);
    tree.group("p.slice/b.scope", 31, &[20]);
    assert_eq!(tree.look(), (vec![20], vec![11], 3));
}

#[test]
fn who_moves_from_an_idle_group_to_a_busy_one_is_counted_once() {
    let mut tree = Tree::new();
    tree.look();
    tree.process(11, "b.scope");
    tree.group("p.slice", 101, &[]);
    tree.group("p.slice/a.scope", 70, &[10]);
    tree.group("p.slice/b.scope", 31, &[20, 11]);
    assert_eq!(tree.look(), (vec![11, 20], vec![], 4));
    tree.group("p.slice", 102, &[]);
    tree.group("p.slice/a.scope", 71, &[10]);
    assert_eq!(tree.look(), (vec![10], vec![], 4));
}

#[test]
fn moves_between_idle_groups_are_found_by_the_sweep_or_at_once_when_expected() {
    let mut tree = Tree::new();
    tree.look();
    tree.process(30, "b.scope");
    tree.end(12);
    tree.group("p.slice/a.scope/inner", 30, &[]);
    tree.group("p.slice/b.scope", 30, &[20, 30]);
    let (mut read, mut ended) = (Vec::new(), Vec::new());
    for _ in 0..4 * LOOKS_PER_SWEEP {
        let (more, gone, _) = tree.look();
        read.extend(more);
        ended.extend(gone);
    }
    assert_eq!((read, ended), (vec![30], vec![12]));
    tree.process(11, "b.scope");
    tree.group("p.slice/a.scope", 70, &[10]);
    tree.group("p.slice/b.scope", 30, &[20, 30, 11]);
    tree.sampler.expect_moved();
    assert_eq!(tree.look(), (vec![10, 11, 20, 30], vec![], 4));
}

#[test]
fn a_new_group_is_read_though_its_use_is_that_of_a_removed_one() {
    let mut tree = Tree::new();
    // Files of removed folders can be read on here, unlike those of removed groups: keep none open.
    tree.sampler.shared = Shared::keeping(0);
    tree.look();
    fs::remove_dir_all(tree.root.path().join("cgroup/p.slice/b.scope")).unwrap();
    tree.end(20);
    tree.process(21, "c.scope");
    tree.group("p.slice/c.scope", 30, &[21]);
    tree.group("p.slice", 101, &[]);
    assert_eq!(tree.look(), (vec![21], vec![20], 4));
}

#[test]
fn without_usage_everything_is_read_each_time() {
    let mut tree = Tree::new();
    for group in [
        "p.slice",
        "p.slice/a.scope",
        "p.slice/a.scope/inner",
        "p.slice/b.scope",
    ] {
        fs::remove_file(tree.root.path().join("cgroup").join(group).join("cpu.stat")).unwrap();
    }
    for _ in 0..3 {
        assert_eq!(tree.look(), (vec![10, 11, 12, 20], vec![], 4));
    }
}

#[test]
fn a_parent_that_is_no_longer_watched_lets_its_processes_go() {
    let mut tree = Tree::new();
    tree.look();
    let look = tree.sampler.sample(&["/p.slice/b.scope".to_owned()], &[]);
    let mut ended: Vec<u32> = look.sample.ended.iter().map(|id| id.pid).collect();
    ended.sort_unstable();
    assert_eq!(ended, [10, 11, 12]);
    assert_eq!(look.watched, [("/p.slice/b.scope".to_owned(), 1)]);
}
