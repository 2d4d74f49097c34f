//! Back to the source, or as close to it as systemd lets us.

use std::time::Instant;

use guard_policy::action::Failure;
use guard_policy::id::ProcId;
use workload_guard_dbus::scope::{Origin, ScopeName};

use crate::units::UnitView;
use crate::watch::Expectation;

use super::Mover;
use super::attach::{NotAttached, Target};
use super::call;
use super::hold::{Held, is_leaving};
use super::place::cgroup_of;
use super::plan::{Plan, pinned_by, plan};
use super::record::{Arrival, Left, Route, SourceKind};
use super::scope::{NotStarted, Spec};
use super::settings::SettingValue;
use super::ties::Ties;
use super::why;

/// A recovery under way.
struct Trip<'a> {
    route: &'a Route,
    /// The name of our scope, in parts.
    name: ScopeName,
    /// Groups that processes are still to be taken from.
    from: Vec<String>,
    /// Everybody who was moved.
    moved: Vec<ProcId>,
    left: Vec<Left>,
}

impl Mover {
    /// Brings a workload back to its source. `Err` means that it is where it was.
    ///
    /// A recovery that was cut off, by a kill of the guard, is taken up where it was: processes in the
    /// workload's passing scope count as its own.
    pub async fn recover(&self, route: &Route) -> Result<Arrival, Failure> {
        let name: ScopeName = route.unit.parse().map_err(|_| {
            Failure::NoSuchWorkload(format!("{} is no scope of the guard's", route.unit))
        })?;
        let mut trip = Trip {
            route,
            from: vec![route.cgroup.clone(), self.passing(route, &name).1],
            name,
            moved: Vec::new(),
            left: Vec::new(),
        };
        if self.travellers(&mut trip)?.is_empty() && trip.left.is_empty() {
            self.stop_empty(&route.unit).await?;
            return Err(Failure::NoSuchProcess(format!("{} has ended", route.unit)));
        }
        // From before the first move, so that no removal is missed.
        let removal = self.signals.expect(&route.source.unit);
        let (view, mut way) = self.way(route, &removal).await?;
        if way == Plan::Attach {
            match self.attach_home(&mut trip).await {
                Ok(cgroup) => return self.arrived(trip, cgroup, None, String::new()),
                Err(NotAttached::Failed(failure)) if trip.moved.is_empty() => return Err(failure),
                Err(error) => {
                    let why = error.into_failure().to_string();
                    // It may have ended just now.
                    way = match self.way(route, &removal).await?.1 {
                        Plan::Attach => Plan::Return { tied: true, why },
                        other => other,
                    };
                }
            }
        }
        if let Plan::Recreate { detour } = way {
            let unit = &route.source.unit;
            match self.recreate(&mut trip, detour, &removal).await {
                Ok(cgroup) => return self.arrived(trip, cgroup, None, String::new()),
                Err(failure @ Failure::NoSuchProcess(_)) => return Err(failure),
                Err(failure) => {
                    let why = format!("{unit} has ended and could not be made anew ({failure})");
                    way = Plan::Return { tied: false, why };
                }
            }
        }
        let (tied, why) = match way {
            Plan::Return { tied, why } => (tied, why),
            _ => (false, String::new()),
        };
        let ties = match view.as_ref().filter(|_| tied) {
            Some(view) => Ties::to(view),
            None => route.source.ties.clone(),
        };
        match self.stand_in(&mut trip, ties).await {
            Ok((unit, cgroup)) => self.arrived(trip, cgroup, Some(unit), why),
            // Half-way is a home too, and the only one there is.
            Err(failure) if self.populated(&trip.from[1]) => {
                let (unit, cgroup) = self.passing(route, &trip.name);
                let why = format!("{why}; no return scope: {failure}");
                self.arrived(trip, cgroup, Some(unit), why)
            }
            Err(failure) => Err(failure),
        }
    }

    /// Looks at the source, and which way there is to it.
    async fn way(
        &self,
        route: &Route,
        removal: &Expectation,
    ) -> Result<(Option<UnitView>, Plan), Failure> {
        let source = &route.source;
        let deadline = Instant::now() + call::UNLOAD;
        loop {
            let view = match source.unit.as_str() {
                "" => None,
                unit => Some(self.view(unit).await?),
            };
            let settling = match &view {
                Some(view) if source.kind == SourceKind::Scope => {
                    self.is_settling(view, &route.unit).await?
                }
                _ => false,
            };
            if !settling || Instant::now() > deadline {
                let way = plan(source, view.as_ref(), &route.unit);
                return Ok((view, way));
            }
            let mut seen = removal.seen();
            removal.news(&mut seen, call::LOOK).await;
        }
    }

    /// Whether systemd has yet to hear that a scope was emptied: the source itself, which seems alive
    /// until then, or a workload of ours that came out of it and holds its name.
    async fn is_settling(&self, source: &UnitView, workload: &str) -> Result<bool, Failure> {
        if source.alive() {
            return Ok(!self.populated(source.text("ControlGroup")));
        }
        match pinned_by(source, workload) {
            Some(other) if other.parse::<ScopeName>().is_ok() => {
                let other = self.view(&other).await?;
                Ok(!self.populated(other.text("ControlGroup")))
            }
            _ => Ok(false),
        }
    }

    /// Attaches everything to the living source.
    async fn attach_home(&self, trip: &mut Trip<'_>) -> Result<String, NotAttached> {
        let source = &trip.route.source;
        let target = Target {
            unit: source.unit.clone(),
            subcgroup: source.subcgroup.clone(),
            cgroup: source.cgroup.clone(),
        };
        self.drain(trip, &target).await?;
        Ok(target.cgroup)
    }

    /// Makes the source scope anew and moves everything into it.
    async fn recreate(
        &self,
        trip: &mut Trip<'_>,
        detour: bool,
        removal: &Expectation,
    ) -> Result<String, Failure> {
        let route = trip.route;
        let unit = &route.source.unit;
        if detour {
            let (name, cgroup) = self.passing(route, &trip.name);
            let mut spec = self.stand_in_spec(trip, name.clone(), route.source.ties.clone());
            spec.set(
                "Description",
                SettingValue::Text(format!("{} on its way back", route.unit)),
            );
            self.enter_or_join(trip, &spec)
                .await
                .map_err(|error| error.into_failure(&name))?;
            let target = Target {
                unit: name,
                subcgroup: String::new(),
                cgroup,
            };
            let passing = trip.from.pop();
            let drained = self.drain(trip, &target).await;
            trip.from.extend(passing);
            drained.map_err(NotAttached::into_failure)?;
            if !self.unloaded(unit, removal).await? {
                // A failed unit stays loaded whoever lets go of it.
                let _ = call::call("ResetFailedUnit", self.manager.reset_failed_unit(unit)).await;
            }
        }
        let mut spec = Spec {
            name: unit.clone(),
            slice: route.source.slice.clone(),
            ties: route.source.ties.clone(),
            settings: route.source.saved.settings.clone(),
            runtime: route.source.saved.runtime_left(super::monotonic_usec()),
        };
        if !route.source.saved.known {
            // Better than the unit's name, which is what systemd would show.
            spec.set("Description", SettingValue::Text(route.command.clone()));
        }
        let deadline = Instant::now() + call::UNLOAD;
        let mut reset = false;
        let cgroup = loop {
            match self.enter(trip, &spec).await {
                Ok(cgroup) => break cgroup,
                Err(NotStarted::Exists) if Instant::now() < deadline => {
                    let mut seen = removal.seen();
                    if !removal.news(&mut seen, call::LOOK).await
                        && !std::mem::replace(&mut reset, true)
                    {
                        let _ = call::call("ResetFailedUnit", self.manager.reset_failed_unit(unit))
                            .await;
                    }
                }
                Err(error) => return Err(error.into_failure(unit)),
            }
        };
        let target = Target {
            unit: unit.clone(),
            subcgroup: String::new(),
            cgroup: cgroup.clone(),
        };
        self.drain(trip, &target)
            .await
            .map_err(NotAttached::into_failure)?;
        Ok(cgroup)
    }

    /// Makes a scope of ours that stands in for the source, and moves everything into it.
    async fn stand_in(&self, trip: &mut Trip<'_>, ties: Ties) -> Result<(String, String), Failure> {
        let name = ScopeName {
            origin: Origin::Returned,
            ..trip.name.clone()
        }
        .to_string();
        let mut spec = self.stand_in_spec(trip, name.clone(), ties);
        let cgroup = loop {
            match self.enter_or_join(trip, &spec).await {
                Ok(cgroup) => break cgroup,
                // The slice may be masked; where desktops put programs is there on every system.
                Err(NotStarted::Refused(failure))
                    if spec.slice != super::source::FALLBACK_SLICE =>
                {
                    log::warn!("no return scope in {}: {failure}", spec.slice);
                    spec.slice = super::source::FALLBACK_SLICE.to_owned();
                }
                Err(error) => return Err(error.into_failure(&name)),
            }
        };
        let target = Target {
            unit: name.clone(),
            subcgroup: String::new(),
            cgroup: cgroup.clone(),
        };
        self.drain(trip, &target)
            .await
            .map_err(NotAttached::into_failure)?;
        Ok((name, cgroup))
    }

    fn stand_in_spec(&self, trip: &Trip<'_>, name: String, ties: Ties) -> Spec {
        let route = trip.route;
        let mut spec = Spec {
            name,
            slice: route.source.slice.clone(),
            ties,
            settings: route.source.saved.settings.clone(),
            runtime: route.source.saved.runtime_left(super::monotonic_usec()),
        };
        let text = why::description(&route.command, &route.class, "returned");
        spec.set("Description", SettingValue::Text(text));
        spec.set("SendSIGHUP", SettingValue::Flag(true));
        spec
    }

    /// Makes a scope around one of the travellers, the root where it lives.
    async fn enter(&self, trip: &mut Trip<'_>, spec: &Spec) -> Result<String, NotStarted> {
        loop {
            let travellers = self.travellers(trip)?;
            let root = trip.route.root;
            let first = travellers
                .iter()
                .find(|id| **id == root)
                .or(travellers.first());
            let Some(&first) = first else {
                return Err(NotStarted::Gone(Failure::NoSuchProcess(format!(
                    "{} has ended",
                    trip.route.unit
                ))));
            };
            let held = match Held::take(&self.proc, first) {
                Ok(held) => held,
                // It ended since; the list is shorter by it now.
                Err(Failure::NoSuchProcess(_)) => continue,
                Err(failure) => return Err(failure.into()),
            };
            match self.start(spec, &held).await {
                Ok(cgroup) => {
                    trip.moved.push(first);
                    return Ok(cgroup);
                }
                Err(NotStarted::Gone(_)) => {}
                Err(other) => return Err(other),
            }
        }
    }

    /// The same for a scope of ours that may be there already: from a recovery that was cut off, or from
    /// an earlier return of a part of the tree. It may still wait for its start, or be on its way out.
    async fn enter_or_join(&self, trip: &mut Trip<'_>, spec: &Spec) -> Result<String, NotStarted> {
        let expectation = self.signals.expect(&spec.name);
        let deadline = Instant::now() + call::UNLOAD;
        loop {
            match self.enter(trip, spec).await {
                Err(NotStarted::Exists) if Instant::now() < deadline => {}
                other => return other,
            }
            let cgroup = self.cgroup_of(spec);
            if self.view(&spec.name).await?.alive() && self.populated(&cgroup) {
                return Ok(cgroup);
            }
            let mut seen = expectation.seen();
            expectation.news(&mut seen, call::LOOK).await;
        }
    }

    /// Attaches everything that is still in the groups of the trip.
    async fn drain(&self, trip: &mut Trip<'_>, target: &Target) -> Result<(), NotAttached> {
        let mut left = std::mem::take(&mut trip.left);
        let from = trip.from.clone();
        let result = self
            .attach_all(target, &mut left, |left| self.movable(&from, left))
            .await;
        trip.left = left;
        trip.moved.extend(result?);
        Ok(())
    }

    /// Who is still to be moved.
    fn travellers(&self, trip: &mut Trip<'_>) -> Result<Vec<ProcId>, Failure> {
        let from = trip.from.clone();
        let mut found = self.movable(&from, &mut trip.left)?;
        found.retain(|id| !trip.left.iter().any(|left| left.process == *id));
        Ok(found)
    }

    /// The living processes of some groups and below; those of other users, whom we never move, are
    /// added to `left`.
    fn movable(&self, groups: &[String], left: &mut Vec<Left>) -> Result<Vec<ProcId>, Failure> {
        let mut found = Vec::new();
        for group in groups {
            for pid in self.cgroups.pids(group).unwrap_or_default() {
                let Some(stat) = self.proc.stat(pid).map_err(call::unreadable)? else {
                    continue;
                };
                if is_leaving(&stat) {
                    continue;
                }
                let id = ProcId {
                    pid,
                    start: stat.start,
                };
                let Some(uids) = self.proc.uids(pid).map_err(call::unreadable)? else {
                    continue;
                };
                match uids.other_than(self.guard.uid) {
                    None => found.push(id),
                    Some(_) if left.iter().any(|left| left.process == id) => {}
                    Some(uid) => left.push(Left {
                        process: id,
                        why: format!("it runs as user {uid}"),
                    }),
                }
            }
        }
        Ok(found)
    }

    /// Name and group of the scope that a recovery passes through.
    fn passing(&self, route: &Route, name: &ScopeName) -> (String, String) {
        let unit = ScopeName {
            origin: Origin::Passing,
            ..name.clone()
        }
        .to_string();
        let cgroup = cgroup_of(&self.root, &route.source.slice, &unit);
        (unit, cgroup)
    }

    /// Reads everybody back and sums up.
    fn arrived(
        &self,
        mut trip: Trip<'_>,
        cgroup: String,
        unit: Option<String>,
        mut note: String,
    ) -> Result<Arrival, Failure> {
        let home = &trip.route.source.cgroup;
        let mut exact = unit.is_none();
        trip.moved.sort_unstable();
        trip.moved.dedup();
        for &id in &trip.moved {
            let now = self.proc.cgroup(id.pid);
            let stat = self.proc.stat(id.pid).map_err(call::unreadable)?;
            let stays = stat.is_some_and(|stat| stat.start == id.start && !is_leaving(&stat));
            if stays && now.as_deref() != Some(home.as_str()) {
                exact = false;
            }
        }
        trip.left
            .retain(|left| self.proc.is_alive(left.process).unwrap_or(true));
        if let Some(left) = trip.left.first() {
            exact = false;
            let more = match trip.left.len() {
                1 => String::new(),
                n => format!(" (and {} more)", n - 1),
            };
            add(
                &mut note,
                &format!("process {} stayed: {}{more}", left.process, left.why),
            );
        }
        if unit.is_none() && &cgroup != home {
            add(
                &mut note,
                &format!("the inner group {} is gone", trip.route.source.subcgroup),
            );
        }
        Ok(Arrival {
            cgroup,
            exact,
            note,
            unit,
            processes: trip.moved,
        })
    }
}

fn add(note: &mut String, more: &str) {
    if !note.is_empty() {
        note.push_str("; ");
    }
    note.push_str(more);
}
