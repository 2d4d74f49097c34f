//! What a controller decided.

use super::Fault;

/// One decision.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// What is to be done.
    pub verdict: Verdict,
    /// The same with its reason, in words.
    pub words: String,
}

/// What is to be done with the quota.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Nothing.
    Keep,
    /// Nothing yet: a growth needs a second reading.
    Wait,
    /// Set it.
    Change {
        /// In percent of one logical CPU; none for no limit.
        from: Option<f64>,
        /// Whole percent, within the bounds.
        to: f64,
    },
    /// Nothing, since this is not known.
    Frozen(Vec<Fault>),
}

impl Decision {
    /// Frozen for these reasons.
    pub(super) fn frozen(faults: Vec<Fault>) -> Decision {
        let words: Vec<String> = faults.iter().map(ToString::to_string).collect();
        Decision {
            words: format!("frozen: {}", words.join("; ")),
            verdict: Verdict::Frozen(faults),
        }
    }
}

/// A quota in words.
pub(super) fn percent(quota: f64) -> String {
    format!("{}%", (quota * 10.0).round() / 10.0)
}
