//! Ties: stopping where work came from must still stop the work.
//!
//! Measured on systemd 252, 257 and 262. With StopPropagatedFrom= or BindsTo= on a scope, moving the
//! scope's last process out ends the scope, and that kills the moved work; PartOf= does not. For a
//! service with a live main process StopPropagatedFrom= is what comes closest to having stayed inside.
//! A tie reaches no further than one unit once that is dead, so the source's own ties are copied.
//! Ties cannot be set later.

use serde::{Deserialize, Serialize};

use crate::units::UnitView;

/// Units whose stop stops a scope.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ties {
    /// PartOf=.
    pub part_of: Vec<String>,
    /// StopPropagatedFrom=.
    pub stop_propagated_from: Vec<String>,
}

impl Ties {
    /// The ties that `unit` itself has. Requires= stops like PartOf=, BindsTo= like StopPropagatedFrom=,
    /// without starting anything when they are made anew.
    pub fn of(unit: &UnitView) -> Ties {
        let mut part_of = unit.list("PartOf");
        part_of.extend(unit.list("Requires"));
        part_of.extend(unit.list("Requisite"));
        let mut stop_propagated_from = unit.list("StopPropagatedFrom");
        stop_propagated_from.extend(unit.list("BindsTo"));
        Ties {
            part_of: tidy(part_of),
            stop_propagated_from: tidy(stop_propagated_from),
        }
    }

    /// The ties of a scope that takes work out of `source`: its own, and one to itself.
    pub fn to(source: &UnitView) -> Ties {
        let mut ties = Ties::of(source);
        let name = source.name().to_owned();
        if survives_its_processes(source) {
            ties.stop_propagated_from.push(name);
        } else {
            ties.part_of.push(name);
        }
        ties
    }

    /// Whether `unit` is among them.
    pub fn reach(&self, unit: &str) -> bool {
        self.part_of
            .iter()
            .chain(&self.stop_propagated_from)
            .any(|name| name == unit)
    }
}

/// A service that a live main process keeps up, however empty its control group.
fn survives_its_processes(unit: &UnitView) -> bool {
    unit.name().ends_with(".service")
        && unit.number("MainPID").is_some_and(|pid| pid != 0)
        // The property came with ExitType=cgroup itself (250); before, all services were `main`.
        && matches!(unit.text("ExitType"), "main" | "")
}

/// Drops what every unit has (its slice, its mounts, the targets of DefaultDependencies=).
fn tidy(mut names: Vec<String>) -> Vec<String> {
    const OF_EVERY_UNIT: [&str; 3] = ["basic.target", "sysinit.target", "shutdown.target"];
    names.retain(|name| {
        !name.ends_with(".slice")
            && !name.ends_with(".mount")
            && !OF_EVERY_UNIT.contains(&name.as_str())
    });
    names.sort_unstable();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use zvariant::{OwnedValue, Value};

    use super::*;

    fn unit(name: &str, properties: &[(&str, Value<'static>)]) -> UnitView {
        let owned: HashMap<String, OwnedValue> = properties
            .iter()
            .map(|(name, value)| {
                let value = value.try_to_owned().expect("no file descriptor in it");
                ((*name).to_owned(), value)
            })
            .collect();
        UnitView::new(name, owned)
    }

    #[test]
    fn moving_the_last_process_of_a_scope_does_not_kill_it() {
        let ties = Ties::to(&unit("a.scope", &[]));
        assert_eq!(ties.part_of, ["a.scope"]);
        assert!(ties.stop_propagated_from.is_empty());
    }

    #[test]
    fn a_service_is_tied_by_what_keeps_it_up() {
        let main = unit(
            "a.service",
            &[
                ("MainPID", Value::from(7u32)),
                ("ExitType", Value::from("main")),
            ],
        );
        assert_eq!(Ties::to(&main).stop_propagated_from, ["a.service"]);
        let by_cgroup = unit(
            "a.service",
            &[
                ("MainPID", Value::from(7u32)),
                ("ExitType", Value::from("cgroup")),
            ],
        );
        assert_eq!(Ties::to(&by_cgroup).part_of, ["a.service"]);
        let no_main = unit(
            "a.service",
            &[
                ("MainPID", Value::from(0u32)),
                ("ExitType", Value::from("main")),
            ],
        );
        assert_eq!(Ties::to(&no_main).part_of, ["a.service"]);
    }

    #[test]
    fn the_ties_of_the_source_are_copied_and_its_slice_is_not() {
        let source = unit(
            "a.scope",
            &[
                ("PartOf", Value::from(vec!["graphical-session.target"])),
                (
                    "Requires",
                    Value::from(vec!["app.slice", "basic.target", "-.mount", "db.service"]),
                ),
                ("BindsTo", Value::from(vec!["dev-x.device"])),
            ],
        );
        let ties = Ties::to(&source);
        assert_eq!(
            ties.part_of,
            ["db.service", "graphical-session.target", "a.scope"]
        );
        assert_eq!(ties.stop_propagated_from, ["dev-x.device"]);
        assert!(ties.reach("a.scope") && !ties.reach("app.slice"));
    }
}
