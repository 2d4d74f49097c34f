//! Wire types: what travels in a message body.

use std::collections::HashMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use zvariant::{OwnedObjectPath, OwnedValue, Type, Value};

/// Declares an enum that travels as a string, with both directions from one list.
macro_rules! string_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $text)] $variant),+ }

        impl $name {
            /// Every value.
            pub const ALL: &[$name] = &[$($name::$variant),+];

            /// Its spelling on the bus.
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text),+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = UnknownValue;
            fn from_str(text: &str) -> Result<Self, UnknownValue> {
                match text { $($text => Ok($name::$variant),)+ _ => Err(UnknownValue) }
            }
        }

        // Sent as its text, so that a newer guard's extra value is data to an older client, not a broken message.
        impl Type for $name {
            const SIGNATURE: &'static zvariant::Signature = <str as Type>::SIGNATURE;
        }
    };
}

/// A string that is not a value of its enum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownValue;

string_enum! {
    /// How the guard is.
    State {
        /// It routes, and budgets hold.
        Normal = "normal",
        /// Something is missing; `StateReasons` says what. What can go on goes on.
        Degraded = "degraded",
        /// Routing is held by a client.
        Paused = "paused",
    }
}

string_enum! {
    /// Why a workload is where it is.
    Reason {
        /// A rule named its command.
        KnownHeavy = "known-heavy",
        /// It used CPU at or above the threshold for enough samples in a row.
        SustainedCpu = "sustained-cpu",
        /// It used far more CPU than its command usually does.
        Adaptive = "adaptive",
        /// A caller asked for the route (`Route`); it comes back as a detected one would.
        Requested = "requested",
        /// A person or an app put it there (`run`, `protect`, `Attach`); it stays until released.
        Placed = "placed",
        /// The guard lost its record of the move; the scope's description tells more.
        Unknown = "unknown",
    }
}

/// One row of `ListWorkloads`: an adopted process tree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Type, Value, OwnedValue)]
pub struct WorkloadRow {
    /// Its object, which has `org.workloadguard.Workload1`.
    pub path: OwnedObjectPath,
    /// PID of its root process.
    pub pid: u32,
    /// Its class, such as `heavy`.
    pub class: String,
    /// Why it is there: `known-heavy`, `sustained-cpu`, `adaptive`, `requested`, `placed` or `unknown`.
    pub reason: String,
    /// CPU of the whole tree over the last sample, in percent of one logical CPU.
    pub cpu: f64,
    /// Control group that it came from, relative to the cgroup mount.
    pub source: String,
    /// Control group that it is in.
    pub control_group: String,
    /// Command line of its root process, made printable.
    pub command: String,
    /// When it was moved, in microseconds since 1970.
    pub since: u64,
    /// How long its class's budget held it up since then, in microseconds over all CPUs; [`UNKNOWN`] where the
    /// kernel does not tell.
    pub throttled: u64,
}

/// A count that the kernel does not tell: the greatest there is, which none reaches.
pub const UNKNOWN: u64 = u64::MAX;

/// One row of `Classes`: a kind of work with a slice and a budget.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Type, Value, OwnedValue)]
pub struct ClassRow {
    /// Its name, such as `heavy`.
    pub name: String,
    /// Its slice.
    pub slice: String,
    /// The budget that the kernel enforces on the slice, in percent of one logical CPU; 0 when none.
    pub quota: u32,
    /// The weight that counts against the other classes: `cpu.weight` of the outermost slice below
    /// the user manager; 0 when the kernel has none there.
    pub weight: u32,
    /// `memory.high` of the slice in bytes; 0 when none.
    pub memory_high: u64,
    /// `io.weight`, likewise of the outermost slice that has one; 0 when the kernel has none there.
    pub io_weight: u32,
    /// `pids.max` of the slice; 0 when none.
    pub tasks_max: u64,
    /// Which of these come from the guard's settings (`quota`, `weight`, `memory_high`, `io_weight`,
    /// `tasks_max`); the others are from the slice's unit file.
    pub from_settings: Vec<String>,
}

string_enum! {
    /// What a hold holds.
    HoldKind {
        /// Detection and recovery, of everything.
        Pause = "pause",
        /// Detection leaves a tree alone.
        Exempt = "exempt",
        /// A workload stays in its class.
        Pin = "pin",
        /// A placed workload is released when the hold ends.
        Lease = "lease",
    }
}

/// One row of `Holds` and `ListHolds`: something that the guard leaves alone for the time being.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Type, Value, OwnedValue)]
pub struct HoldRow {
    /// Its cookie, for `ReleaseHold`.
    pub id: u64,
    /// `pause`, `exempt`, `pin` or `lease`.
    pub kind: String,
    /// PID of the process that was named; 0 for a pause and a lease.
    pub pid: u32,
    /// Command line of what is held, made printable; empty for a pause.
    pub subject: String,
    /// The workload's scope, for a pin and a lease; else empty.
    pub unit: String,
    /// The unique bus name that it ends with; empty when it is bound to none.
    pub owner: String,
    /// PID of who took it, as the bus knew it; 0 when it did not.
    pub owner_pid: u32,
    /// Command line of who took it, made printable.
    pub owner_command: String,
    /// Why, in the owner's words.
    pub reason: String,
    /// Since when, in microseconds since 1970.
    pub since: u64,
    /// Until when, likewise; 0 when it does not end by itself.
    pub until: u64,
}

string_enum! {
    /// How a process stands, in the answer of `Explain`.
    Verdict {
        /// In a workload that comes back when it calms down.
        Routed = "routed",
        /// In a workload that stays until it is released.
        Placed = "placed",
        /// On its way, in either direction.
        Moving = "moving",
        /// It is routed at the next sample, unless that finds it changed.
        Due = "due",
        /// Hot, but not for long enough.
        Counting = "counting",
        /// Watched, and nothing speaks for a move.
        Calm = "calm",
        /// It would be routed, but was tried or came back just now, or there is no room.
        Resting = "resting",
        /// A hold keeps it where it is.
        Held = "held",
        /// The settings exclude it.
        Excluded = "excluded",
        /// It is one that stays where it is.
        NeverMoved = "never-moved",
        /// Another user's.
        OutOfReach = "out-of-reach",
        /// Nothing that is watched holds it.
        NotWatched = "not-watched",
    }
}

/// The answer of `Explain`: verdict, sentences, details.
pub type Explained = (String, Vec<String>, HashMap<String, OwnedValue>);

/// One row of `Watched`: a unit whose processes the guard looks at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Type, Value, OwnedValue)]
pub struct WatchedRow {
    /// The unit, such as `protected-workload.slice`.
    pub unit: String,
    /// Processes in it and below at the last sample.
    pub processes: u32,
}

/// One row of `Statistics`: what a command usually uses, as adaptive routing learned it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Type, Value, OwnedValue)]
pub struct StatisticsRow {
    /// The command: program and first word, such as `git:gc`.
    pub command: String,
    /// Samples behind it.
    pub samples: u64,
    /// Mean CPU of a process of it, in percent of one logical CPU.
    pub mean: f64,
    /// Standard deviation, likewise.
    pub deviation: f64,
    /// The highest score of its processes at the last sample that had one, from 0 to 1; negative while too
    /// little is known for a score.
    pub score: f64,
}

/// One row of `Signals`: what a quota controller sees.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Type, Value, OwnedValue)]
pub struct SignalRow {
    /// Such as `pressure`.
    pub name: String,
    /// `read`, `pending`, `absent` or `broken`.
    pub state: String,
    /// The value; 0 unless it was read.
    pub value: f64,
    /// How long ago that was, in seconds.
    pub age: f64,
    /// What is wrong with it, in words.
    pub note: String,
}

/// One row of `Settings`: an effective value and where it came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Type)]
pub struct SettingRow {
    /// Dotted key, such as `routing.cpu_threshold`.
    pub key: String,
    /// The value as TOML would write it.
    pub value: String,
    /// `default`, a file with its line, or the name of an environment variable.
    pub origin: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_string_enum_survives_the_round_trip() {
        for state in State::ALL {
            assert_eq!(state.as_str().parse(), Ok(*state));
        }
        for reason in Reason::ALL {
            assert_eq!(reason.as_str().parse(), Ok(*reason));
        }
        for verdict in Verdict::ALL {
            assert_eq!(verdict.as_str().parse(), Ok(*verdict));
        }
        for kind in HoldKind::ALL {
            assert_eq!(kind.as_str().parse(), Ok(*kind));
        }
        assert_eq!("frob".parse::<State>(), Err(UnknownValue));
    }

    #[test]
    fn the_signatures_are_what_the_golden_xml_promises() {
        assert_eq!(WorkloadRow::SIGNATURE.to_string(), "(oussdssstt)");
        assert_eq!(ClassRow::SIGNATURE.to_string(), "(ssuututas)");
        assert_eq!(HoldRow::SIGNATURE.to_string(), "(tsusssusstt)");
        assert_eq!(WatchedRow::SIGNATURE.to_string(), "(su)");
        assert_eq!(StatisticsRow::SIGNATURE.to_string(), "(stddd)");
        assert_eq!(SettingRow::SIGNATURE.to_string(), "(sss)");
        assert_eq!(SignalRow::SIGNATURE.to_string(), "(ssdds)");
        assert_eq!(State::SIGNATURE.to_string(), "s");
    }
}
