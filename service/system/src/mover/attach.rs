//! Moves of processes into a unit that exists and is delegated (AttachProcessesToUnit).

use std::collections::BTreeMap;

use guard_policy::action::Failure;
use guard_policy::id::ProcId;

use super::Mover;
use super::call::{self, Meaning, meaning};
use super::hold::{is_illegible, is_leaving};
use super::record::Left;

/// A group of a unit that processes are attached to.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub unit: String,
    /// Below the unit's own group: empty, or absolute.
    pub subcgroup: String,
    /// The whole path, to read back.
    pub cgroup: String,
}

/// Why no process at all can be attached.
#[derive(Debug)]
pub(super) enum NotAttached {
    /// The unit takes none: it ended, is not delegated, or its group is gone or has inner groups.
    Target(String),
    /// Anything else.
    Failed(Failure),
}

impl NotAttached {
    pub fn into_failure(self) -> Failure {
        match self {
            NotAttached::Target(text) => Failure::SystemdRefused(text),
            NotAttached::Failed(failure) => failure,
        }
    }
}

impl From<Failure> for NotAttached {
    fn from(failure: Failure) -> Self {
        NotAttached::Failed(failure)
    }
}

/// PIDs in one call. Each is a write to `cgroup.procs` in the manager, which serves nobody else meanwhile.
const BATCH: usize = 256;

/// How often a process may be reported moved without being there.
const MISSES: u32 = 3;

/// What came of the calls for one process.
#[derive(Clone, Copy, Debug, Default)]
struct Tried {
    moved: bool,
    misses: u32,
}

/// How often is looked for processes that were forked meanwhile.
const ROUNDS: usize = 64;

impl Mover {
    /// Attaches what `find` names, again and again until it names nothing new: what a process forks
    /// between a look and its own move is born where the process was. `find` is given what is to be
    /// left alone. What could not be moved is added to `left`.
    pub(super) async fn attach_all(
        &self,
        target: &Target,
        left: &mut Vec<Left>,
        mut find: impl FnMut(&mut Vec<Left>) -> Result<Vec<ProcId>, Failure>,
    ) -> Result<Vec<ProcId>, NotAttached> {
        let mut tried: BTreeMap<ProcId, Tried> = BTreeMap::new();
        for _ in 0..ROUNDS {
            let mut next = find(left)?;
            next.retain(|id| !left.iter().any(|left| left.process == *id));
            if next.is_empty() {
                break;
            }
            self.set_illegible_aside(&mut next, left)?;
            for batch in next.chunks(BATCH) {
                self.attach(target, batch, left, &mut tried).await?;
            }
        }
        let moved = tried.into_iter().filter(|(_, tried)| tried.moved);
        Ok(moved.map(|(id, _)| id).collect())
    }

    /// Takes out who would have the call refused for all of its batch.
    fn set_illegible_aside(
        &self,
        next: &mut Vec<ProcId>,
        left: &mut Vec<Left>,
    ) -> Result<(), Failure> {
        let mut legible = Vec::with_capacity(next.len());
        for &id in next.iter() {
            match self.proc.stat(id.pid).map_err(call::unreadable)? {
                Some(stat) if stat.start == id.start && is_illegible(&stat) => left.push(Left {
                    process: id,
                    why: "systemd moves no process with a line break in its name".to_owned(),
                }),
                _ => legible.push(id),
            }
        }
        *next = legible;
        Ok(())
    }

    /// One batch: together, and after an error those that are not inside one by one.
    async fn attach(
        &self,
        target: &Target,
        batch: &[ProcId],
        left: &mut Vec<Left>,
        tried: &mut BTreeMap<ProcId, Tried>,
    ) -> Result<(), NotAttached> {
        let error = self.attach_call(target, batch).await?.err();
        // Read back whatever was answered: zombies are skipped in silence, and AccessDenied and EBUSY
        // leave a part moved.
        let outside = self.read_back(target, batch, tried)?;
        let Some(error) = error else {
            for id in outside {
                self.missed(target, id, left, tried);
            }
            return Ok(());
        };
        if outside.is_empty() {
            return Ok(());
        }
        if meaning(&error) == Meaning::Target {
            return Err(NotAttached::Target(format!(
                "{}: {}",
                target.unit,
                call::text(&error)
            )));
        }
        for id in outside {
            let answer = self.attach_call(target, &[id]).await?;
            if self.read_back(target, &[id], tried)?.is_empty() {
                continue;
            }
            match answer {
                Ok(()) => self.missed(target, id, left, tried),
                Err(error) if meaning(&error) == Meaning::Target => {
                    return Err(NotAttached::Target(format!(
                        "{}: {}",
                        target.unit,
                        call::text(&error)
                    )));
                }
                Err(error) => left.push(Left {
                    process: id,
                    why: call::text(&error),
                }),
            }
        }
        Ok(())
    }

    /// Takes note of a process that was reported moved and was not. One that began to exit meanwhile is
    /// no longer found at the next look; one that is still there after several is not exiting.
    fn missed(
        &self,
        target: &Target,
        id: ProcId,
        left: &mut Vec<Left>,
        tried: &mut BTreeMap<ProcId, Tried>,
    ) {
        let tried = tried.entry(id).or_default();
        tried.misses += 1;
        if tried.misses >= MISSES {
            left.push(Left {
                process: id,
                why: format!(
                    "systemd reported it moved into {}, but it is not there",
                    target.unit
                ),
            });
        }
    }

    /// The call itself; waits for a manager that is away. The outer error is the end of the matter.
    async fn attach_call(
        &self,
        target: &Target,
        batch: &[ProcId],
    ) -> Result<zbus::Result<()>, Failure> {
        let answer = self
            .ask("AttachProcessesToUnit", async || {
                // Right before the call: a PID is only as good as the start time behind it.
                let mut pids = Vec::with_capacity(batch.len());
                for id in batch {
                    if self.proc.is_alive(*id)? {
                        pids.push(id.pid);
                    }
                }
                if pids.is_empty() {
                    return Ok(());
                }
                // Moving a process to where it is does nothing, so this can be repeated.
                self.manager
                    .attach_processes_to_unit(&target.unit, &target.subcgroup, &pids)
                    .await
            })
            .await;
        match answer {
            Err(error @ zbus::Error::InputOutput(_)) => Err(call::failure(
                &format!("moving processes into {}", target.unit),
                &error,
            )),
            other => Ok(other),
        }
    }

    /// Sorts a batch: who is inside is marked moved, who lives outside is answered, who ended is dropped.
    fn read_back(
        &self,
        target: &Target,
        batch: &[ProcId],
        tried: &mut BTreeMap<ProcId, Tried>,
    ) -> Result<Vec<ProcId>, Failure> {
        let mut outside = Vec::new();
        for &id in batch {
            let cgroup = self.proc.cgroup(id.pid);
            let stat = self.proc.stat(id.pid).map_err(call::unreadable)?;
            if stat.is_none_or(|stat| stat.start != id.start || is_leaving(&stat)) {
                continue;
            }
            if cgroup.as_deref() == Some(target.cgroup.as_str()) {
                tried.entry(id).or_default().moved = true;
            } else {
                outside.push(id);
            }
        }
        Ok(outside)
    }
}
