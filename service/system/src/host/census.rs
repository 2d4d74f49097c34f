//! CPU of every process and of the classes' slices between two looks.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use guard_policy::id::ProcId;
use guard_policy::printable::{command_line, printable};

use crate::cgroup::CgroupFs;
use crate::proc::{ProcFs, STAT_BUFFER};

/// Of a command line, in bytes.
const ARGV: usize = 4096;

/// The slice of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The class.
    pub class: String,
    /// Its control group.
    pub cgroup: String,
}

/// What was used since the look before, in percent of one logical CPU.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// By everything on the machine; none where the kernel does not tell.
    pub busy: Option<f64>,
    /// By each class's slice that has a control group.
    pub classes: BTreeMap<String, f64>,
    /// By the processes that used most, the greatest first.
    pub top: Vec<Consumer>,
}

impl Seen {
    /// By the classes' slices together.
    pub fn guarded(&self) -> f64 {
        self.classes.values().sum()
    }
}

/// A process and what it used.
#[derive(Clone, Debug, PartialEq)]
pub struct Consumer {
    /// Its PID.
    pub pid: u32,
    /// Its command line, or the name of a kernel thread in brackets; printable.
    pub command: String,
    /// Its CPU.
    pub cpu: f64,
    /// The class whose slice it is in.
    pub class: Option<String>,
    /// Its control group.
    pub cgroup: String,
}

/// Counts, and remembers what a growth is counted from.
#[derive(Debug)]
pub struct Census {
    proc: ProcFs,
    cgroups: CgroupFs,
    before: Option<Counters>,
}

#[derive(Debug)]
struct Counters {
    at: Duration,
    busy_usec: Option<u64>,
    groups: HashMap<String, u64>,
    processes: HashMap<ProcId, u64>,
}

impl Census {
    /// Nothing counted yet.
    pub fn new(proc: ProcFs, cgroups: CgroupFs) -> Census {
        Census {
            proc,
            cgroups,
            before: None,
        }
    }

    /// Counts at a time that only grows, and names the `top` greatest. None at the first look. What ended
    /// between two looks is in the sums, and in no row.
    pub fn look(&mut self, groups: &[Group], top: usize, now: Duration) -> Option<Seen> {
        let now = self.count(groups, now);
        let before = self.before.replace(now)?;
        let now = self.before.as_ref()?;
        let elapsed = now
            .at
            .checked_sub(before.at)
            .filter(|elapsed| !elapsed.is_zero())?;
        let percent = |usec: u64| usec as f64 * 100.0 / elapsed.as_micros() as f64;
        // A group that was made anew counts from nothing.
        let grown = |(name, usage): (&String, &u64)| match before.groups.get(name) {
            Some(before) if before <= usage => usage - before,
            _ => *usage,
        };
        let mut used: Vec<(ProcId, u64)> = now
            .processes
            .iter()
            .map(|(id, usec)| {
                (
                    *id,
                    usec.saturating_sub(before.processes.get(id).copied().unwrap_or(0)),
                )
            })
            .filter(|(_, usec)| *usec > 0)
            .collect();
        used.sort_unstable_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        Some(Seen {
            busy: now
                .busy_usec
                .zip(before.busy_usec)
                .map(|(now, before)| percent(now.saturating_sub(before))),
            classes: groups
                .iter()
                .filter_map(|group| {
                    let usage = now.groups.get_key_value(&group.cgroup)?;
                    Some((group.class.clone(), percent(grown(usage))))
                })
                .collect(),
            top: used
                .into_iter()
                .filter_map(|(id, usec)| self.consumer(id, percent(usec), groups))
                .take(top)
                .collect(),
        })
    }

    fn count(&self, groups: &[Group], at: Duration) -> Counters {
        let mut buffer = [0; STAT_BUFFER];
        let mut processes = HashMap::new();
        for pid in self.proc.pids().unwrap_or_default() {
            let path = self.proc.root().join(format!("{pid}/stat"));
            if let Ok(Some(stat)) = self.proc.read_stat(&path, &mut buffer) {
                processes.insert(
                    ProcId {
                        pid,
                        start: stat.start,
                    },
                    stat.cpu_usec(),
                );
            }
        }
        let usage = |group: &Group| {
            Some((
                group.cgroup.clone(),
                self.cgroups.usage_usec(&group.cgroup)?,
            ))
        };
        Counters {
            at,
            busy_usec: std::fs::read_to_string(self.proc.root().join("stat"))
                .ok()
                .and_then(|text| busy_usec(&text)),
            groups: groups.iter().filter_map(usage).collect(),
            processes,
        }
    }

    fn consumer(&self, id: ProcId, cpu: f64, groups: &[Group]) -> Option<Consumer> {
        let cgroup = self.proc.cgroup(id.pid)?;
        let argv = self.proc.argv_bounded(id.pid, ARGV).ok()??;
        let stat = self
            .proc
            .stat(id.pid)
            .ok()?
            .filter(|stat| stat.start == id.start)?;
        let command = match argv.is_empty() {
            true => printable(&format!("[{}]", stat.comm())),
            false => command_line(&argv),
        };
        let holds = |group: &&Group| {
            cgroup
                .strip_prefix(group.cgroup.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let class = groups.iter().find(holds).map(|group| group.class.clone());
        Some(Consumer {
            pid: id.pid,
            command,
            cpu,
            class,
            cgroup,
        })
    }
}

/// Time of all CPUs outside of idling, in microseconds (the first line of `/proc/stat`, proc_stat(5)).
fn busy_usec(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line
        .split_ascii_whitespace()
        .map_while(|field| field.parse().ok())
        .collect();
    // user nice system idle iowait irq softirq; what a hypervisor stole is not ours.
    let [user, nice, system, _, _, irq, softirq, ..] = ticks[..] else {
        return None;
    };
    Some((user + nice + system + irq + softirq) * 1_000_000 / procfs::ticks_per_second())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::proc::stat_line;

    fn write(root: &Path, name: &str, text: &str) {
        let path = root.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, text).expect("written");
    }

    struct Machine(tempfile::TempDir);

    impl Machine {
        fn process(&self, pid: u32, start: u64, ticks: u64, command: &str, cgroup: &str) {
            let root = self.0.path();
            let line = stat_line(pid, "x", 1, (ticks, 0), start, 1);
            write(root, &format!("proc/{pid}/stat"), &line);
            write(
                root,
                &format!("proc/{pid}/cmdline"),
                &command.replace(' ', "\0"),
            );
            write(
                root,
                &format!("proc/{pid}/cgroup"),
                &format!("0::{cgroup}\n"),
            );
        }

        fn busy(&self, user: u64, idle: u64) {
            write(
                self.0.path(),
                "proc/stat",
                &format!("cpu  {user} 0 0 {idle} 0 0 0 0 0 0\ncpu0 1\n"),
            );
        }

        fn group(&self, group: &str, usec: u64) {
            write(
                self.0.path(),
                &format!("cgroup{group}/cpu.stat"),
                &format!("usage_usec {usec}\n"),
            );
        }
    }

    #[test]
    fn what_was_used_between_two_looks_is_told() {
        let machine = Machine(tempfile::tempdir().expect("a folder"));
        let mut census = Census::new(
            ProcFs::new(machine.0.path().join("proc")),
            CgroupFs::rooted(machine.0.path().join("cgroup")),
        );
        let groups = [Group {
            class: "heavy".into(),
            cgroup: "/h.slice".into(),
        }];
        let hertz = procfs::ticks_per_second();
        machine.process(10, 100, 5 * hertz, "make -j8", "/h.slice/a.scope");
        machine.process(11, 100, 900 * hertz, "idle for long", "/x");
        machine.busy(1000 * hertz, 0);
        machine.group("/h.slice", 5_000_000);
        let second = Duration::from_secs(1);
        assert_eq!(census.look(&groups, 2, second), None);
        machine.process(10, 100, 15 * hertz, "make -j8", "/h.slice/a.scope");
        // Another process under a PID that was given anew, and one that is new.
        machine.process(11, 800, 2 * hertz, "python3 t.py", "/h.slicer/b");
        machine.process(12, 900, hertz, "", "/");
        machine.busy(1020 * hertz, 70);
        machine.group("/h.slice", 25_000_000);
        let seen = census
            .look(&groups, 2, second * 11)
            .expect("the second look");
        assert_eq!((seen.busy, seen.guarded()), (Some(200.0), 200.0));
        let rows: Vec<_> = seen
            .top
            .iter()
            .map(|row| {
                (
                    row.pid,
                    row.cpu.round(),
                    row.command.as_str(),
                    row.class.as_deref(),
                )
            })
            .collect();
        assert_eq!(
            rows,
            [
                (10, 100.0, "make -j8", Some("heavy")),
                (11, 20.0, "python3 t.py", None)
            ]
        );
        // The slice was stopped and started in between.
        machine.group("/h.slice", 1_000_000);
        let seen = census
            .look(&groups, 2, second * 21)
            .expect("the third look");
        assert_eq!(
            (seen.busy, seen.guarded(), seen.top.len()),
            (Some(0.0), 10.0, 0)
        );
    }

    #[test]
    fn this_machine_can_be_counted() {
        let mut census = Census::new(ProcFs::default(), CgroupFs::rooted("/nonexistent"));
        assert_eq!(census.look(&[], 5, Duration::ZERO), None);
        let own: u64 = (0..3_000_000u64).fold(0, |sum, n| std::hint::black_box(sum ^ n));
        std::hint::black_box(own);
        let seen = census
            .look(&[], 5, Duration::from_millis(50))
            .expect("the second look");
        assert!(seen.busy.is_some() && seen.guarded() == 0.0);
    }
}
