//! What of ours is there: for the start of the daemon, and to reconcile.

use guard_policy::action::{Failure, Placement};
use guard_policy::id::ProcId;
use guard_policy::printable::command_line;
use workload_guard_dbus::scope::{Origin, PATTERN, ScopeName};
use workload_guard_dbus::systemd1::error_name;

use crate::units::error_name as name_of;

use super::Mover;
use super::call;
use super::place::cgroup_of;
use super::plan::pinned_by;
use super::record::Route;

/// A scope of ours that systemd has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveScope {
    /// Its name, in parts.
    pub name: ScopeName,
    /// Its name.
    pub unit: String,
    /// Its control group, relative to the cgroup mount; empty when it has none (any more).
    pub cgroup: String,
    /// Such as `active`.
    pub active_state: String,
    /// Who lives in it and below. An active scope without any is one that nobody entered: see
    /// [`Mover::stop_empty`].
    pub processes: Vec<ProcId>,
}

/// What became of a scope that seemed empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emptied {
    /// It had ended by itself; systemd unloads it when nothing needs its name.
    Ended,
    /// It was stopped, and is unloaded.
    Stopped,
    /// Somebody is in it, or is tied to it.
    Kept,
}

impl Mover {
    /// Every scope of ours that is loaded, in the order of its name.
    pub async fn live_scopes(&self) -> Result<Vec<LiveScope>, Failure> {
        let list = async || self.manager.list_units_by_patterns(&[], &[PATTERN]).await;
        let rows = self
            .ask("ListUnitsByPatterns", list)
            .await
            .map_err(|error| call::failure("listing the guard's scopes", &error))?;
        let ours = rows.into_iter().filter_map(|row| {
            let name: ScopeName = row.0.parse().ok()?;
            Some((name, row.0, row.3))
        });
        let mut scopes = Vec::new();
        for (name, unit, active_state) in ours {
            let view = self.view(&unit).await?;
            let cgroup = view.text("ControlGroup").to_owned();
            let processes = match cgroup.as_str() {
                "" => Vec::new(),
                group => self.inhabitants(group)?,
            };
            scopes.push(LiveScope {
                name,
                unit,
                cgroup,
                active_state,
                processes,
            });
        }
        scopes.sort_by(|a, b| a.unit.cmp(&b.unit));
        Ok(scopes)
    }

    /// Stops a scope of ours when nobody is in it, and nobody would be stopped with it.
    ///
    /// A scope that ended stays loaded while other units are tied to it, and a stop would reach those:
    /// work that was routed out of a return scope dies by a stop of that scope, though it is empty.
    pub async fn stop_empty(&self, unit: &str) -> Result<Emptied, Failure> {
        let view = self.view(unit).await?;
        if !view.loaded() || !view.alive() {
            return Ok(Emptied::Ended);
        }
        let group = match view.text("ControlGroup") {
            "" => cgroup_of(&self.root, view.text("Slice"), unit),
            group => group.to_owned(),
        };
        if self.populated(&group) || pinned_by(&view, unit).is_some() {
            return Ok(Emptied::Kept);
        }
        self.stop_and_wait(unit).await?;
        Ok(Emptied::Stopped)
    }

    /// Describes a workload whose record is lost, by what its scope tells: the tie names the source, and
    /// keeps it loaded with its settings. What was below the source's own group is not known any more.
    pub async fn rebuild(&self, live: &LiveScope, root: ProcId) -> Result<Route, Failure> {
        let view = self.view(&live.unit).await?;
        let (source, ties) = self.tied_source(&view).await?;
        let argv = self
            .proc
            .argv(root.pid)
            .map_err(call::unreadable)?
            .unwrap_or_default();
        Ok(Route {
            unit: live.unit.clone(),
            class: live.name.class.clone(),
            placement: match live.name.origin {
                Origin::Placed => Placement::Placed,
                Origin::Routed | Origin::Returned | Origin::Passing => Placement::Routed,
            },
            root,
            why: format!("found in {}", live.unit),
            command: command_line(&argv),
            since: view.number("ActiveEnterTimestamp").unwrap_or_default(),
            cgroup: live.cgroup.clone(),
            source,
            ties,
            left: Vec::new(),
        })
    }

    fn inhabitants(&self, cgroup: &str) -> Result<Vec<ProcId>, Failure> {
        let mut found = Vec::new();
        for pid in self.cgroups.pids(cgroup).unwrap_or_default() {
            if let Some(stat) = self.proc.stat(pid).map_err(call::unreadable)?
                && !stat.is_dead()
            {
                found.push(ProcId {
                    pid,
                    start: stat.start,
                });
            }
        }
        Ok(found)
    }

    /// Whether systemd has a unit of that name loaded.
    pub async fn is_loaded(&self, unit: &str) -> Result<bool, Failure> {
        let get = async || self.manager.get_unit(unit).await;
        match self.ask("GetUnit", get).await {
            Ok(_) => Ok(true),
            Err(error) if name_of(&error) == Some(error_name::NO_SUCH_UNIT) => Ok(false),
            Err(error) => Err(call::failure(&format!("looking for {unit}"), &error)),
        }
    }
}
