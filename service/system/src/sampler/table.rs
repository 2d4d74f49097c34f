//! What is kept of each process between two looks.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use guard_policy::event::Process;
use guard_policy::id::ProcId;

use crate::proc::{Image, ProcFs, STAT_BUFFER, Stat};

/// The most of a command line that is kept for each process, in bytes and in arguments: what the rules
/// look at is at its beginning, and a thousand processes have to fit in little memory.
const MAX_ARGV_BYTES: usize = 4096;
const MAX_ARGUMENTS: usize = 128;

/// The watched processes.
#[derive(Debug)]
pub(super) struct Table {
    proc: ProcFs,
    known: HashMap<u32, Known>,
    /// Counts looks, so that what was read in one can be told.
    look: u32,
    /// Processes that were known and are found to be gone in this look.
    ended: Vec<ProcId>,
    /// Processes that were read in another group than before in this look, with the one before.
    moved: Vec<(u32, Arc<str>)>,
    /// The kernel places programs at random, so that an exec shows in [`Image`].
    randomized: bool,
    /// Both reused: reading a process that did not change allocates nothing.
    path: String,
    buffer: Box<[u8; STAT_BUFFER]>,
}

#[derive(Debug)]
struct Known {
    start: u64,
    comm: [u8; 16],
    image: Image,
    argv: Arc<[Box<str>]>,
    group: Arc<str>,
    seen: u32,
}

impl Table {
    pub(super) fn new(proc: ProcFs) -> Table {
        let setting = proc.root().join("sys/kernel/randomize_va_space");
        // 0 is off; where it cannot be read, command lines are read each time, which is only slower.
        let randomized = std::fs::read_to_string(setting).is_ok_and(|text| text.trim() != "0");
        Table {
            proc,
            known: HashMap::new(),
            look: 0,
            ended: Vec::new(),
            moved: Vec::new(),
            randomized,
            path: String::new(),
            buffer: Box::new([0; STAT_BUFFER]),
        }
    }

    /// A table of the same machine that knows of nobody.
    pub(super) fn another(&self) -> Table {
        Table {
            known: HashMap::new(),
            ended: Vec::new(),
            moved: Vec::new(),
            path: String::new(),
            buffer: Box::new([0; STAT_BUFFER]),
            proc: self.proc.clone(),
            look: 0,
            randomized: self.randomized,
        }
    }

    /// Ends a look of which only what it read counts.
    pub(super) fn forget_unread(&mut self) {
        let look = self.look;
        self.known.retain(|_, known| known.seen == look);
        self.moved.clear();
        self.end();
    }

    /// Begins a look.
    pub(super) fn begin(&mut self) {
        self.look = self.look.wrapping_add(1);
    }

    /// Ends a look. Answers who is gone.
    pub(super) fn end(&mut self) -> Vec<ProcId> {
        // After a storm of processes.
        if self.known.capacity() > 4 * self.known.len() + 1024 {
            self.known.shrink_to_fit();
        }
        std::mem::take(&mut self.ended)
    }

    /// Whether the process was read in an earlier look.
    pub(super) fn is_known(&self, pid: u32) -> bool {
        self.known.contains_key(&pid)
    }

    /// The control group that a process is in now.
    pub(super) fn cgroup(&self, pid: u32) -> Option<String> {
        self.proc.cgroup(pid)
    }

    /// Who was read in another group than before, and in which it was.
    pub(super) fn take_moved(&mut self) -> Vec<(u32, Arc<str>)> {
        std::mem::take(&mut self.moved)
    }

    /// Takes note that the process is gone, if it was known.
    pub(super) fn forget(&mut self, pid: u32) {
        if let Some(known) = self.known.remove(&pid) {
            self.ended.push(ProcId {
                pid,
                start: known.start,
            });
        }
    }

    /// Whether the process was read in this look.
    pub(super) fn was_read(&self, pid: u32) -> bool {
        self.known
            .get(&pid)
            .is_some_and(|known| known.seen == self.look)
    }

    /// Reads a process; `None` when it is gone or dead.
    pub(super) fn read(&mut self, pid: u32, cgroup: &Arc<str>) -> Option<Process> {
        self.path.clear();
        let _ = write!(self.path, "{}/{pid}/stat", self.proc.root().display());
        let stat = match self.proc.read_stat(Path::new(&self.path), &mut self.buffer) {
            Ok(stat) => stat.filter(|stat| !stat.is_dead())?,
            Err(error) => {
                log::debug!("{error}");
                return None;
            }
        };
        let same = self
            .known
            .get(&pid)
            .filter(|known| known.start == stat.start);
        let argv = match same {
            Some(known) if self.randomized && known.is_unchanged(&stat) => known.argv.clone(),
            _ => read_argv(&self.proc, pid, &stat, same),
        };
        let kept = Known {
            start: stat.start,
            comm: stat.comm,
            image: stat.image,
            argv: argv.clone(),
            group: cgroup.clone(),
            seen: self.look,
        };
        if let Some(before) = self.known.insert(pid, kept) {
            if before.group != *cgroup {
                self.moved.push((pid, before.group));
            }
            if before.start != stat.start {
                self.ended.push(ProcId {
                    pid,
                    start: before.start,
                });
            }
        }
        Some(Process {
            id: ProcId {
                pid,
                start: stat.start,
            },
            ppid: stat.ppid,
            cgroup: cgroup.clone(),
            cpu_usec: stat.cpu_usec(),
            reaped_usec: stat.reaped_usec(),
            leads_session: stat.session == pid,
            has_terminal: stat.tty_nr != 0,
            argv,
        })
    }
}

impl Known {
    /// It runs the program that it ran. The stat line was read before the command line at the time, so
    /// that an exec between the two shows now.
    fn is_unchanged(&self, stat: &Stat) -> bool {
        // The first thread of the process has ended, and what it knew of the program with it.
        let headless = stat.state == b'Z';
        headless || (stat.image.is_visible() && stat.image == self.image && stat.comm == self.comm)
    }
}

/// Reads the arguments; gives those known when they are the same ones, so that they stay shared.
fn read_argv(proc: &ProcFs, pid: u32, stat: &Stat, known: Option<&Known>) -> Arc<[Box<str>]> {
    if stat.is_kernel_thread() {
        return Arc::default();
    }
    let mut argv = match proc.argv_bounded(pid, MAX_ARGV_BYTES) {
        Ok(argv) => argv.unwrap_or_default(),
        Err(error) => {
            log::debug!("{error}");
            Vec::new()
        }
    };
    argv.truncate(MAX_ARGUMENTS);
    match known {
        Some(known) if *known.argv == *argv => known.argv.clone(),
        _ => argv.into(),
    }
}
