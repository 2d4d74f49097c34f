//! What a key of the settings takes, and how a value of it is read.

use std::fmt;
use std::time::Duration;

use toml::Spanned;
use toml::de::DeValue;

use super::slice_name;
use crate::source::strings;

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
    /// On or off.
    Switch,
    /// A number above 0 and at most 1.
    Fraction,
    /// Milliseconds above `over` and at most `max`.
    Milliseconds {
        /// Exclusive.
        over: f64,
        /// Inclusive.
        max: f64,
    },
    /// One of these words.
    Word(&'static [&'static str]),
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
    /// On or off.
    Switch(bool),
    /// One of the words that the key takes.
    Word(&'static str),
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
            Value::Switch(on) => write!(f, "{on}"),
            Value::Word(word) => write!(f, "\"{word}\""),
        }
    }
}

impl Value {
    /// A number; that of a count, too.
    pub fn number(&self) -> f64 {
        match self {
            Value::Number(number) => *number,
            Value::Count(count) => f64::from(*count),
            Value::List(_) | Value::Switch(_) | Value::Word(_) => f64::NAN,
        }
    }

    /// A count.
    pub fn count(&self) -> u32 {
        match self {
            Value::Count(count) => *count,
            _ => 0,
        }
    }

    /// A number of seconds.
    pub fn duration(&self) -> Duration {
        Duration::try_from_secs_f64(self.number()).unwrap_or_default()
    }

    /// A list.
    pub fn list(&self) -> Vec<String> {
        match self {
            Value::List(list) => list.clone(),
            _ => Vec::new(),
        }
    }

    /// A word.
    pub fn word(&self) -> &'static str {
        match self {
            Value::Word(word) => word,
            _ => "",
        }
    }

    /// Whether it is on.
    pub fn switch(&self) -> bool {
        matches!(self, Value::Switch(true))
    }
}

/// The most slices that are watched. Each is asked for over the bus at every look at the machine's health,
/// about a millisecond each, and nothing else happens meanwhile.
const MAX_SLICES: usize = 64;
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
            Kind::Switch => "true or false".to_owned(),
            Kind::Fraction => "a number above 0 and at most 1".to_owned(),
            Kind::Milliseconds { over, max } => {
                format!("a number of milliseconds above {over} and at most {max}")
            }
            Kind::Word(words) => format!("one of \"{}\"", words.join("\", \"")),
        }
    }

    /// A TOML value, checked. On failure the offset of the part that is wrong and its description.
    pub fn read_toml(&self, value: &Spanned<DeValue<'_>>) -> Result<Value, (usize, String)> {
        let wrong = |part: &Spanned<DeValue<'_>>| {
            (part.span().start, crate::source::describe(part.as_ref()))
        };
        match self {
            Kind::Percent { .. }
            | Kind::Seconds { .. }
            | Kind::Count { .. }
            | Kind::Fraction
            | Kind::Milliseconds { .. } => toml_number(value.as_ref())
                .and_then(|number| self.read_number(number))
                .ok_or_else(|| wrong(value)),
            Kind::Switch => match value.as_ref() {
                DeValue::Boolean(on) => Ok(Value::Switch(*on)),
                _ => Err(wrong(value)),
            },
            Kind::Word(words) => match value.as_ref() {
                DeValue::String(text) => word(words, text).ok_or_else(|| wrong(value)),
                _ => Err(wrong(value)),
            },
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

    /// The text of a variable, checked. `Slices` takes one, `Strings` takes several with commas, `Switch`
    /// the words of systemd's boolean settings.
    pub fn read_text(&self, text: &str) -> Option<Value> {
        let text = text.trim();
        match self {
            Kind::Percent { .. }
            | Kind::Seconds { .. }
            | Kind::Count { .. }
            | Kind::Fraction
            | Kind::Milliseconds { .. } => text
                .parse()
                .ok()
                .and_then(|number| self.read_number(number)),
            Kind::Switch => switch(text).map(Value::Switch),
            Kind::Word(words) => word(words, text),
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
            Kind::Percent { over, max } | Kind::Milliseconds { over, max } => {
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
            Kind::Fraction => (number > 0.0 && number <= 1.0).then_some(Value::Number(number)),
            Kind::Slices | Kind::Strings | Kind::Switch | Kind::Word(_) => None,
        }
    }
}

fn word(words: &[&'static str], text: &str) -> Option<Value> {
    let found = words.iter().find(|word| **word == text);
    found.map(|word| Value::Word(word))
}

pub(super) fn toml_number(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .ok()
            .map(|n| n as f64),
        DeValue::Float(number) => number.as_str().parse().ok(),
        _ => None,
    }
}

/// A switch as people write one (systemd.syntax(7), "boolean").
fn switch(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "yes" | "true" | "on" => Some(true),
        "0" | "no" | "false" | "off" => Some(false),
        _ => None,
    }
}
