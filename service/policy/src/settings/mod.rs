//! Settings: files over defaults, variables over files.
//!
//! [`keys::KEYS`] is the one list of keys: TOML names, variables, defaults, checks and the effective
//! view all follow from it. [`load()`] reads the shape of each source, then checks the meaning of the
//! whole.

mod check;
mod class_keys;
pub mod import;
mod keys;
mod kind;
mod layers;
mod shadow;
mod slice_name;
mod variables;
pub mod watch;

#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::class::Class;
pub use crate::quota::QuotaSettings;
pub use crate::source::{Errors, Layer, Mistake};

/// The settings in force.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// What is watched.
    pub watch: Watch,
    /// How often.
    pub sampling: Sampling,
    /// When something is routed.
    pub routing: Routing,
    /// When it comes back.
    pub recovery: Recovery,
    /// Routing by what a command usually uses.
    pub adaptive: Adaptive,
    /// Snapshots of what happened.
    pub history: History,
    /// The policy that only logs.
    pub shadow: Shadow,
    /// How the heavy class's quota is moved.
    pub quota: QuotaSettings,
    /// Every class, by name; `protected` and `heavy` are always there.
    pub classes: Vec<Class>,
}

/// `[watch]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Watch {
    /// Slices whose processes are watched, with everything nested in them. None is inside another.
    pub parent_units: Vec<String>,
}

/// `[sampling]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampling {
    /// Time between two looks at what is watched.
    pub interval: Duration,
}

/// `[routing]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Routing {
    /// At or above this a sample is hot, in percent of one logical CPU.
    pub cpu_threshold: f64,
    /// Hot samples in a row after which a process is routed.
    pub sustained_samples: u32,
    /// Time between two attempts for the same process.
    pub cooldown: Duration,
    /// A process whose command line contains one of these is not routed.
    pub exclude_patterns: Vec<String>,
}

/// `[recovery]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Recovery {
    /// Below this a sample of a whole workload is low, in percent of one logical CPU.
    pub cpu_threshold: f64,
    /// Low samples in a row after which it comes back,
    pub samples: u32,
    /// but not before this time since the first of them.
    pub dwell: Duration,
}

/// `[adaptive]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Adaptive {
    /// Off by default.
    pub enabled: bool,
    /// The score, from 0 to 1, at which a process is routed.
    pub route_threshold: f64,
    /// Samples of a command before it is scored.
    pub min_samples: u32,
    /// What a new sample counts against what is known, above 0 and at most 1.
    pub learning_rate: f64,
    /// Time between two writes of what was learned.
    pub save_interval: Duration,
}

/// `[history]`.
#[derive(Clone, Debug, PartialEq)]
pub struct History {
    /// Time between two snapshots.
    pub interval: Duration,
}

/// `[shadow]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Shadow {
    /// Off by default.
    pub enabled: bool,
    /// What a new sample counts against the average, above 0 and at most 1.
    pub ewma_alpha: f64,
    /// At or above this the average is hot, in percent of one logical CPU.
    pub route_threshold: f64,
    /// At or below this it is low, likewise.
    pub clear_threshold: f64,
    /// Hot samples in a row after which a process would be routed.
    pub sustained_samples: u32,
    /// Low samples in a row after which it would come back,
    pub recovery_samples: u32,
    /// but not before this time since the first of them.
    pub recovery_dwell: Duration,
}

impl Settings {
    /// A class by its name.
    pub fn class(&self, name: &str) -> Option<&Class> {
        self.classes.iter().find(|class| class.name == name)
    }
}

impl Default for Settings {
    fn default() -> Self {
        keys::defaults()
    }
}

/// Where settings come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// Files, the lowest first: each overrides those before it, key by key.
    pub files: Vec<Layer>,
    /// Variables; only those that start with `WORKLOAD_GUARD_` are looked at. They override the files.
    pub env: Vec<(String, String)>,
}

/// What [`load()`] answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The settings in force.
    pub settings: Settings,
    /// Each key's value and where it came from.
    pub effective: Vec<Effective>,
    /// What was ignored or is unusual, a sentence each.
    pub warnings: Vec<String>,
    /// What is wrong in `[shadow]`. The shadow is off then; everything else holds.
    pub shadow_mistakes: Vec<Mistake>,
}

/// A key's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effective {
    /// The key, such as `routing.cpu_threshold`.
    pub key: String,
    /// The value as TOML.
    pub value: String,
    /// `default`, `FILE:LINE`, or the name of the variable.
    pub origin: String,
}

/// Reads all sources. Every mistake of every source is reported, not only the first.
///
/// # Errors
///
/// Names the file, line and key of each mistake; nothing of the sources is in force then.
pub fn load(sources: &Sources) -> Result<Loaded, Errors> {
    let mut values = layers::Values::default();
    let mut mistakes = Vec::new();
    let mut warnings = Vec::new();
    for layer in &sources.files {
        layers::read(layer, &mut values, &mut mistakes);
    }
    variables::read(&sources.env, &mut values, &mut mistakes, &mut warnings);
    let mut shadow_mistakes = shadow::take(&mut mistakes);
    shadow::check(&values, &mut shadow_mistakes);
    if !shadow_mistakes.is_empty() {
        shadow::turn_off(&mut values);
    }
    let settings = check::settings(&values, &mut mistakes, &mut warnings);
    Errors::none_or(mistakes, || Loaded {
        settings,
        effective: values.effective(),
        warnings,
        shadow_mistakes,
    })
}
