//! What the guard remembers of a move: plain data, which the daemon keeps in its state file.

use guard_policy::action::Placement;
use guard_policy::id::ProcId;
use serde::{Deserialize, Serialize};
use workload_guard_dbus::scope::ScopeName;

use super::settings::{SavedSettings, Setting};
use super::ties::Ties;

/// A workload: a process tree in a scope of ours, and the way back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// Its scope.
    pub unit: String,
    /// Its class.
    pub class: String,
    /// Routed (comes back when calm) or placed (stays).
    #[serde(with = "placement")]
    pub placement: Placement,
    /// Root of the tree.
    pub root: ProcId,
    /// Why it was moved, for people.
    pub why: String,
    /// Command line of the root when it was moved, made printable.
    pub command: String,
    /// When it was moved, in microseconds since 1970.
    pub since: u64,
    /// Control group of the scope, relative to the cgroup mount.
    pub cgroup: String,
    /// Where it came from.
    pub source: Source,
    /// What stops it together with its source.
    #[serde(default)]
    pub ties: Ties,
    /// Members of the tree that were not moved, at most [`MAX_LEFT`] of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<Left>,
}

impl Route {
    /// What in it cannot have been written by the guard, if anything: it was read from a file, and what
    /// it says is passed on to systemd, which takes a line break in a text for the end of a setting.
    pub fn unsound(&self) -> Option<&'static str> {
        let named = self.unit.parse::<ScopeName>();
        if named.is_err() || named.is_ok_and(|name| name.class != self.class) {
            return Some("the name of its scope");
        }
        if self.root.pid == 0 {
            return Some("its root");
        }
        let raw = |text: &&str| text.contains(char::is_control) || text.ends_with('\\');
        let source = &self.source;
        let ties = |ties: &'_ Ties| [ties.part_of.clone(), ties.stop_propagated_from.clone()];
        let names = [ties(&self.ties), ties(&source.ties)].concat().concat();
        let places = [
            &self.cgroup,
            &source.cgroup,
            &source.unit,
            &source.subcgroup,
            &source.slice,
        ];
        if places
            .into_iter()
            .chain(&names)
            .any(|text| raw(&text.as_str()))
        {
            return Some("the name of a unit or control group");
        }
        if [&self.why, &self.command]
            .into_iter()
            .any(|text| raw(&text.as_str()))
        {
            return Some("the command or the reason");
        }
        if !source.saved.settings.iter().all(Setting::is_harmless) {
            return Some("a setting");
        }
        None
    }
}

/// The most entries of [`Route::left`].
pub const MAX_LEFT: usize = 32;

/// A process that was not moved with its tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    /// Which.
    pub process: ProcId,
    /// Why.
    pub why: String,
}

/// Where a workload came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Its control group, relative to the cgroup mount.
    pub cgroup: String,
    /// Its unit; empty when it was in none that the user manager owns.
    pub unit: String,
    /// What was below the unit's own group: empty, or absolute.
    pub subcgroup: String,
    /// The slice of the unit.
    pub slice: String,
    /// What kind of unit.
    pub kind: SourceKind,
    /// Whether the unit is delegated, so that processes can be attached to it again.
    pub delegated: bool,
    /// What a scope in its stead must be given.
    pub saved: SavedSettings,
    /// The ties that it had itself.
    #[serde(default)]
    pub ties: Ties,
}

/// What kind of unit work came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourceKind {
    /// A scope: it ends with its last process, and can be made anew.
    Scope,
    /// A service of this user manager.
    Service,
    /// Directly in a slice, another kind of unit, or outside the user manager: there is no exact way back.
    Other,
}

impl SourceKind {
    /// By the name of a unit of this user manager.
    pub fn of(unit: &str) -> SourceKind {
        if unit.ends_with(".scope") {
            SourceKind::Scope
        } else if unit.ends_with(".service") {
            SourceKind::Service
        } else {
            SourceKind::Other
        }
    }
}

/// Where a workload was brought back to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The control group, relative to the cgroup mount.
    pub cgroup: String,
    /// Every process is in the very control group that the tree came from.
    pub exact: bool,
    /// What a person should know; empty when there is nothing.
    pub note: String,
    /// The scope of ours that stands in for the source, if any.
    pub unit: Option<String>,
    /// Every process that was moved.
    pub processes: Vec<ProcId>,
}

/// [`Placement`] by the names that scope names use.
mod placement {
    use guard_policy::action::Placement;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(
        placement: &Placement,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match placement {
            Placement::Routed => "routed",
            Placement::Placed => "placed",
        })
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Placement, D::Error> {
        match String::deserialize(deserializer)?.as_str() {
            "routed" => Ok(Placement::Routed),
            "placed" => Ok(Placement::Placed),
            other => Err(D::Error::custom(format!(
                "placement is \"routed\" or \"placed\", not {other:?}"
            ))),
        }
    }
}
