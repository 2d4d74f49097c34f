//! Processes that somebody else took out of our scopes: systemd lets anybody of the user do that.

use guard_policy::event::{Event, Workload};
use guard_policy::id::ProcId;
use guard_system::mover::Route;

use super::Guard;
use crate::journal;
use crate::record::Record;

impl Guard {
    /// What became of a workload whose scope is gone: it ended, or is somewhere else.
    pub(super) fn tell_the_end(&self, route: &Route) {
        match self.elsewhere(route) {
            Some(cgroup) => journal::moved_on(route, &cgroup),
            None => journal::ended(route),
        }
    }

    /// Gives a workload whose root was taken out the eldest of those that stayed: the root is watched
    /// where it is now like any other.
    pub(super) fn notice_taken_roots(&mut self) {
        let taken: Vec<(String, String, ProcId)> = self
            .routes
            .values()
            .map(|record| &record.route)
            .filter(|route| !self.jobs.concerns(&route.unit))
            .filter_map(|route| {
                let inside = self.scope_pids.get(&route.unit)?;
                if inside.contains(&route.root.pid) {
                    return None;
                }
                let cgroup = self.elsewhere(route)?;
                let eldest = inside
                    .iter()
                    .filter_map(|pid| self.proc.identify(*pid).ok().flatten())
                    .min_by_key(|id| (id.start, id.pid))?;
                Some((route.unit.clone(), cgroup, eldest))
            })
            .collect();
        for (unit, cgroup, root) in taken {
            let Some(Record { route, .. }) = self.routes.get_mut(&unit) else {
                continue;
            };
            journal::root_taken(route, &cgroup, root);
            route.root = root;
            let workload = Workload {
                unit,
                class: route.class.clone(),
                root,
                placement: route.placement,
            };
            self.decide(Event::Adopted(workload));
        }
    }

    /// Where the root of a workload is, if it lives outside of the scope.
    fn elsewhere(&self, route: &Route) -> Option<String> {
        let cgroup = self.proc.cgroup(route.root.pid)?;
        // After the read, so that it was this process's.
        let alive = self.proc.is_alive(route.root).unwrap_or(false);
        let inside = cgroup
            .strip_prefix(route.cgroup.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        (alive && !inside).then_some(cgroup)
    }
}
