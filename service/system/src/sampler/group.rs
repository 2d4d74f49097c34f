//! A control group that is looked at again and again.
//!
//! Where `usage_usec` of `cpu.stat` is what it was at the last look, no process of the group or below ran in
//! between: none can have forked, executed, ended or become hot. That one read settles the whole subtree
//! (the kernel adds up what is below before it answers, the use of groups removed meanwhile included:
//! `kernel/cgroup/rstat.c`). Only where it grew are the processes listed.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::cgroup::{child_names, is_absent, parse_pids, usage_usec};

/// Groups nested deeper than this below a watched one are not looked at.
pub(super) const MAX_DEPTH: u32 = 64;

/// How many groups keep their files open between looks; the rest are opened each time. Measured: 2.0 µs
/// for a group whose files are open, 6.9 µs for one that is opened by its path. Three files each, so that
/// there is room below the usual limit of 1024 open files.
const MAX_KEPT: usize = 256;

/// The group was removed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Gone;

/// A group with those below it.
#[derive(Debug)]
pub(super) struct Group {
    /// Relative to the mount.
    path: Arc<str>,
    folder: PathBuf,
    kept: Option<Kept>,
    /// It was removed at the last visit.
    gone: bool,
    /// CPU time of the group and all below, from before its processes were listed.
    usage: Option<u64>,
    /// Its own processes when they were last listed, ascending.
    members: Vec<u32>,
    /// Processes of the group and all below.
    processes: usize,
    /// Whose turn it is in the sweep: the group's own, or a child's, counted from 1.
    turn: usize,
    /// Links of the folder when `children` was read; a folder has two of its own and one for each
    /// folder in it, so an equal count means that no group came without another one going.
    links: u64,
    children: Vec<Group>,
}

#[derive(Debug)]
struct Kept {
    folder: File,
    procs: File,
    stat: Option<File>,
}

/// What is done with each listed process: whether it counts as one of the group.
pub(super) type Each<'a> = dyn FnMut(&Arc<str>, u32) -> bool + 'a;

/// What all groups of a sampler share.
#[derive(Debug)]
pub(super) struct Shared {
    /// Text of the `cgroup.procs` that is read.
    text: Vec<u8>,
    /// Groups that keep their files open, and how many may.
    kept: usize,
    may_keep: usize,
    /// Processes that a group had and has no more. They may be in another one.
    pub(super) dropped: Vec<u32>,
}

impl Default for Shared {
    fn default() -> Shared {
        Shared::keeping(MAX_KEPT)
    }
}

impl Shared {
    /// At most `may_keep` groups keep their files open.
    pub(super) fn keeping(may_keep: usize) -> Shared {
        Shared {
            text: Vec::new(),
            kept: 0,
            may_keep,
            dropped: Vec::new(),
        }
    }

    /// Bytes that a `cgroup.procs` is read with at first.
    const FIRST: usize = 4096;

    /// Reads the file at `path` whole.
    pub(super) fn read_path(&mut self, path: &Path) -> io::Result<&[u8]> {
        let length = self.read(&File::open(path)?)?;
        Ok(&self.text[..length])
    }

    /// Reads a file whole, from its start, into `self.text`.
    fn read(&mut self, file: &File) -> io::Result<usize> {
        let mut length = 0;
        loop {
            if self.text.len() - length < Self::FIRST / 2 {
                self.text.resize(self.text.len() + Self::FIRST, 0);
            }
            // The kernel gives a page or less at a time.
            match file.read_at(&mut self.text[length..], length as u64) {
                Ok(0) => return Ok(length),
                Ok(read) => length += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Group {
    /// A group at `folder` that nothing is known of yet.
    pub(super) fn new(path: &str, folder: PathBuf) -> Group {
        Group {
            path: path.into(),
            folder,
            kept: None,
            gone: false,
            usage: None,
            members: Vec::new(),
            processes: 0,
            turn: 0,
            links: 0,
            children: Vec::new(),
        }
    }

    /// Where it is, relative to the mount.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Its folder.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// How many processes the group and all below have.
    pub(super) fn processes(&self) -> usize {
        self.processes
    }

    /// Calls `each` for each process of the groups that used CPU since the last visit, or of all groups
    /// with `whole`. A group that is removed meanwhile is left out; [`Gone`] says so of this one.
    pub(super) fn visit(
        &mut self,
        whole: bool,
        shared: &mut Shared,
        each: &mut Each<'_>,
    ) -> Result<(), Gone> {
        self.visit_at(0, whole, shared, each)
    }

    fn visit_at(
        &mut self,
        depth: u32,
        whole: bool,
        shared: &mut Shared,
        each: &mut Each<'_>,
    ) -> Result<(), Gone> {
        // Before the processes, so that what they use during the look shows at the next one.
        let usage = self.read_usage(shared);
        if !whole && usage.is_some() && usage == self.usage {
            return Ok(());
        }
        self.list_own(shared, each)?;
        self.usage = usage;
        let links = self.links();
        // Before the children are visited, each of which tells whether it is still there: an equal count
        // and no child gone together mean that the list is right.
        let mut stale = links < 2 || links != self.links;
        for child in &mut self.children {
            stale |= child.visit_at(depth + 1, whole, shared, each).is_err();
        }
        if stale && depth < MAX_DEPTH {
            self.list_children(links, shared, |child, shared| {
                // One that vanishes at once is found out at the next look.
                let _ = child.visit_at(depth + 1, whole, shared, each);
            });
        }
        self.add_up();
        Ok(())
    }

    /// Lists one group of the subtree, the next one in turn, whether it used CPU or not: who moves a
    /// process in or out from elsewhere leaves no trace in its CPU. True when all have had their turn.
    pub(super) fn sweep(&mut self, shared: &mut Shared, each: &mut Each<'_>) -> bool {
        self.sweep_at(0, shared, each)
    }

    fn sweep_at(&mut self, depth: u32, shared: &mut Shared, each: &mut Each<'_>) -> bool {
        // Nothing here may cost in proportion to the groups.
        if self.turn == 0 {
            let before = self.members.len();
            if self.list_own(shared, each).is_ok() {
                self.processes = self.processes + self.members.len() - before;
                let links = self.links();
                if (links < 2 || links != self.links) && depth < MAX_DEPTH {
                    self.list_children(links, shared, |child, shared| {
                        let _ = child.visit_at(depth + 1, true, shared, each);
                    });
                    self.add_up();
                }
            }
            self.turn = 1;
        } else if let Some(child) = self.children.get_mut(self.turn - 1) {
            let before = child.processes;
            let done = child.sweep_at(depth + 1, shared, each);
            self.processes = self.processes + child.processes - before;
            self.turn += usize::from(done);
        }
        let done = self.turn > self.children.len();
        if done {
            self.turn = 0;
        }
        done
    }

    /// Counts a process as one of the group at `path`, of this subtree, until the group is listed again.
    /// Answers its name, or `None` when no such group is known.
    pub(super) fn adopt(&mut self, path: &str, pid: u32) -> Option<Arc<str>> {
        self.edit(path, &mut |members| {
            if let Err(at) = members.binary_search(&pid) {
                members.insert(at, pid);
            }
        })
    }

    /// The contrary.
    pub(super) fn disown(&mut self, path: &str, pid: u32) {
        self.edit(path, &mut |members| {
            if let Ok(at) = members.binary_search(&pid) {
                members.remove(at);
            }
        });
    }

    fn edit(&mut self, path: &str, change: &mut dyn FnMut(&mut Vec<u32>)) -> Option<Arc<str>> {
        let found = if *self.path == *path {
            change(&mut self.members);
            Some(Arc::clone(&self.path))
        } else {
            let inner = path.strip_prefix(self.path.trim_end_matches('/'))?;
            let name = OsStr::new(inner.strip_prefix('/')?.split('/').next()?);
            let mut children = self.children.iter_mut();
            children
                .find(|child| child.name() == name)?
                .edit(path, change)
        };
        self.add_up();
        found
    }

    fn add_up(&mut self) {
        let below: usize = self.children.iter().map(Group::processes).sum();
        self.processes = self.members.len() + below;
    }

    /// `None` when it cannot be told; then the group is looked into.
    fn read_usage(&self, shared: &mut Shared) -> Option<u64> {
        let length = match self.kept.as_ref().map(|kept| &kept.stat) {
            Some(stat) => shared.read(stat.as_ref()?).ok()?,
            None => shared.read_path(&self.folder.join("cpu.stat")).ok()?.len(),
        };
        usage_usec(&shared.text[..length])
    }

    /// The processes of the group itself.
    fn list_own(&mut self, shared: &mut Shared, each: &mut Each<'_>) -> Result<(), Gone> {
        let read = match &self.kept {
            Some(kept) => shared.read(&kept.procs),
            None => self.open(shared),
        };
        self.gone = false;
        match read {
            Ok(length) => {
                let mut members: Vec<u32> = parse_pids(&shared.text[..length]).collect();
                members.sort_unstable();
                members.dedup();
                members.retain(|pid| each(&self.path, *pid));
                self.replace_members(members, shared);
                Ok(())
            }
            // A threaded group has its processes listed by its domain.
            Err(error) if error.raw_os_error() == Some(nix::libc::EOPNOTSUPP) => {
                self.replace_members(Vec::new(), shared);
                Ok(())
            }
            Err(error) => {
                if !is_absent(&error) {
                    log::debug!("{}/cgroup.procs: {error}", self.folder.display());
                }
                self.release(shared);
                self.gone = true;
                Err(Gone)
            }
        }
    }

    fn replace_members(&mut self, members: Vec<u32>, shared: &mut Shared) {
        for pid in std::mem::replace(&mut self.members, members) {
            if self.members.binary_search(&pid).is_err() {
                shared.dropped.push(pid);
            }
        }
    }

    /// Opens and reads `cgroup.procs`, and keeps it open while there are few.
    fn open(&mut self, shared: &mut Shared) -> io::Result<usize> {
        let procs = File::open(self.folder.join("cgroup.procs"))?;
        let read = shared.read(&procs)?;
        if shared.kept < shared.may_keep
            && let Ok(folder) = File::open(&self.folder)
        {
            shared.kept += 1;
            let stat = File::open(self.folder.join("cpu.stat")).ok();
            self.kept = Some(Kept {
                folder,
                procs,
                stat,
            });
        }
        Ok(read)
    }

    /// 0 when unknown: some file systems of recorded trees count no folders.
    fn links(&self) -> u64 {
        let found = match &self.kept {
            Some(kept) => kept.folder.metadata(),
            None => std::fs::metadata(&self.folder),
        };
        found.map_or(0, |found| found.nlink())
    }

    /// Reads the names of the groups below, keeps those known, and calls `fresh` with each other.
    fn list_children(
        &mut self,
        links: u64,
        shared: &mut Shared,
        mut fresh: impl FnMut(&mut Group, &mut Shared),
    ) {
        let names = match child_names(&self.folder) {
            Ok(names) => names.unwrap_or_default(),
            Err(error) => {
                // Without the list the known groups are the best there is; the next look tries again.
                log::debug!("{error}");
                return;
            }
        };
        // Both are sorted by name.
        let mut known = std::mem::take(&mut self.children).into_iter().peekable();
        for name in names {
            while let Some(mut other) = known.next_if(|child| child.name() < OsStr::new(&name)) {
                other.release(shared);
            }
            let child = match known.next_if(|child| child.name() == OsStr::new(&name)) {
                Some(child) if !child.gone => child,
                // New, or removed and made again.
                _ => {
                    let path = format!("{}/{name}", self.path.trim_end_matches('/'));
                    let mut child = Group::new(&path, self.folder.join(&name));
                    fresh(&mut child, shared);
                    child
                }
            };
            self.children.push(child);
        }
        for mut other in known {
            other.release(shared);
        }
        self.links = links;
    }

    fn name(&self) -> &OsStr {
        self.folder.file_name().unwrap_or_default()
    }

    /// Closes the files of the whole subtree, and lets its processes go.
    pub(super) fn release(&mut self, shared: &mut Shared) {
        shared.dropped.append(&mut self.members);
        (self.usage, self.processes) = (None, 0);
        if self.kept.take().is_some() {
            shared.kept -= 1;
        }
        for child in &mut self.children {
            child.release(shared);
        }
    }
}
