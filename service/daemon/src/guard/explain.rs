//! From the engine's explanation to what the bus tells.

use std::collections::HashMap;

use guard_policy::engine::explain::{self, Counters, Noted, Question};
use guard_policy::printable::command_line;
use guard_system::mover::{Found, Route, SourceKind};
use workload_guard_dbus::names;
use workload_guard_dbus::types::{Explained, Verdict};
use zvariant::{OwnedValue, Str};

use super::Guard;

impl Guard {
    /// Why a process is where it is.
    pub(super) fn explain(&self, found: Found) -> Explained {
        let route = self.route_in(&found.cgroup);
        let question = Question {
            id: found.id,
            watched: self.watched_unit_of(&found.cgroup),
            noted: route.map(|route| self.noted(route)),
            cgroup: found.cgroup,
            facts: found.facts,
        };
        let told = self.engine.explain(&question, self.now());
        let text = |text: String| OwnedValue::from(Str::from(text));
        let command = match self.proc.argv(question.id.pid) {
            Ok(Some(argv)) => command_line(&argv),
            _ => String::new(),
        };
        let mut details = HashMap::from([
            ("pid".to_owned(), question.id.pid.into()),
            ("command".to_owned(), text(command)),
            ("control_group".to_owned(), text(question.cgroup)),
        ]);
        let mut add = |key: &str, value: Option<OwnedValue>| {
            details.extend(value.map(|value| (key.to_owned(), value)));
        };
        let throttled = question.noted.as_ref().and_then(|noted| noted.throttled);
        add("throttled_usec", throttled.map(OwnedValue::from));
        let path = told.unit.as_deref().map(names::workload_path);
        add("workload", path.map(|path| path.into_inner().into()));
        add("rule", told.rule.map(text));
        add("hold", told.hold.map(OwnedValue::from));
        if let Some(Counters {
            cpu,
            threshold,
            samples,
            needed,
        }) = told.counters
        {
            add("cpu", cpu.map(OwnedValue::from));
            add("threshold", Some(threshold.into()));
            add("samples", Some(samples.into()));
            add("samples_needed", Some(needed.into()));
        }
        (verdict(told.verdict).to_string(), told.sentences, details)
    }

    fn route_in(&self, cgroup: &str) -> Option<&Route> {
        let unit = self.engine.workload_of(cgroup)?;
        self.routes.get(unit).map(|record| &record.route)
    }

    fn watched_unit_of(&self, cgroup: &str) -> Option<String> {
        let cgroups = &self.health.inspection().cgroups;
        let holds = |unit: &&String| {
            let rest = cgroups
                .get(*unit)
                .and_then(|parent| cgroup.strip_prefix(parent.as_str()));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.config
            .settings
            .watch
            .parent_units
            .iter()
            .find(holds)
            .cloned()
    }

    fn noted(&self, route: &Route) -> Noted {
        let source = &route.source;
        let ended =
            source.kind == SourceKind::Scope && self.cgroups.populated(&source.cgroup).is_none();
        let place = match (source.unit.as_str(), source.cgroup.as_str()) {
            ("", "") => "somewhere that is not known any more",
            ("", cgroup) => cgroup,
            (unit, _) => unit,
        };
        Noted {
            why: route.why.clone(),
            source: place.to_owned(),
            source_ended: ended,
            throttled: self.cgroups.throttled_usec(&route.cgroup),
        }
    }
}

fn verdict(verdict: explain::Verdict) -> Verdict {
    match verdict {
        explain::Verdict::Routed => Verdict::Routed,
        explain::Verdict::Placed => Verdict::Placed,
        explain::Verdict::Moving => Verdict::Moving,
        explain::Verdict::Due => Verdict::Due,
        explain::Verdict::Counting => Verdict::Counting,
        explain::Verdict::Calm => Verdict::Calm,
        explain::Verdict::Resting => Verdict::Resting,
        explain::Verdict::Held => Verdict::Held,
        explain::Verdict::Excluded => Verdict::Excluded,
        explain::Verdict::NeverMoved => Verdict::NeverMoved,
        explain::Verdict::OutOfReach => Verdict::OutOfReach,
        explain::Verdict::NotWatched => Verdict::NotWatched,
    }
}
