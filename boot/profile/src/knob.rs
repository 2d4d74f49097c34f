//! One setting of the machine: what was asked, what is there, and what that means.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The state of one knob, as Apply, Check and the reports tell it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Knob {
    /// A stable, short name, such as `governor:cpu8` or `sysctl:vm.stat_interval`.
    pub id: String,
    /// Where it is: a path below the root, or in words what is no file (`swap`, a unit).
    pub what: String,
    /// What the profile asks for; `None` where the profile leaves it alone.
    pub requested: Option<String>,
    /// What was read back; `None` where it cannot be read.
    pub effective: Option<String>,
    /// What it was before the first Apply; `None` where nothing was written.
    pub original: Option<String>,
    /// What that means.
    pub verdict: Verdict,
}

/// What a knob's state means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "verdict", content = "reason")]
pub enum Verdict {
    /// As requested.
    Ok,
    /// Not as requested, and why. A failure.
    Differs(String),
    /// This machine does not offer it. Not a failure.
    Unsupported(String),
    /// Something else decides it, named here. A note, not a failure: what is measured decides.
    OverriddenBy(String),
}

impl Verdict {
    /// Whether the machine is not in the state that was asked for.
    pub fn is_failure(&self) -> bool {
        matches!(self, Verdict::Differs(_))
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Ok => f.write_str("ok"),
            Verdict::Differs(why) => write!(f, "differs: {why}"),
            Verdict::Unsupported(why) => write!(f, "unsupported here: {why}"),
            Verdict::OverriddenBy(what) => write!(f, "overridden by {what}"),
        }
    }
}
