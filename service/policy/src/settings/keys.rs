//! The one list of keys. To add a key, add an entry here and its comment in `config/guard.toml`.

use std::fmt;
use std::time::Duration;

use toml::Spanned;
use toml::de::DeValue;

use super::{Recovery, Routing, Sampling, Settings, Watch, slice_name};
use crate::class::Class;
use crate::source::strings;

/// A setting.
pub struct Key {
    /// Dotted name in the TOML files.
    pub name: &'static str,
    /// Its variable, without [`super::variables::PREFIX`].
    pub variable: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// The built-in value.
    pub default: fn() -> Value,
    /// Puts a checked value in its place.
    pub apply: fn(&mut Settings, &Value),
}

/// What a key takes.
pub enum Kind {
    /// A number above `over` and at most `max`.
    Percent {
        /// Exclusive.
        over: f64,
        /// Inclusive.
        max: f64,
    },
    /// Seconds, both bounds inclusive.
    Seconds {
        /// The least.
        min: f64,
        /// The most.
        max: f64,
    },
    /// A whole number, both bounds inclusive.
    Count {
        /// The least.
        min: u32,
        /// The most.
        max: u32,
    },
    /// Slice units, at least one and at most [`MAX_SLICES`].
    Slices,
    /// Strings that are not empty.
    Strings,
}

/// A checked value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A number.
    Number(f64),
    /// A whole number.
    Count(u32),
    /// Strings.
    List(Vec<String>),
}

/// The value as TOML.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Number(number) => write!(f, "{number}"),
            Value::Count(count) => write!(f, "{count}"),
            Value::List(list) => {
                let list: Vec<toml::Value> =
                    list.iter().cloned().map(toml::Value::String).collect();
                write!(f, "{}", toml::Value::Array(list))
            }
        }
    }
}

impl Value {
    fn number(&self) -> f64 {
        match self {
            Value::Number(number) => *number,
            Value::Count(count) => f64::from(*count),
            Value::List(_) => f64::NAN,
        }
    }

    fn count(&self) -> u32 {
        match self {
            Value::Count(count) => *count,
            Value::Number(_) | Value::List(_) => 0,
        }
    }

    fn duration(&self) -> Duration {
        Duration::try_from_secs_f64(self.number()).unwrap_or_default()
    }

    fn list(&self) -> Vec<String> {
        match self {
            Value::List(list) => list.clone(),
            Value::Number(_) | Value::Count(_) => Vec::new(),
        }
    }
}

/// The most slices that are watched. Each is asked for over the bus at every look at the machine's health,
/// about a millisecond each, and nothing else happens meanwhile.
const MAX_SLICES: usize = 64;
/// Every CPU of a machine with 1,024 of them, which is more than any that runs a user's session.
const ALL_CPUS: f64 = 100.0 * 1024.0;
/// The longest time that makes sense between two attempts.
const A_DAY: f64 = 86_400.0;

/// Every key with a fixed name. `classes.NAME.slice` is beside it, since its names are free.
pub const KEYS: &[Key] = &[
    Key {
        name: "watch.parent_units",
        variable: "PARENT_UNIT",
        kind: Kind::Slices,
        default: || Value::List(vec!["protected-workload.slice".into()]),
        apply: |s, v| s.watch.parent_units = v.list(),
    },
    Key {
        name: "sampling.interval_sec",
        variable: "SAMPLE_SEC",
        kind: Kind::Seconds {
            min: 0.05,
            max: 3600.0,
        },
        default: || Value::Number(2.0),
        apply: |s, v| s.sampling.interval = v.duration(),
    },
    Key {
        name: "routing.cpu_threshold",
        variable: "CPU_THRESHOLD",
        kind: Kind::Percent {
            over: 0.0,
            max: ALL_CPUS,
        },
        default: || Value::Number(70.0),
        apply: |s, v| s.routing.cpu_threshold = v.number(),
    },
    Key {
        name: "routing.sustained_samples",
        variable: "SUSTAINED_SAMPLES",
        kind: Kind::Count { min: 1, max: 1000 },
        default: || Value::Count(4),
        apply: |s, v| s.routing.sustained_samples = v.count(),
    },
    Key {
        name: "routing.cooldown_sec",
        variable: "COOLDOWN_SEC",
        kind: Kind::Seconds {
            min: 0.0,
            max: A_DAY,
        },
        default: || Value::Number(20.0),
        apply: |s, v| s.routing.cooldown = v.duration(),
    },
    Key {
        name: "routing.exclude_patterns",
        variable: "EXCLUDE_PATTERNS",
        kind: Kind::Strings,
        default: || Value::List(Vec::new()),
        apply: |s, v| s.routing.exclude_patterns = v.list(),
    },
    Key {
        name: "recovery.cpu_threshold",
        variable: "RECOVERY_CPU_THRESHOLD",
        kind: Kind::Percent {
            over: 0.0,
            max: ALL_CPUS,
        },
        default: || Value::Number(35.0),
        apply: |s, v| s.recovery.cpu_threshold = v.number(),
    },
    Key {
        name: "recovery.samples",
        variable: "RECOVERY_SAMPLES",
        kind: Kind::Count { min: 1, max: 1000 },
        default: || Value::Count(10),
        apply: |s, v| s.recovery.samples = v.count(),
    },
    Key {
        name: "recovery.dwell_sec",
        variable: "RECOVERY_DWELL_SEC",
        kind: Kind::Seconds {
            min: 0.0,
            max: A_DAY,
        },
        default: || Value::Number(20.0),
        apply: |s, v| s.recovery.dwell = v.duration(),
    },
];

/// Classes that are there without being named, with their slices.
pub const CLASSES: &[(&str, &str)] = &[
    ("browser", "browser-automation.slice"),
    ("heavy", "heavy-workload.slice"),
    ("protected", "protected-workload.slice"),
];

/// Classes without which the guard has no work.
pub const FIXED_CLASSES: &[&str] = &["heavy", "protected"];

/// The built-in settings.
pub fn defaults() -> Settings {
    let mut settings = blank();
    for key in KEYS {
        (key.apply)(&mut settings, &(key.default)());
    }
    settings.classes = CLASSES
        .iter()
        .map(|(name, slice)| Class {
            name: (*name).to_owned(),
            slice: (*slice).to_owned(),
        })
        .collect();
    settings
}

/// Something for each key to be put into.
fn blank() -> Settings {
    Settings {
        watch: Watch {
            parent_units: Vec::new(),
        },
        sampling: Sampling {
            interval: Duration::ZERO,
        },
        routing: Routing {
            cpu_threshold: 0.0,
            sustained_samples: 0,
            cooldown: Duration::ZERO,
            exclude_patterns: Vec::new(),
        },
        recovery: Recovery {
            cpu_threshold: 0.0,
            samples: 0,
            dwell: Duration::ZERO,
        },
        classes: Vec::new(),
    }
}

impl Kind {
    /// What it takes, for messages.
    pub fn expected(&self) -> String {
        match self {
            Kind::Percent { over, max } => {
                format!("a number above {over} and at most {max} (percent of one logical CPU)")
            }
            Kind::Seconds { min, max } => format!("a number of seconds from {min} to {max}"),
            Kind::Count { min, max } => format!("a whole number from {min} to {max}"),
            Kind::Slices => format!(
                "a list of 1 to {MAX_SLICES} slices, each {}",
                slice_name::EXPECTED
            ),
            Kind::Strings => "a list of strings that are not empty".to_owned(),
        }
    }

    /// A TOML value, checked. On failure the offset of the part that is wrong and its description.
    pub fn read_toml(&self, value: &Spanned<DeValue<'_>>) -> Result<Value, (usize, String)> {
        let wrong = |part: &Spanned<DeValue<'_>>| {
            (part.span().start, crate::source::describe(part.as_ref()))
        };
        match self {
            Kind::Percent { .. } | Kind::Seconds { .. } | Kind::Count { .. } => {
                toml_number(value.as_ref())
                    .and_then(|number| self.read_number(number))
                    .ok_or_else(|| wrong(value))
            }
            Kind::Slices | Kind::Strings => {
                let items = strings(value).map_err(wrong)?;
                if let Some((text, at)) = items.iter().find(|(text, _)| !self.takes_item(text)) {
                    return Err((*at, format!("the string {text:?}")));
                }
                let list: Vec<String> =
                    items.into_iter().map(|(text, _)| text.to_owned()).collect();
                let at = value.span().start;
                match (self, list.len()) {
                    (Kind::Slices, 0) => return Err((at, "an empty list".to_owned())),
                    (Kind::Slices, count) if count > MAX_SLICES => {
                        return Err((at, format!("a list of {count}")));
                    }
                    _ => {}
                }
                Ok(Value::List(list))
            }
        }
    }

    /// The text of a variable, checked. `Slices` takes one, `Strings` takes several with commas.
    pub fn read_text(&self, text: &str) -> Option<Value> {
        let text = text.trim();
        match self {
            Kind::Percent { .. } | Kind::Seconds { .. } | Kind::Count { .. } => text
                .parse()
                .ok()
                .and_then(|number| self.read_number(number)),
            Kind::Slices => self
                .takes_item(text)
                .then(|| Value::List(vec![text.to_owned()])),
            Kind::Strings => {
                let items = text
                    .split(',')
                    .map(str::trim)
                    .filter(|item| !item.is_empty());
                Some(Value::List(items.map(str::to_owned).collect()))
            }
        }
    }

    fn takes_item(&self, text: &str) -> bool {
        match self {
            Kind::Slices => slice_name::is_slice_name(text),
            _ => !text.is_empty(),
        }
    }

    fn read_number(&self, number: f64) -> Option<Value> {
        match *self {
            Kind::Percent { over, max } => {
                (number > over && number <= max).then_some(Value::Number(number))
            }
            Kind::Seconds { min, max } => (min..=max)
                .contains(&number)
                .then_some(Value::Number(number)),
            Kind::Count { min, max } => {
                let whole =
                    number.fract() == 0.0 && (f64::from(min)..=f64::from(max)).contains(&number);
                // In range and whole, so nothing is lost.
                whole.then_some(Value::Count(number as u32))
            }
            Kind::Slices | Kind::Strings => None,
        }
    }
}

fn toml_number(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .ok()
            .map(|n| n as f64),
        DeValue::Float(number) => number.as_str().parse().ok(),
        _ => None,
    }
}
