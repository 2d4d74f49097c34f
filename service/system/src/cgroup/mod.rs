//! Control groups (version 2), read below their mount.
//!
//! Paths are as in `/proc/PID/cgroup` and in systemd's `ControlGroup`: absolute within the mount, such
//! as `/user.slice/user-1000.slice`; one that could lead out of the mount is never read. A missing file
//! is `None`: the group is gone, or the controller is not enabled there. So is one that cannot be read
//! or understood, after a line in the debug log: it is as unknown. Nothing here writes.

mod unit;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nix::sys::statfs::{CGROUP2_SUPER_MAGIC, statfs};

use crate::proc::unsigned;
pub use unit::{UnitPath, unit_of_cgroup, units_of_cgroup};

/// No control groups of version 2 on this machine.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no cgroup2 file system is mounted (looked in {mountinfo}); boot with systemd.unified_cgroup_hierarchy=1 on the kernel \
     command line, or, in a container, start it with the host's cgroup2"
)]
pub struct NoCgroup2 {
    /// The file that lists the mounts.
    pub mountinfo: String,
}

/// How the machine mounts its control groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Version 2 alone, at `/sys/fs/cgroup`.
    Unified,
    /// Version 2 beside version 1, which has the controllers.
    Hybrid,
}

/// The mount of the unified hierarchy, or a recorded tree that looks like one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CgroupFs {
    root: PathBuf,
    layout: Layout,
}

/// `cpu.max` of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuMax {
    /// Its text, without the newline.
    pub raw: String,
    /// Microseconds of CPU per period; `None` is `max`, no limit.
    pub quota_usec: Option<u64>,
    /// The period in microseconds. Not always 100000: systemd lengthens it for small quotas.
    pub period_usec: u64,
}

impl CpuMax {
    /// The limit in percent of one logical CPU; `None` when there is none.
    pub fn quota_percent(&self) -> Option<f64> {
        self.quota_usec
            .map(|quota| quota as f64 * 100.0 / self.period_usec as f64)
    }

    fn parse(text: &str) -> Option<CpuMax> {
        let raw = text.trim();
        let (quota, period) = raw.split_once(' ')?;
        let quota_usec = match quota {
            "max" => None,
            number => Some(number.parse().ok()?),
        };
        let period_usec = period.parse().ok().filter(|&period| period > 0)?;
        Some(CpuMax {
            raw: raw.to_owned(),
            quota_usec,
            period_usec,
        })
    }
}

impl CgroupFs {
    /// Finds the mount by `/proc/self/mountinfo`, and believes it only when the file system says the
    /// same (cgroups(7), CGROUP_DELEGATION.md of systemd).
    pub fn detect() -> Result<CgroupFs, NoCgroup2> {
        let mountinfo = "/proc/self/mountinfo";
        let text = fs::read(mountinfo)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default();
        cgroup2_mounts(&text)
            .into_iter()
            .find(|root| {
                statfs(root).is_ok_and(|found| found.filesystem_type() == CGROUP2_SUPER_MAGIC)
            })
            .map(|root| {
                let layout = if root == Path::new("/sys/fs/cgroup") {
                    Layout::Unified
                } else {
                    Layout::Hybrid
                };
                CgroupFs { root, layout }
            })
            .ok_or(NoCgroup2 {
                mountinfo: mountinfo.to_owned(),
            })
    }

    /// The tree at `root`, taken as unified.
    pub fn rooted(root: impl Into<PathBuf>) -> CgroupFs {
        CgroupFs {
            root: root.into(),
            layout: Layout::Unified,
        }
    }

    /// Where it is mounted.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// How the machine mounts its control groups.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The folder of a group. `InvalidInput` for a path that is not absolute, or could lead out of the
    /// mount.
    pub fn folder(&self, path: &str) -> io::Result<PathBuf> {
        let Some(inner) = path.strip_prefix('/') else {
            return Err(bad_path(path, "does not begin with /"));
        };
        if inner.split('/').any(|part| matches!(part, "." | "..")) || inner.contains('\0') {
            return Err(bad_path(path, "has a part that leads elsewhere"));
        }
        Ok(self.root.join(inner))
    }

    /// A file of a group, for messages and for reading.
    pub fn file(&self, path: &str, name: &str) -> io::Result<PathBuf> {
        Ok(self.folder(path)?.join(name))
    }

    /// Whether the group exists.
    pub fn exists(&self, path: &str) -> bool {
        self.folder(path).is_ok_and(|folder| folder.is_dir())
    }

    /// CPU time that the group and all below used, in microseconds (`usage_usec` of `cpu.stat`, there
    /// even without the cpu controller).
    pub fn usage_usec(&self, path: &str) -> Option<u64> {
        self.parsed(path, "cpu.stat", |text| usage_usec(text.as_bytes()))
    }

    /// Each counter of `cpu.stat`. Those of throttling are there with the cpu controller alone.
    pub fn cpu_stat(&self, path: &str) -> Option<BTreeMap<String, u64>> {
        self.parsed(path, "cpu.stat", |text| {
            let pair = |line: &str| {
                let (key, count) = line.split_once(' ')?;
                Some((key.to_owned(), count.trim().parse().ok()?))
            };
            text.lines().map(pair).collect()
        })
    }

    /// Time that the group's processes were held up by a quota on it or on a group around it, in
    /// microseconds (`throttled_usec` of `cpu.stat.local`, since Linux 6.6). Its `cpu.stat` counts what its own
    /// quota held up alone. `None` where the kernel has no such file, or the controller is not enabled.
    pub fn throttled_usec(&self, path: &str) -> Option<u64> {
        self.parsed(path, "cpu.stat.local", |text| {
            let line = text
                .lines()
                .find_map(|line| line.strip_prefix("throttled_usec "))?;
            line.trim().parse().ok()
        })
    }

    /// The processes of the group and of all groups below, ascending. `None` when the group is gone.
    pub fn pids(&self, path: &str) -> Option<Vec<u32>> {
        let mut pids = self.own_pids(path)?;
        let mut next = vec![path.trim_end_matches('/').to_owned()];
        while let Some(group) = next.pop() {
            let names = self.children(if group.is_empty() { "/" } else { &group });
            for name in names.unwrap_or_default() {
                let child = format!("{group}/{name}");
                pids.extend(self.own_pids(&child).unwrap_or_default());
                next.push(child);
            }
        }
        pids.sort_unstable();
        // The kernel may list a process twice when it moves during the read.
        pids.dedup();
        Some(pids)
    }

    /// The processes of the group itself, as listed. Empty for a threaded group, whose processes its
    /// domain lists.
    pub fn own_pids(&self, path: &str) -> Option<Vec<u32>> {
        let listed = self.parsed(path, "cgroup.procs", |text| {
            Some(parse_pids(text.as_bytes()).collect())
        });
        listed.or_else(|| self.exists(path).then(Vec::new))
    }

    /// Names of the groups directly below, sorted. `None` when the group is gone.
    pub fn children(&self, path: &str) -> Option<Vec<String>> {
        let found = self.folder(path).and_then(|folder| child_names(&folder));
        found.unwrap_or_else(|error| {
            log::debug!("{error}");
            None
        })
    }

    /// Whether a process is in the group or below (`populated` of `cgroup.events`; the root has none).
    pub fn populated(&self, path: &str) -> Option<bool> {
        self.parsed(path, "cgroup.events", |text| {
            let flag = text
                .lines()
                .find_map(|line| line.strip_prefix("populated "))?;
            Some(flag.trim() == "1")
        })
    }

    /// The limit of the group itself. `None` where the cpu controller is not enabled for it.
    pub fn cpu_max(&self, path: &str) -> Option<CpuMax> {
        self.parsed(path, "cpu.max", CpuMax::parse)
    }

    /// The weight of the group against its siblings, 1 to 10000; 0 with `cpu.idle`. `None` where the
    /// cpu controller is not enabled for it.
    pub fn cpu_weight(&self, path: &str) -> Option<u64> {
        self.parsed(path, "cpu.weight", |text| text.trim().parse().ok())
    }

    /// `memory.high` in bytes; `Some(None)` is `max`. `None` where the memory controller is not enabled.
    pub fn memory_high(&self, path: &str) -> Option<Option<u64>> {
        self.parsed(path, "memory.high", limit)
    }

    /// `pids.max`; `Some(None)` is `max`. `None` where the pids controller is not enabled.
    pub fn pids_max(&self, path: &str) -> Option<Option<u64>> {
        self.parsed(path, "pids.max", limit)
    }

    /// The group's own `io.weight`, 1 to 10000. `None` where the io controller is not enabled.
    pub fn io_weight(&self, path: &str) -> Option<u64> {
        self.parsed(path, "io.weight", |text| {
            let own = text
                .lines()
                .find_map(|line| line.strip_prefix("default "))?;
            own.trim().parse().ok()
        })
    }

    /// The controllers that the group may use for itself (`cgroup.controllers`).
    pub fn controllers(&self, path: &str) -> Option<Vec<String>> {
        self.parsed(path, "cgroup.controllers", |text| {
            Some(text.split_ascii_whitespace().map(str::to_owned).collect())
        })
    }

    fn parsed<T>(&self, path: &str, name: &str, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
        let file = match self.file(path, name) {
            Ok(file) => file,
            Err(error) => {
                log::debug!("{error}");
                return None;
            }
        };
        match fs::read_to_string(&file) {
            Ok(text) => {
                let value = parse(&text);
                if value.is_none() {
                    log::debug!("{} says {:?}", file.display(), text.trim());
                }
                value
            }
            Err(error) => {
                if !is_absent(&error) {
                    log::debug!("{}: {error}", file.display());
                }
                None
            }
        }
    }
}

/// A number, or `max`.
fn limit(text: &str) -> Option<Option<u64>> {
    match text.trim() {
        "max" => Some(None),
        number => number.parse().ok().map(Some),
    }
}

fn bad_path(path: &str, what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("control group path {path:?} {what}"),
    )
}

/// The group is gone (`ENOENT`, or `ENODEV` through a file that was open), the controller is off, or the
/// group is threaded and lists no processes (`EOPNOTSUPP`).
pub(crate) fn is_absent(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || error.kind() == io::ErrorKind::NotADirectory
        || matches!(
            error.raw_os_error(),
            Some(nix::libc::ENODEV | nix::libc::EOPNOTSUPP)
        )
}

/// `usage_usec` of a `cpu.stat` text; it is the first line, but the kernel does not promise so.
pub(crate) fn usage_usec(text: &[u8]) -> Option<u64> {
    text.split(|&b| b == b'\n')
        .find_map(|line| line.strip_prefix(b"usage_usec "))
        .and_then(unsigned)
}

/// The numbers of a `cgroup.procs` text. 0 is a process outside our PID namespace, which nobody here
/// can name.
pub(crate) fn parse_pids(text: &[u8]) -> impl Iterator<Item = u32> + '_ {
    text.split(|&b| b == b'\n')
        .filter_map(unsigned)
        .filter_map(|pid| u32::try_from(pid).ok())
        .filter(|&pid| pid != 0)
}

/// Names of the folders in a folder, sorted.
pub(crate) fn child_names(folder: &Path) -> io::Result<Option<Vec<String>>> {
    let at =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", folder.display()));
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(at(error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) if is_absent(&error) => break,
            Err(error) => return Err(at(error)),
        };
        // A name that is not UTF-8 cannot be a unit's, and could not travel on the bus.
        if entry.file_type().is_ok_and(|kind| kind.is_dir())
            && let Ok(name) = entry.file_name().into_string()
        {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(Some(names))
}

/// Mount points of type cgroup2 in a `mountinfo` text (proc_pid_mountinfo(5)), `/sys/fs/cgroup` first.
fn cgroup2_mounts(mountinfo: &str) -> Vec<PathBuf> {
    let mut mounts: Vec<PathBuf> = mountinfo
        .lines()
        .filter_map(|line| {
            let (fields, kind) = line.split_once(" - ")?;
            let mount_point = fields.split(' ').nth(4)?;
            kind.starts_with("cgroup2 ")
                .then(|| PathBuf::from(unescape(mount_point)))
        })
        .collect();
    mounts.sort_by_key(|path| {
        (
            path != Path::new("/sys/fs/cgroup"),
            !path.starts_with("/sys/fs/cgroup"),
        )
    });
    mounts
}

/// Undoes the octal escapes of blanks and backslashes.
fn unescape(field: &str) -> String {
    ["\\040", "\\011", "\\012", "\\134"]
        .into_iter()
        .zip([" ", "\t", "\n", "\\"])
        .fold(field.to_owned(), |text, (escape, plain)| {
            text.replace(escape, plain)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> (tempfile::TempDir, CgroupFs) {
        let root = tempfile::tempdir().unwrap();
        for (path, procs) in [
            ("a.slice", "10\n11\n"),
            ("a.slice/x.scope", "12\n12\n0\n"),
            ("a.slice/x.scope/inner", "9\n"),
        ] {
            let folder = root.path().join(path);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("cgroup.procs"), procs).unwrap();
        }
        let fs = CgroupFs::rooted(root.path());
        (root, fs)
    }

    #[test]
    fn a_subtree_is_read_whole_and_once() {
        let (_root, cgroups) = tree();
        assert_eq!(cgroups.pids("/a.slice"), Some(vec![9, 10, 11, 12]));
        assert_eq!(cgroups.own_pids("/a.slice"), Some(vec![10, 11]));
        assert_eq!(
            cgroups.children("/a.slice"),
            Some(vec!["x.scope".to_owned()])
        );
        assert_eq!(cgroups.pids("/b.slice"), None);
        assert_eq!(cgroups.children("/b.slice"), None);
    }

    #[test]
    fn the_files_of_a_group() {
        let (root, cgroups) = tree();
        let write = |name, text| fs::write(root.path().join("a.slice").join(name), text).unwrap();
        assert_eq!(cgroups.cpu_max("/a.slice"), None);
        write("cpu.max", "150000 100000\n");
        write("cpu.weight", "1000\n");
        write("cpu.stat", "user_usec 1\nusage_usec 4242\n");
        write("cgroup.events", "populated 1\nfrozen 0\n");
        write("cgroup.controllers", "cpu memory pids\n");
        assert_eq!(
            cgroups.cpu_max("/a.slice").unwrap().quota_percent(),
            Some(150.0)
        );
        assert_eq!(cgroups.cpu_weight("/a.slice"), Some(1000));
        assert_eq!(cgroups.usage_usec("/a.slice"), Some(4242));
        assert_eq!(cgroups.populated("/a.slice"), Some(true));
        assert_eq!(
            cgroups.controllers("/a.slice").unwrap(),
            ["cpu", "memory", "pids"]
        );
        write("cpu.max", "1000 1000000\n");
        let small = cgroups.cpu_max("/a.slice").unwrap();
        assert_eq!(
            (small.quota_percent(), small.raw.as_str()),
            (Some(0.1), "1000 1000000")
        );
        write("cpu.max", "max 100000\n");
        assert_eq!(cgroups.cpu_max("/a.slice").unwrap().quota_percent(), None);
        write("cpu.max", "lots\n");
        assert_eq!(cgroups.cpu_max("/a.slice"), None);
    }

    #[test]
    fn a_path_cannot_lead_out_of_the_mount() {
        let (_root, cgroups) = tree();
        for path in ["/../etc", "/a.slice/..", "a.slice", "", "/a/./b", "/a\0"] {
            assert!(cgroups.folder(path).is_err(), "{path:?}");
            assert_eq!(cgroups.pids(path), None, "{path:?}");
        }
        assert!(
            cgroups.folder("/a.slice/..x").is_ok(),
            "two dots within a name are a name"
        );
    }

    #[test]
    fn the_unified_mount_is_preferred() {
        let hybrid = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
                      32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
        assert_eq!(
            cgroup2_mounts(hybrid),
            [Path::new("/sys/fs/cgroup/unified")]
        );
        let both = "41 31 0:38 / /mnt/with\\040blank rw shared:4 - cgroup2 none rw\n\
                    42 31 0:38 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n";
        assert_eq!(
            cgroup2_mounts(both),
            [Path::new("/sys/fs/cgroup"), Path::new("/mnt/with blank")]
        );
        assert!(cgroup2_mounts("32 31 0:29 / /x rw - cgroup cgroup rw,cpu\n").is_empty());
    }
}
