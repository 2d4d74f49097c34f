//! `/proc` readers below a root.
//!
//! A process that is gone is `Ok(None)`, never an error: processes end while they are read. An error
//! names the file. Where the sampler reads each process at each tick it uses [`ProcFs::read_stat`]
//! with its own buffer.

mod fields;
mod stat;
mod tree;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use guard_policy::id::ProcId;

pub use fields::Uids;
#[cfg(test)]
pub(crate) use stat::tests::line as stat_line;
pub(crate) use stat::unsigned;
pub use stat::{Image, Stat};

/// The most of a command line that [`ProcFs::argv`] reads, in bytes.
pub const MAX_ARGV: usize = 64 * 1024;

/// Room for the longest `stat` line: 52 numbers of at most 20 digits and a name.
pub const STAT_BUFFER: usize = 2048;

/// A `/proc`, or a recorded tree that looks like one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcFs {
    root: PathBuf,
}

impl Default for ProcFs {
    fn default() -> Self {
        ProcFs::new("/proc")
    }
}

impl ProcFs {
    /// The tree at `root`.
    pub fn new(root: impl Into<PathBuf>) -> ProcFs {
        ProcFs { root: root.into() }
    }

    /// Where it is.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The process that has this PID now. A thread id that is no PID answers `None`, for systemd
    /// versions differ in what they do with one.
    pub fn identify(&self, pid: u32) -> io::Result<Option<ProcId>> {
        if !self.is_leader(pid)? {
            return Ok(None);
        }
        Ok(self.stat(pid)?.map(|stat| ProcId {
            pid,
            start: stat.start,
        }))
    }

    /// Whether the process is still there, and is not only a zombie.
    pub fn is_alive(&self, id: ProcId) -> io::Result<bool> {
        Ok(self
            .stat(id.pid)?
            .is_some_and(|stat| stat.start == id.start && !stat.is_dead()))
    }

    /// `/proc/PID/stat`.
    pub fn stat(&self, pid: u32) -> io::Result<Option<Stat>> {
        let mut buffer = [0; STAT_BUFFER];
        self.read_stat(&self.file(pid, "stat"), &mut buffer)
    }

    /// The same from a path and with a buffer that the caller keeps.
    pub(crate) fn read_stat(
        &self,
        path: &Path,
        buffer: &mut [u8; STAT_BUFFER],
    ) -> io::Result<Option<Stat>> {
        let Some(read) = read_once(path, buffer)? else {
            return Ok(None);
        };
        match Stat::parse(&buffer[..read]) {
            Some(stat) => Ok(Some(stat)),
            None => Err(malformed(path, "is not a stat line")),
        }
    }

    /// The control group of the unified hierarchy, relative to its mount: the `0::` line of
    /// `/proc/PID/cgroup`. The kernel adds ` (deleted)` for a zombie whose group is gone.
    ///
    /// `None` when the process is gone. The file of a living one can always be read.
    pub fn cgroup(&self, pid: u32) -> Option<String> {
        let text = self.text(pid, "cgroup").ok()??;
        fields::unified_cgroup(&text).map(str::to_owned)
    }

    /// The arguments of a process, at most [`MAX_ARGV`] bytes of them; empty for zombies and kernel
    /// threads. Bytes that are not UTF-8 are replaced. Empty arguments at the end are dropped, since a
    /// program that renames itself pads the old space with zeros.
    pub fn argv(&self, pid: u32) -> io::Result<Option<Vec<Box<str>>>> {
        self.argv_bounded(pid, MAX_ARGV)
    }

    /// The same, with at most `limit` bytes.
    pub fn argv_bounded(&self, pid: u32, limit: usize) -> io::Result<Option<Vec<Box<str>>>> {
        let mut bytes = Vec::new();
        let found = read_bounded(&self.file(pid, "cmdline"), &mut bytes, limit)?;
        Ok(found.then(|| fields::split_argv(&bytes)))
    }

    /// The user ids of a process.
    pub fn uids(&self, pid: u32) -> io::Result<Option<Uids>> {
        let path = self.file(pid, "status");
        match self.text(pid, "status")? {
            Some(text) => match fields::uids(&text) {
                Some(uids) => Ok(Some(uids)),
                None => Err(malformed(&path, "has no Uid line of four numbers")),
            },
            None => Ok(None),
        }
    }

    /// Each thread's id and `stat`, which holds its own scheduling policy.
    pub fn policies(&self, pid: u32) -> io::Result<Option<Vec<(u32, Stat)>>> {
        let Some(tids) = numeric_entries(&self.file(pid, "task"))? else {
            return Ok(None);
        };
        let mut buffer = [0; STAT_BUFFER];
        let mut threads = Vec::with_capacity(tids.len());
        for tid in tids {
            let path = self.file(pid, &format!("task/{tid}/stat"));
            // A thread that ended in between has no policy any more.
            if let Some(stat) = self.read_stat(&path, &mut buffer)? {
                threads.push((tid, stat));
            }
        }
        Ok(Some(threads))
    }

    /// Every PID, ascending.
    pub fn pids(&self) -> io::Result<Vec<u32>> {
        Ok(numeric_entries(&self.root)?.unwrap_or_default())
    }

    /// A PID has an entry under its own `task`; a thread id is there under its leader's PID.
    fn is_leader(&self, pid: u32) -> io::Result<bool> {
        if pid == 0 {
            return Ok(false);
        }
        Ok(match self.text(pid, "status")? {
            Some(text) => {
                fields::status_field(&text, "Tgid").is_none_or(|tgid| tgid == pid.to_string())
            }
            None => false,
        })
    }

    fn file(&self, pid: u32, name: &str) -> PathBuf {
        self.root.join(format!("{pid}/{name}"))
    }

    fn text(&self, pid: u32, name: &str) -> io::Result<Option<String>> {
        let mut bytes = Vec::new();
        let found = read_bounded(&self.file(pid, name), &mut bytes, MAX_ARGV)?;
        Ok(found.then(|| String::from_utf8_lossy(&bytes).into_owned()))
    }
}

/// The process ended before the file was opened, or between that and the read.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(nix::libc::ESRCH)
}

fn at(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

fn malformed(path: &Path, what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("{} {what}", path.display()),
    )
}

/// One read at the start of a file of the kernel's, which gives a `stat` line whole.
fn read_once(path: &Path, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    let read = File::open(path).and_then(|mut file| file.read(buffer));
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(at(path, error)),
    }
}

/// Fills `bytes` with at most `limit` bytes; false when the process is gone.
fn read_bounded(path: &Path, bytes: &mut Vec<u8>, limit: usize) -> io::Result<bool> {
    bytes.clear();
    let read = File::open(path).and_then(|file| file.take(limit as u64).read_to_end(bytes));
    match read {
        Ok(_) => Ok(true),
        Err(error) if is_gone(&error) => Ok(false),
        Err(error) => Err(at(path, error)),
    }
}

/// The numbers among the names of a folder, ascending; `None` when it is gone.
fn numeric_entries(path: &Path) -> io::Result<Option<Vec<u32>>> {
    let entries = match std::fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if is_gone(&error) => return Ok(None),
        Err(error) => return Err(at(path, error)),
    };
    let mut numbers = Vec::new();
    for entry in entries {
        match entry {
            Ok(entry) => numbers.extend(
                entry
                    .file_name()
                    .to_str()
                    .and_then(|name| name.parse::<u32>().ok()),
            ),
            Err(error) if is_gone(&error) => break,
            Err(error) => return Err(at(path, error)),
        }
    }
    numbers.sort_unstable();
    Ok(Some(numbers))
}

#[cfg(test)]
mod tests;
