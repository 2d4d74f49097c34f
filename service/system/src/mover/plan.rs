//! Which way back there is. Pure.

use crate::units::UnitView;

use super::record::{Source, SourceKind};

/// A way back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// The source lives and takes processes: attach to it.
    Attach,
    /// The source was a scope and is gone: make it anew. With `detour` it is still loaded, pinned by our
    /// tie: only when our scope is gone can its name be used again.
    Recreate {
        /// By way of a scope without a tie.
        detour: bool,
    },
    /// A scope of ours stands in for the source.
    Return {
        /// Beside a source that lives, and tied to it.
        tied: bool,
        /// Why it is not the source itself.
        why: String,
    },
}

/// Decides by what the source unit is now (`view`; none when there never was one) and the workload's
/// own scope, `workload`.
pub fn plan(source: &Source, view: Option<&UnitView>, workload: &str) -> Plan {
    let standing_in = |tied, why: String| Plan::Return { tied, why };
    let Some(view) = view else {
        let why = match source.cgroup.as_str() {
            "" => "where it came from is not known".to_owned(),
            cgroup => format!("systemd's user manager puts nothing back into {cgroup}"),
        };
        return standing_in(false, why);
    };
    let unit = view.name();
    if view.alive() {
        return match source.kind {
            SourceKind::Other => standing_in(false, format!("{unit} takes no processes back")),
            _ if view.delegated() => Plan::Attach,
            _ => standing_in(
                true,
                format!("{unit} is not delegated, so systemd puts no process back into it"),
            ),
        };
    }
    if view.text("ActiveState") == "deactivating" {
        return standing_in(false, format!("{unit} is being stopped"));
    }
    match source.kind {
        SourceKind::Scope => {}
        _ => return standing_in(false, format!("{unit} has ended")),
    }
    if let Some(other) = pinned_by(view, workload) {
        return standing_in(
            false,
            format!("{unit} has ended, and its name is held by {other} until that ends"),
        );
    }
    Plan::Recreate {
        detour: view.loaded(),
    }
}

/// A unit other than `workload` whose dependency keeps `view` loaded.
pub fn pinned_by(view: &UnitView, workload: &str) -> Option<String> {
    ["ConsistsOf", "RequiredBy", "BoundBy", "PropagatesStopTo"]
        .iter()
        .flat_map(|property| view.list(property))
        .find(|name| name != workload)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use zvariant::{OwnedValue, Value};

    use super::*;
    use crate::mover::settings::SavedSettings;
    use crate::mover::ties::Ties;

    const W: &str = "lwg-heavy-routed-1-2.scope";

    fn source(unit: &str) -> Source {
        Source {
            cgroup: format!("/app.slice/{unit}"),
            unit: unit.to_owned(),
            subcgroup: String::new(),
            slice: "app.slice".to_owned(),
            kind: SourceKind::of(unit),
            delegated: true,
            saved: SavedSettings::default(),
            ties: Ties::default(),
        }
    }

    fn view(name: &str, active: &'static str, more: &[(&str, Value<'static>)]) -> UnitView {
        let mut properties = HashMap::new();
        let mut put = |name: &str, value: &Value<'static>| {
            let value: OwnedValue = value.try_to_owned().expect("no file descriptor in it");
            properties.insert(name.to_owned(), value);
        };
        put("ActiveState", &Value::from(active));
        put("LoadState", &Value::from("loaded"));
        for (name, value) in more {
            put(name, value);
        }
        UnitView::new(name, properties)
    }

    fn way(view: &UnitView) -> Plan {
        plan(&source(view.name()), Some(view), W)
    }

    #[test]
    fn a_living_source_is_attached_to_when_it_is_delegated() {
        assert_eq!(
            way(&view(
                "a.scope",
                "active",
                &[("Delegate", Value::from(true))]
            )),
            Plan::Attach
        );
        assert_eq!(
            way(&view(
                "a.service",
                "active",
                &[("Delegate", Value::from(true))]
            )),
            Plan::Attach
        );
        assert!(matches!(
            way(&view("a.scope", "active", &[])),
            Plan::Return { tied: true, .. }
        ));
    }

    #[test]
    fn a_dead_scope_is_made_anew_and_a_dead_service_is_not() {
        let pinned = view(
            "a.scope",
            "inactive",
            &[("ConsistsOf", Value::from(vec![W]))],
        );
        assert_eq!(way(&pinned), Plan::Recreate { detour: true });
        let gone = view(
            "a.scope",
            "inactive",
            &[("LoadState", Value::from("not-found"))],
        );
        assert_eq!(way(&gone), Plan::Recreate { detour: false });
        assert!(matches!(
            way(&view("a.service", "inactive", &[])),
            Plan::Return { tied: false, .. }
        ));
        assert!(matches!(
            way(&view("a.scope", "deactivating", &[])),
            Plan::Return { tied: false, .. }
        ));
    }

    #[test]
    fn a_name_that_another_workload_holds_is_not_waited_for() {
        let pinned = view(
            "a.scope",
            "inactive",
            &[(
                "ConsistsOf",
                Value::from(vec![W, "lwg-heavy-routed-7-8.scope"]),
            )],
        );
        let Plan::Return { tied: false, why } = way(&pinned) else {
            panic!("a return scope was to be expected");
        };
        assert!(why.contains("lwg-heavy-routed-7-8.scope"), "{why}");
    }

    #[test]
    fn without_a_source_unit_there_is_still_a_home() {
        let mut outside = source("");
        outside.cgroup = "/user.slice/user-1000.slice/session-3.scope".to_owned();
        assert!(matches!(
            plan(&outside, None, W),
            Plan::Return { tied: false, .. }
        ));
    }
}
