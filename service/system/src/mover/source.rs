//! Where a process is, as something to come back to.

use guard_policy::action::Failure;
use guard_policy::id::ProcId;
use workload_guard_dbus::scope::{Origin, ScopeName};

use crate::units::{self, UnitView};

use super::Mover;
use super::call;
use super::hold::gone;
use super::place::place;
use super::record::{Route, Source, SourceKind};
use super::route::Found;
use super::settings::SavedSettings;
use super::ties::Ties;

/// Where work goes whose slice is not known: where desktops put programs (systemd.special(7)).
pub(super) const FALLBACK_SLICE: &str = "app.slice";

impl Mover {
    /// The control group that a process is in.
    pub(super) fn cgroup(&self, id: ProcId) -> Result<String, Failure> {
        let cgroup = self.proc.cgroup(id.pid);
        if !self.proc.is_alive(id).map_err(call::unreadable)? {
            return Err(gone(id));
        }
        cgroup.ok_or_else(|| gone(id))
    }

    /// Describes the source that is the group `from`. One round trip.
    pub(super) async fn source_of(
        &self,
        from: &str,
        earlier: Option<&Route>,
    ) -> Result<Found, Failure> {
        let Some(place) = place(&self.root, from) else {
            return Ok(Found {
                source: nowhere(from),
                ties: Ties::default(),
                view: None,
            });
        };
        let Some(unit) = place.unit else {
            let mut source = nowhere(from);
            if place.slice != "-.slice" {
                source.slice = place.slice;
            }
            return Ok(Found {
                source,
                ties: Ties::default(),
                view: None,
            });
        };
        let view = self.view(&unit).await?;
        if is_workload(&unit) {
            // Out of one workload into another: the way back is that of the first.
            let (source, ties) = match earlier.filter(|route| route.unit == unit) {
                Some(route) => (route.source.clone(), route.ties.clone()),
                None => self.tied_source(&view).await?,
            };
            return Ok(Found {
                source,
                ties,
                view: Some(view),
            });
        }
        // A group below the manager that it knows nothing of is no unit to come back to.
        let kind = if view.loaded() {
            SourceKind::of(&unit)
        } else {
            SourceKind::Other
        };
        let source = Source {
            cgroup: from.to_owned(),
            subcgroup: place.subcgroup,
            slice: place.slice,
            kind,
            delegated: view.delegated(),
            saved: SavedSettings::of(&view),
            ties: Ties::of(&view),
            unit,
        };
        let ties = match kind {
            SourceKind::Other => source.ties.clone(),
            _ => Ties::to(&view),
        };
        Ok(Found {
            source,
            ties,
            view: Some(view),
        })
    }

    /// What is still known of the source of a workload: the tie names its unit, and keeps it loaded with
    /// all its settings even when it ended.
    pub(super) async fn tied_source(&self, workload: &UnitView) -> Result<(Source, Ties), Failure> {
        let ties = Ties::of(workload);
        let mut views = Vec::new();
        for name in ties.part_of.iter().chain(&ties.stop_propagated_from) {
            if SourceKind::of(name) != SourceKind::Other && !is_workload(name) {
                views.push(self.view(name).await?);
            }
        }
        let source = match which_source(&ties, &views) {
            Some(view) => {
                let slice = match view.text("Slice") {
                    "" => FALLBACK_SLICE,
                    slice => slice,
                };
                Source {
                    cgroup: super::place::cgroup_of(&self.root, slice, view.name()),
                    unit: view.name().to_owned(),
                    subcgroup: String::new(),
                    slice: slice.to_owned(),
                    kind: SourceKind::of(view.name()),
                    delegated: view.delegated(),
                    saved: SavedSettings::of(view),
                    ties: Ties::of(view),
                }
            }
            None => Source {
                ties: ties.clone(),
                ..nowhere("")
            },
        };
        Ok((source, ties))
    }

    pub(super) async fn view(&self, unit: &str) -> Result<UnitView, Failure> {
        self.ask("GetAll", async || units::view(&self.conn, unit).await)
            .await
            .map_err(|error| call::failure(&format!("reading {unit}"), &error))
    }
}

/// The candidate whose own ties make up the rest: a scope is tied to its source and to what that is
/// tied to.
fn which_source<'a>(ties: &Ties, candidates: &'a [UnitView]) -> Option<&'a UnitView> {
    candidates.iter().max_by_key(|view| {
        let own = Ties::of(view);
        let covered = ties
            .part_of
            .iter()
            .chain(&ties.stop_propagated_from)
            .filter(|name| own.reach(name))
            .count();
        (covered, view.loaded())
    })
}

/// Whether a unit is a workload, or a stop on its way; a returned scope is a home like any other.
pub(super) fn is_workload(unit: &str) -> bool {
    unit.parse::<ScopeName>()
        .is_ok_and(|name| name.origin != Origin::Returned)
}

fn nowhere(cgroup: &str) -> Source {
    Source {
        cgroup: cgroup.to_owned(),
        unit: String::new(),
        subcgroup: String::new(),
        slice: FALLBACK_SLICE.to_owned(),
        kind: SourceKind::Other,
        delegated: false,
        saved: SavedSettings::default(),
        ties: Ties::default(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use zvariant::{OwnedValue, Value};

    use super::*;

    fn unit(name: &str, part_of: &[&'static str]) -> UnitView {
        let mut properties = HashMap::new();
        let value = Value::from(part_of.to_vec());
        let value: OwnedValue = value.try_to_owned().expect("no file descriptor in it");
        properties.insert("PartOf".to_owned(), value);
        UnitView::new(name, properties)
    }

    #[test]
    fn the_source_is_told_from_what_it_is_tied_to() {
        let ties = Ties {
            part_of: vec!["session.service".into(), "term.scope".into()],
            stop_propagated_from: Vec::new(),
        };
        let views = [
            unit("session.service", &[]),
            unit("term.scope", &["session.service"]),
        ];
        assert_eq!(
            which_source(&ties, &views).map(UnitView::name),
            Some("term.scope")
        );
        assert!(which_source(&ties, &[]).is_none());
    }

    #[test]
    fn a_returned_scope_is_a_home() {
        assert!(is_workload("lwg-heavy-routed-1-2.scope"));
        assert!(!is_workload("lwg-heavy-returned-1-2.scope"));
        assert!(!is_workload("vte-1.scope"));
    }
}
