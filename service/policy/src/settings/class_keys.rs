//! The keys of `[classes.NAME]`, whose names are free, so that they are beside [`super::keys::KEYS`].

use std::fmt;

use toml::Spanned;
use toml::de::DeValue;

use super::keys::ALL_CPUS;
use super::kind::toml_number;
use super::slice_name;
use crate::budget::Amount;
use crate::class::Class;
use crate::source::{describe, strings};

/// The key without which there is no class.
pub const SLICE: &str = "slice";
/// Commands that are routed into it.
pub const PATTERNS: &str = "patterns";
/// Says that a lower layer's value does not hold.
const NONE: &str = "none";

/// A key of a class.
pub struct ClassKey {
    /// Its name.
    pub name: &'static str,
    /// What it takes.
    kind: Kind,
    /// Puts a checked value in its place.
    pub apply: fn(&mut Class, &Value, &str),
}

enum Kind {
    /// A slice, or nothing, which takes the class away.
    Slice,
    /// Patterns of commands.
    Patterns,
    /// Percent of one logical CPU.
    Percent,
    /// A weight.
    Weight,
    /// Bytes.
    Memory,
    /// Tasks.
    Tasks,
}

/// A checked value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A slice.
    Text(String),
    /// Patterns.
    List(Vec<String>),
    /// A percentage or a weight.
    Number(f64),
    /// An amount as systemd writes it.
    Amount(Amount),
    /// Not set, whatever a lower layer says.
    None,
}

/// The value as TOML.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |text: &str| toml::Value::String(text.to_owned()).to_string();
        match self {
            Value::Text(slice) => f.write_str(&text(slice)),
            Value::List(list) => {
                let list = list.iter().cloned().map(toml::Value::String).collect();
                write!(f, "{}", toml::Value::Array(list))
            }
            Value::Number(number) => write!(f, "{number}"),
            Value::Amount(amount) => f.write_str(&text(&amount.to_string())),
            Value::None => f.write_str(&text(NONE)),
        }
    }
}

impl Value {
    fn number(&self) -> Option<f64> {
        match self {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    fn amount(&self) -> Option<Amount> {
        match self {
            Value::Amount(amount) => Some(*amount),
            _ => None,
        }
    }

    /// What [`super::keys::CLASSES`] holds.
    pub fn slice(slice: &str) -> Value {
        Value::Text(slice.to_owned())
    }
}

/// Every key.
pub const CLASS_KEYS: &[ClassKey] = &[
    ClassKey {
        name: SLICE,
        kind: Kind::Slice,
        apply: |class, value, _| {
            if let Value::Text(slice) = value {
                class.slice.clone_from(slice);
            }
        },
    },
    ClassKey {
        name: PATTERNS,
        kind: Kind::Patterns,
        apply: |class, value, origin| {
            if let Value::List(list) = value {
                class.patterns.clone_from(list);
                if !list.is_empty() {
                    class.patterns_origin = origin.to_owned();
                }
            }
        },
    },
    ClassKey {
        name: "quota",
        kind: Kind::Percent,
        apply: |class, value, _| {
            // In range, so nothing is lost but what systemd could not hold either.
            class.budget.quota_usec_per_sec = value
                .number()
                .map(|percent| ((percent * 10_000.0).round() as u64).max(1));
        },
    },
    ClassKey {
        name: "weight",
        kind: Kind::Weight,
        apply: |class, value, _| class.budget.weight = value.number().map(|weight| weight as u64),
    },
    ClassKey {
        name: "memory_high",
        kind: Kind::Memory,
        apply: |class, value, _| class.budget.memory_high = value.amount(),
    },
    ClassKey {
        name: "io_weight",
        kind: Kind::Weight,
        apply: |class, value, _| {
            class.budget.io_weight = value.number().map(|weight| weight as u64);
        },
    },
    ClassKey {
        name: "tasks_max",
        kind: Kind::Tasks,
        apply: |class, value, _| class.budget.tasks_max = value.amount(),
    },
];

impl ClassKey {
    /// What it takes, for messages.
    pub fn expected(&self) -> String {
        match self.kind {
            Kind::Slice => slice_name::EXPECTED.to_owned(),
            Kind::Patterns => {
                "a list of strings, each a program's name and perhaps arguments, with `*` for any characters"
                    .to_owned()
            }
            Kind::Percent => {
                format!("a number above 0 and at most {ALL_CPUS} (percent of one logical CPU), or \"none\"")
            }
            Kind::Weight => "a whole number from 1 to 10000, or \"none\"".to_owned(),
            Kind::Memory => {
                "bytes, such as 4294967296 or \"4G\" (K, M, G, T), or \"50%\", \"infinity\" or \"none\"".to_owned()
            }
            Kind::Tasks => "a whole number from 1, or \"10%\", \"infinity\" or \"none\"".to_owned(),
        }
    }

    /// A TOML value, checked. On failure the offset of the part that is wrong and its description.
    pub fn read(&self, value: &Spanned<DeValue<'_>>) -> Result<Value, (usize, String)> {
        let wrong = |part: &Spanned<DeValue<'_>>| (part.span().start, describe(part.as_ref()));
        let text = value.as_ref().as_str();
        let found = match self.kind {
            Kind::Slice => text
                .filter(|slice| slice.is_empty() || slice_name::is_slice_name(slice))
                .map(Value::slice),
            Kind::Patterns => {
                let items = strings(value).map_err(wrong)?;
                if let Some((text, at)) = items.iter().find(|(text, _)| text.trim().is_empty()) {
                    return Err((*at, format!("the string {text:?}")));
                }
                Some(patterns(items.into_iter().map(|(text, _)| text)))
            }
            _ if text == Some(NONE) => Some(Value::None),
            Kind::Percent => toml_number(value.as_ref())
                .filter(|percent| *percent > 0.0 && *percent <= ALL_CPUS)
                .map(Value::Number),
            Kind::Weight => toml_number(value.as_ref())
                .filter(|weight| weight.fract() == 0.0 && (1.0..=10_000.0).contains(weight))
                .map(Value::Number),
            Kind::Memory => amount(value.as_ref(), true),
            Kind::Tasks => amount(value.as_ref(), false),
        };
        found.ok_or_else(|| wrong(value))
    }
}

/// Patterns from a variable, with commas in between.
pub fn patterns_of_variable(text: &str) -> Value {
    patterns(text.split(',').filter(|text| !text.trim().is_empty()))
}

fn patterns<'a>(texts: impl Iterator<Item = &'a str>) -> Value {
    Value::List(texts.map(|text| text.trim().to_owned()).collect())
}

fn amount(value: &DeValue<'_>, suffixes: bool) -> Option<Value> {
    let found = match value {
        DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix())
            .ok()
            .filter(|amount| (1..u64::MAX).contains(amount))
            .map(Amount::Absolute),
        other => Amount::parse(other.as_str()?, suffixes),
    };
    found.map(Value::Amount)
}

/// The key that was meant: systemd's own names are near enough, too.
pub fn nearest_class_key(name: &str) -> Option<String> {
    let plain: String = name
        .to_ascii_lowercase()
        .chars()
        .filter(|c| *c != '_' && *c != '-')
        .collect();
    let by_systemd = match plain.as_str() {
        "cpuquota" => Some("quota"),
        "cpuweight" => Some("weight"),
        "memoryhigh" | "memorymax" => Some("memory_high"),
        "ioweight" => Some("io_weight"),
        "tasksmax" => Some("tasks_max"),
        "pattern" | "rules" => Some(PATTERNS),
        _ => None,
    };
    by_systemd
        .map(str::to_owned)
        .or_else(|| crate::source::nearest(name, CLASS_KEYS.iter().map(|key| key.name)))
}
