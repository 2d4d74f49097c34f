//! Names of the transient scopes that hold workloads.
//!
//! The name alone tells what a scope is, so that a guard that lost its state file, and a person who
//! reads `systemctl --user status`, both know: `lwg-<class>-<origin>-<pid>-<start>.scope`.

use std::fmt;
use std::str::FromStr;

/// What every scope of ours starts with.
pub const PREFIX: &str = "lwg-";
/// For `ListUnitsByPatterns`.
pub const PATTERN: &str = "lwg-*.scope";
/// The longest class name, in bytes: it keeps scope names far below systemd's limit of 255.
pub const MAX_CLASS_NAME: usize = 32;

/// How the processes of a scope came to be in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// By detection, or by `Route`: it goes back when it calms down.
    Routed,
    /// By a person or an app (`run`, `protect`, `Attach`): it stays until it is released.
    Placed,
    /// Brought back where the exact source could not be had.
    Returned,
    /// A stop of a few milliseconds on the way back to a source that a tie still pins.
    Passing,
}

impl Origin {
    /// Its spelling in a scope name.
    pub fn as_str(self) -> &'static str {
        match self {
            Origin::Routed => "routed",
            Origin::Placed => "placed",
            Origin::Returned => "returned",
            Origin::Passing => "passing",
        }
    }
}

/// A parsed scope name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ScopeName {
    /// The class whose slice the scope is in; the class it came back from for `Returned` and `Passing`.
    pub class: String,
    /// How its processes came to be in it.
    pub origin: Origin,
    /// PID of the root process when the scope was made.
    pub pid: u32,
    /// Start time of the root process, in clock ticks after boot (`/proc/PID/stat`, field 22).
    pub start: u64,
}

impl fmt::Display for ScopeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ScopeName {
            class,
            origin,
            pid,
            start,
        } = self;
        write!(f, "{PREFIX}{class}-{}-{pid}-{start}.scope", origin.as_str())
    }
}

/// The unit is not a scope of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotOurs;

impl FromStr for ScopeName {
    type Err = NotOurs;

    fn from_str(unit: &str) -> Result<Self, NotOurs> {
        let inner = unit
            .strip_prefix(PREFIX)
            .and_then(|rest| rest.strip_suffix(".scope"))
            .ok_or(NotOurs)?;
        let mut parts = inner.split('-');
        let mut next = || parts.next().ok_or(NotOurs);
        let class = next()?;
        let origin = match next()? {
            "routed" => Origin::Routed,
            "placed" => Origin::Placed,
            "returned" => Origin::Returned,
            "passing" => Origin::Passing,
            _ => return Err(NotOurs),
        };
        let pid = next()?.parse().map_err(|_| NotOurs)?;
        let start = next()?.parse().map_err(|_| NotOurs)?;
        if parts.next().is_some() || !is_class_name(class) {
            return Err(NotOurs);
        }
        Ok(ScopeName {
            class: class.to_owned(),
            origin,
            pid,
            start,
        })
    }
}

/// Whether `name` can be a class: lower-case letters, digits and `_`, at most [`MAX_CLASS_NAME`] bytes.
///
/// No dash, since it parts the fields of a scope name.
pub fn is_class_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= MAX_CLASS_NAME
        && name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_name_survives_the_round_trip() {
        for origin in [
            Origin::Routed,
            Origin::Placed,
            Origin::Returned,
            Origin::Passing,
        ] {
            let name = ScopeName {
                class: "heavy".into(),
                origin,
                pid: 4242,
                start: 99_887_766,
            };
            assert_eq!(name.to_string().parse(), Ok(name));
        }
    }

    #[test]
    fn the_longest_name_is_far_below_what_systemd_takes() {
        let name = ScopeName {
            class: "c".repeat(MAX_CLASS_NAME),
            origin: Origin::Returned,
            pid: u32::MAX,
            start: u64::MAX,
        };
        assert!(name.to_string().len() < 200);
    }

    #[test]
    fn foreign_units_are_not_ours() {
        for unit in [
            "app-foo.scope",
            "lwg-heavy-routed-1.scope",
            "lwg-heavy-routed-1-2-3.scope",
            "lwg-heavy-moved-1-2.scope",
            "lwg-heavy-routed-x-2.scope",
            "lwg-heavy-routed-1-2.service",
            "lwg--routed-1-2.scope",
        ] {
            assert_eq!(unit.parse::<ScopeName>(), Err(NotOurs), "{unit}");
        }
    }
}
