//! The periodic look at the watched processes and at our scopes.
//!
//! What it costs is what the guard costs while nothing happens. A subtree of control groups that used no CPU
//! since the last look is settled by one read ([`group`]); what is active is listed and read: one open,
//! one read and one close of the `stat` of each process, whose command line is read again only when the
//! addresses in that line tell of an exec. Keeping each `stat` open would halve that (measured: 2.5 µs
//! against 5.1 µs), but takes one open file and a page of kernel memory for each process.
//!
//! Who moves a process between groups leaves no trace in their CPU. After our own moves everything is read
//! ([`Sampler::expect_moved`]); a process that somebody else moves shows when it runs, and now
//! and then a group is listed although it is idle, so that counts become right again.

mod group;
mod table;

use std::collections::HashMap;
use std::sync::Arc;

use guard_policy::event::{Process, Sample, Usage};

use crate::cgroup::{CgroupFs, usage_usec};
use crate::proc::ProcFs;
use group::{Group, Shared};
use table::Table;

/// Looks for each group that is listed although it is idle.
const LOOKS_PER_SWEEP: u32 = 16;

/// What a look shows.
#[derive(Clone, Debug, Default)]
pub struct Look {
    /// What the engine is told.
    pub sample: Sample,
    /// Each parent, as asked for, and how many processes are in it and below; 0 when it has no group.
    pub watched: Vec<(String, u32)>,
    /// The processes of those scopes that are not watched, after [`Sampler::read_workloads`].
    pub inside: Vec<Process>,
    /// The processes of each scope that exists, by its unit, ascending.
    pub scope_pids: HashMap<String, Vec<u32>>,
}

/// Looks again and again, and remembers what it saw.
#[derive(Debug)]
pub struct Sampler {
    cgroups: CgroupFs,
    table: Table,
    shared: Shared,
    parents: Vec<Group>,
    scopes: Vec<Group>,
    /// The next look reads everything.
    whole: bool,
    /// Looks that were not at everything.
    looks: u32,
    /// The processes of the scopes, when they are read as well.
    inside: Option<Table>,
    /// Which parent has a group listed next although it is idle.
    turn: usize,
}

impl Sampler {
    /// Nothing seen yet.
    pub fn new(cgroups: CgroupFs, proc: ProcFs) -> Sampler {
        Sampler {
            cgroups,
            table: Table::new(proc),
            inside: None,
            shared: Shared::default(),
            parents: Vec::new(),
            scopes: Vec::new(),
            whole: true,
            looks: 0,
            turn: 0,
        }
    }

    /// Processes were moved, or may have been: the next look reads all of them, idle or not. To be called
    /// when a move or a recovery has ended, well or not.
    pub fn expect_moved(&mut self) {
        self.whole = true;
    }

    /// Whether the processes of workloads are read as well, each at every look.
    pub fn read_workloads(&mut self, wanted: bool) {
        match (wanted, &self.inside) {
            (true, None) => self.inside = Some(self.table.another()),
            (false, Some(_)) => self.inside = None,
            _ => {}
        }
    }

    /// One look: every process of the control groups `parents` and of all below that may have used CPU
    /// since the last look, once each; who has ended; and the use of each scope of `scopes` (unit and
    /// control group) that exists.
    ///
    /// Blocks, for about 10 µs per process that is read. A group that cannot be read counts as absent; a
    /// process that ends meanwhile is left out.
    pub fn sample(&mut self, parents: &[String], scopes: &[(String, String)]) -> Look {
        let mut look = Look::default();
        let whole = std::mem::take(&mut self.whole);
        self.look_at_parents(parents, whole, &mut look);
        self.look_at_scopes(scopes, &mut look);
        look
    }

    fn look_at_parents(&mut self, parents: &[String], whole: bool, look: &mut Look) {
        keep(
            &mut self.parents,
            &mut self.shared,
            &self.cgroups,
            parents.iter(),
        );
        self.table.begin();
        let (table, processes) = (&mut self.table, &mut look.sample.processes);
        let mut read = |cgroup: &Arc<str>, pid| {
            // Listed before: one parent is within another, or the process moved during the look.
            if table.was_read(pid) {
                return true;
            }
            let process = table.read(pid, cgroup);
            let there = process.is_some();
            processes.extend(process);
            there
        };
        for parent in &mut self.parents {
            // One that is gone counts no processes.
            let _ = parent.visit(whole, &mut self.shared, &mut read);
        }
        if !whole {
            self.sweep_one(look);
        }
        self.settle_dropped(look);
        // They are still on the list of a group that was idle.
        for (pid, group) in self.table.take_moved() {
            for parent in &mut self.parents {
                parent.disown(&group, pid);
            }
        }
        look.sample.ended = self.table.end();
        let count = |group: &Group| {
            let processes = u32::try_from(group.processes()).unwrap_or(u32::MAX);
            (group.path().to_owned(), processes)
        };
        look.watched = self.parents.iter().map(count).collect();
    }

    /// Lists one group more, now and then. Only who is new there is read: nobody ran.
    fn sweep_one(&mut self, look: &mut Look) {
        self.looks = self.looks.wrapping_add(1);
        if !self.looks.is_multiple_of(LOOKS_PER_SWEEP) {
            return;
        }
        let (table, processes) = (&mut self.table, &mut look.sample.processes);
        let mut read_new = |cgroup: &Arc<str>, pid| {
            if table.is_known(pid) {
                return true;
            }
            let process = table.read(pid, cgroup);
            let there = process.is_some();
            processes.extend(process);
            there
        };
        let parents = self.parents.len();
        if let Some(parent) = self.parents.get_mut(self.turn % parents.max(1)) {
            let done = parent.sweep(&mut self.shared, &mut read_new);
            self.turn = (self.turn + usize::from(done)) % parents;
        }
    }

    /// Tells apart who has ended and who is in another group now.
    fn settle_dropped(&mut self, look: &mut Look) {
        let mut dropped = std::mem::take(&mut self.shared.dropped);
        dropped.sort_unstable();
        dropped.dedup();
        for pid in dropped {
            if self.table.was_read(pid) || !self.table.is_known(pid) {
                continue;
            }
            // In a group that is idle, and so was not listed?
            let moved = self.table.cgroup(pid).and_then(|path| {
                let group = self
                    .parents
                    .iter_mut()
                    .find_map(|parent| parent.adopt(&path, pid))?;
                self.table.read(pid, &group)
            });
            match moved {
                Some(process) => look.sample.processes.push(process),
                None => self.table.forget(pid),
            }
        }
    }

    fn look_at_scopes(&mut self, scopes: &[(String, String)], look: &mut Look) {
        keep(
            &mut self.scopes,
            &mut self.shared,
            &self.cgroups,
            scopes.iter().map(|(_, path)| path),
        );
        let (watched, mut inside) = (&self.table, self.inside.as_mut());
        if let Some(table) = &mut inside {
            table.begin();
        }
        for group in &mut self.scopes {
            let Some((unit, _)) = scopes.iter().find(|(_, path)| path == group.path()) else {
                continue;
            };
            let mut pids = Vec::new();
            let mut visit = |shared: &mut Shared| {
                group.visit(true, shared, &mut |cgroup, pid| {
                    pids.push(pid);
                    // A placed one may be below what is watched.
                    if let Some(table) = inside.as_mut().filter(|_| !watched.is_known(pid)) {
                        look.inside.extend(table.read(pid, cgroup));
                    }
                    true
                })
            };
            // The files that were kept open may be those of a scope that is gone, and another one has its
            // name by now: work that was released and placed again has. The second visit opens them anew.
            if visit(&mut self.shared).is_err() && visit(&mut self.shared).is_err() {
                continue;
            }
            // Gone between the two reads, or no cpu.stat: as if it were gone before.
            let Some(usage_usec) = read_usage(group, &mut self.shared) else {
                continue;
            };
            pids.sort_unstable();
            pids.dedup();
            look.sample.workloads.push(Usage {
                unit: unit.clone(),
                usage_usec,
            });
            look.scope_pids.insert(unit.clone(), pids);
        }
        if let Some(table) = inside {
            table.forget_unread();
        }
        // Whoever leaves a scope was not watched there.
        self.shared.dropped.clear();
    }
}

/// Makes `groups` those of `paths`, in that order, and keeps what is known of those that stay. A path
/// that could lead out of the mount is left out.
fn keep<'a>(
    groups: &mut Vec<Group>,
    shared: &mut Shared,
    cgroups: &CgroupFs,
    paths: impl Iterator<Item = &'a String>,
) {
    let mut old = std::mem::take(groups);
    for path in paths {
        match old.iter().position(|group| group.path() == path) {
            Some(at) => groups.push(old.remove(at)),
            None => match cgroups.folder(path) {
                Ok(folder) => groups.push(Group::new(path, folder)),
                Err(error) => log::debug!("{error}"),
            },
        }
    }
    for mut group in old {
        group.release(shared);
    }
}

fn read_usage(group: &Group, shared: &mut Shared) -> Option<u64> {
    usage_usec(shared.read_path(&group.folder().join("cpu.stat")).ok()?)
}

#[cfg(test)]
mod active;
#[cfg(test)]
mod equal;
#[cfg(test)]
mod tests;
