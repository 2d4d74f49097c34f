//! Who descends from whom.

use std::collections::HashMap;
use std::io;

use guard_policy::id::ProcId;

use super::{ProcFs, read_bounded};

impl ProcFs {
    /// The living descendants of `root` among `pids`, without `root` itself, parents before children.
    ///
    /// One `stat` of each PID of the list, so the list should be that of a control group and not of
    /// the machine. A chain ends where a link of it is not in the list. A process whose parent died is
    /// its new parent's child and no descendant any more: what detached itself is left alone.
    /// Empty when `root` is gone or its PID is another process's by now.
    pub fn descendants(&self, root: ProcId, pids: &[u32]) -> io::Result<Vec<ProcId>> {
        let mut children: HashMap<u32, Vec<ProcId>> = HashMap::new();
        for &pid in pids {
            if let Some(stat) = self.stat(pid)?
                && !stat.is_dead()
            {
                children.entry(stat.ppid).or_default().push(ProcId {
                    pid,
                    start: stat.start,
                });
            }
        }
        // After the scan: a root that still lives did so during all of it, so no PID of its children's
        // parent was reused meanwhile.
        if !self.is_alive(root)? {
            return Ok(Vec::new());
        }
        let mut found = Vec::new();
        let mut next = vec![root];
        while let Some(parent) = next.pop() {
            // Taken out, so that a loop that a torn scan shows ends.
            for child in children.remove(&parent.pid).unwrap_or_default() {
                // A parent is never younger than its child; where it seems so, the PID was reused.
                if child.start >= parent.start && child != root {
                    found.push(child);
                    next.push(child);
                }
            }
        }
        Ok(found)
    }

    /// The descendants of `root` wherever they are: by the `children` files where the kernel has them
    /// (`CONFIG_PROC_CHILDREN`), else by a scan of every process.
    ///
    /// The kernel promises neither to be complete while children come and go: look again until nothing
    /// new is found.
    pub fn all_descendants(&self, root: ProcId) -> io::Result<Vec<ProcId>> {
        if !self.is_alive(root)? {
            return Ok(Vec::new());
        }
        let Some(first) = self.children(root.pid)? else {
            return self.descendants(root, &self.pids()?);
        };
        let mut pids = first.clone();
        let mut next = first;
        while let Some(pid) = next.pop() {
            for child in self.children(pid)?.unwrap_or_default() {
                if !pids.contains(&child) {
                    pids.push(child);
                    next.push(child);
                }
            }
        }
        self.descendants(root, &pids)
    }

    /// The children of every thread of a process; `None` when it is gone or the kernel has no such
    /// files.
    pub fn children(&self, pid: u32) -> io::Result<Option<Vec<u32>>> {
        let Some(tids) = super::numeric_entries(&self.file(pid, "task"))? else {
            return Ok(None);
        };
        let mut children = Vec::new();
        let mut bytes = Vec::new();
        let mut any = false;
        for tid in tids {
            let path = self.file(pid, &format!("task/{tid}/children"));
            if read_bounded(&path, &mut bytes, usize::MAX)? {
                any = true;
                children.extend(
                    bytes
                        .split(u8::is_ascii_whitespace)
                        .filter_map(super::unsigned)
                        .map(|pid| pid as u32),
                );
            }
        }
        Ok(any.then_some(children))
    }
}
