//! Out of the source, into a class's slice.

use std::collections::BTreeSet;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use futures_lite::future;
use guard_policy::action::{Failure, Move, Placement};
use guard_policy::class::Class;
use guard_policy::eligibility::Intent;
use guard_policy::id::ProcId;
use guard_policy::printable::{command_line, printable};
use workload_guard_dbus::scope::{Origin, ScopeName};

use super::Mover;
use super::attach::{NotAttached, Target};
use super::call;
use super::hold::{Held, is_leaving};
use super::judge::Judge;
use super::record::{Left, MAX_LEFT, Route, Source};
use super::scope::{NotStarted, Spec};
use super::settings::SettingValue;
use super::ties::Ties;
use super::tree::{Member, descendants};
use super::why;

impl Mover {
    /// Moves the tree of `order` into a scope of `class`. `Err` means that the tree is where it was.
    ///
    /// Members that are never moved, or that systemd refuses, stay and are in [`Route::left`]. When the
    /// tree comes out of another workload of ours, the new route leads back to where that one came from.
    pub async fn route(&self, order: &Move, class: &Class) -> Result<Route, Failure> {
        self.route_from(order, class, None).await
    }

    /// The same for a tree that is in the workload `earlier`, whose memory of the source is kept.
    pub async fn reroute(
        &self,
        order: &Move,
        class: &Class,
        earlier: &Route,
    ) -> Result<Route, Failure> {
        self.route_from(order, class, Some(earlier)).await
    }

    async fn route_from(
        &self,
        order: &Move,
        class: &Class,
        earlier: Option<&Route>,
    ) -> Result<Route, Failure> {
        let Some((&root, others)) = order.processes.split_first() else {
            return Err(Failure::NoSuchProcess("no process was named".to_owned()));
        };
        let intent = match order.placement {
            // `Route` asks for what detection does, and its answer comes back by itself.
            Placement::Routed => Intent::Detection,
            Placement::Placed => Intent::Explicit,
        };
        let held = Held::take(&self.proc, root)?;
        let from = self.cgroup(root)?;
        // `/proc` is read while systemd answers: what counts here is how soon the work is bounded.
        let reading = async { self.known_of(root) };
        let (found, known) = future::zip(self.source_of(&from, earlier), reading).await;
        let found = found?;
        let judge = Judge::new(self, intent, found.view.as_ref());
        judge.permits_known(root, known?)?;
        for &other in others {
            Held::take(&self.proc, other)?;
            judge.permits(other)?;
            let elsewhere = self.cgroup(other)?;
            if elsewhere != from {
                return Err(Failure::OutOfReach(format!(
                    "process {other} is in {elsewhere} and process {root} in {from}: attach them in calls of their own, since each goes back to where it came from"
                )));
            }
        }

        let argv = self
            .proc
            .argv(root.pid)
            .map_err(call::unreadable)?
            .unwrap_or_default();
        let command = command_line(&argv);
        let why = why::text(&order.why);
        let origin = match order.placement {
            Placement::Routed => Origin::Routed,
            Placement::Placed => Origin::Placed,
        };
        let unit = ScopeName {
            class: class.name.clone(),
            origin,
            pid: root.pid,
            start: root.start,
        }
        .to_string();
        let mut spec = Spec {
            name: unit.clone(),
            slice: class.slice.clone(),
            ties: found.ties,
            settings: found.source.saved.bounds().cloned().collect(),
            runtime: found.source.saved.runtime_left(super::monotonic_usec()),
        };
        spec.set(
            "Description",
            SettingValue::Text(why::description(&command, &class.name, &why)),
        );
        // An interactive shell ignores SIGTERM and would hold up every stop for 90 s.
        spec.set("SendSIGHUP", SettingValue::Flag(true));
        // Explicit, or systemd does not enable the cpu controller inside the slice, and workloads would
        // share by threads.
        spec.set("CPUWeight", SettingValue::Number(100));

        let cgroup = self.start_or_join(&spec, &held).await?;
        let left = self.take_along(&unit, &cgroup, &from, others, &judge).await;
        Ok(Route {
            unit,
            class: class.name.clone(),
            placement: order.placement,
            root,
            why,
            command,
            since: now_usec(),
            cgroup,
            source: found.source,
            ties: spec.ties,
            left,
        })
    }

    /// Moves the rest of the tree, which is in the group `from`. The root is in its scope already, so a
    /// failure here is no failure of the move: it is what is left.
    async fn take_along(
        &self,
        unit: &str,
        cgroup: &str,
        from: &str,
        others: &[ProcId],
        judge: &Judge<'_>,
    ) -> Vec<Left> {
        let target = Target {
            unit: unit.to_owned(),
            subcgroup: String::new(),
            cgroup: cgroup.to_owned(),
        };
        let mut left: Vec<Left> = Vec::new();
        let mut judged = BTreeSet::new();
        let result = self
            .attach_all(&target, &mut left, |left| {
                let mut next = self.tree_in(cgroup, from, others, left)?;
                next.retain(|&id| {
                    // Judged once: what a process is does not change within a move.
                    if !judged.insert(id) {
                        return true;
                    }
                    match judge.permits(id) {
                        Ok(()) => true,
                        Err(Failure::NoSuchProcess(_)) => false,
                        Err(failure) => {
                            left.push(Left {
                                process: id,
                                why: failure.to_string(),
                            });
                            false
                        }
                    }
                });
                Ok(next)
            })
            .await;
        if let Err(error) = result {
            let why = error.into_failure().to_string();
            log::warn!("not the whole tree could be moved into {unit}: {why}");
            let behind = self
                .tree_in(cgroup, from, others, &left)
                .unwrap_or_default();
            left.extend(behind.into_iter().map(|process| Left {
                process,
                why: printable(&why),
            }));
        }
        left.retain(|left| self.proc.is_alive(left.process).unwrap_or(true));
        left.truncate(MAX_LEFT);
        left
    }

    /// Processes in the group `from` that belong to the tree whose moved part is in `cgroup`.
    fn tree_in(
        &self,
        cgroup: &str,
        from: &str,
        others: &[ProcId],
        left: &[Left],
    ) -> Result<Vec<ProcId>, Failure> {
        // The moved part first: a parent that is listed there was alive then, so who names it as parent
        // afterwards is its child.
        let moved = self.cgroups.pids(cgroup).unwrap_or_default();
        let mut tree: BTreeSet<u32> = moved.into_iter().collect();
        // What stays may have children that go.
        tree.extend(left.iter().map(|left| left.process.pid));
        let members = self.members(from)?;
        let mut found: Vec<ProcId> = others
            .iter()
            .copied()
            .filter(|other| members.iter().any(|member| member.id == *other))
            .collect();
        tree.extend(found.iter().map(|id| id.pid));
        found.extend(descendants(&tree, &members));
        Ok(found)
    }

    /// The living processes of a group, without those of groups below it.
    fn members(&self, cgroup: &str) -> Result<Vec<Member>, Failure> {
        let pids = self.cgroups.own_pids(cgroup).unwrap_or_default();
        let mut members = Vec::with_capacity(pids.len());
        for pid in pids {
            if let Some(stat) = self.proc.stat(pid).map_err(call::unreadable)?
                && !is_leaving(&stat)
            {
                members.push(Member {
                    id: ProcId {
                        pid,
                        start: stat.start,
                    },
                    ppid: stat.ppid,
                });
            }
        }
        Ok(members)
    }

    /// Makes the scope, or joins the one of that very name: the same tree was here before, and a part of
    /// it still is, or systemd has not yet heard that it left.
    async fn start_or_join(&self, spec: &Spec, held: &Held) -> Result<String, Failure> {
        let expectation = self.signals.expect(&spec.name);
        let deadline = Instant::now() + call::UNLOAD;
        loop {
            match self.start(spec, held).await {
                Ok(cgroup) => return Ok(cgroup),
                Err(NotStarted::Exists) if Instant::now() < deadline => {}
                Err(other) => return Err(other.into_failure(&spec.name)),
            }
            if self.populated(&self.cgroup_of(spec))
                && let Some(cgroup) = self.join(spec, held.id).await?
            {
                return Ok(cgroup);
            }
            let mut seen = expectation.seen();
            expectation.news(&mut seen, call::LOOK).await;
        }
    }

    /// Puts the root into a scope that exists; none when that ended meanwhile.
    async fn join(&self, spec: &Spec, root: ProcId) -> Result<Option<String>, Failure> {
        let cgroup = self.cgroup_of(spec);
        let target = Target {
            unit: spec.name.clone(),
            subcgroup: String::new(),
            cgroup: cgroup.clone(),
        };
        let mut left = Vec::new();
        let mut asked = false;
        let moved = self
            .attach_all(&target, &mut left, |_| {
                let first = !std::mem::replace(&mut asked, true);
                Ok(if first { vec![root] } else { Vec::new() })
            })
            .await;
        let moved = match moved {
            Ok(moved) => moved,
            Err(NotAttached::Target(_)) => return Ok(None),
            Err(NotAttached::Failed(failure)) => return Err(failure),
        };
        match left.pop() {
            _ if moved.contains(&root) => Ok(Some(cgroup)),
            Some(left) => Err(Failure::SystemdRefused(format!(
                "{} exists already, and {}",
                spec.name, left.why
            ))),
            None => Err(super::hold::gone(root)),
        }
    }
}

/// A source, and what the new scope takes over from it.
pub(super) struct Found {
    pub source: Source,
    pub ties: Ties,
    /// The unit that the process is in now, which is not the source for a workload of ours.
    pub view: Option<crate::units::UnitView>,
}

fn now_usec() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
