//! The shape of a settings file: which keys it holds, each checked by itself.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::keys::{CLASSES, KEYS, Value};
use super::{Effective, slice_name};
use crate::class::is_class_name;
use crate::source::{Layer, Mistake, describe, nearest, parse};

/// Says that nothing set it.
pub const DEFAULT: &str = "default";
const SLICE: &str = "slice";

/// The values that hold, each with its origin.
pub struct Values {
    /// As [`KEYS`].
    pub keys: Vec<(Value, String)>,
    /// The slice of each class, by name; an empty one takes the class away.
    pub classes: BTreeMap<String, (String, String)>,
}

impl Default for Values {
    fn default() -> Self {
        let keys = KEYS
            .iter()
            .map(|key| ((key.default)(), DEFAULT.to_owned()))
            .collect();
        let class = |(name, slice): &(&str, &str)| {
            (
                (*name).to_owned(),
                ((*slice).to_owned(), DEFAULT.to_owned()),
            )
        };
        Values {
            keys,
            classes: CLASSES.iter().map(class).collect(),
        }
    }
}

impl Values {
    /// A key's value and origin.
    pub fn get(&self, name: &str) -> Option<&(Value, String)> {
        KEYS.iter()
            .position(|key| key.name == name)
            .map(|at| &self.keys[at])
    }

    /// All of them, in the order of [`KEYS`], then the classes.
    pub fn effective(&self) -> Vec<Effective> {
        let fixed = KEYS
            .iter()
            .zip(&self.keys)
            .map(|(key, (value, origin))| Effective {
                key: key.name.to_owned(),
                value: value.to_string(),
                origin: origin.clone(),
            });
        let classes = self
            .classes
            .iter()
            .map(|(name, (slice, origin))| Effective {
                key: format!("classes.{name}.{SLICE}"),
                value: toml::Value::String(slice.clone()).to_string(),
                origin: origin.clone(),
            });
        fixed.chain(classes).collect()
    }
}

/// Lays a file over `values`.
pub fn read(layer: &Layer, values: &mut Values, mistakes: &mut Vec<Mistake>) {
    let table = parse(layer, mistakes);
    let mut reader = Reader {
        layer,
        values,
        mistakes,
    };
    for (section, value) in &table {
        reader.section(section, value);
    }
}

struct Reader<'a> {
    layer: &'a Layer,
    values: &'a mut Values,
    mistakes: &'a mut Vec<Mistake>,
}

type Name<'i> = Spanned<std::borrow::Cow<'i, str>>;

impl Reader<'_> {
    fn section(&mut self, name: &Name<'_>, value: &Spanned<DeValue<'_>>) {
        let section = name.as_ref().as_ref();
        let known = section == "classes" || KEYS.iter().any(|key| section_of(key.name) == section);
        let Some(table) = value.as_ref().as_table().filter(|_| known) else {
            if known {
                self.bad_value(
                    value.span().start,
                    section,
                    "a table",
                    describe(value.as_ref()),
                );
            } else {
                self.unknown(name.span().start, section.to_owned());
            }
            return;
        };
        if section == "classes" {
            self.classes(table);
            return;
        }
        for (name, value) in table {
            let full = format!("{section}.{}", name.as_ref());
            let Some(at) = KEYS.iter().position(|key| key.name == full) else {
                self.unknown(name.span().start, full);
                continue;
            };
            match KEYS[at].kind.from_toml(value) {
                Ok(good) => self.values.keys[at] = (good, self.layer.at(name.span().start)),
                Err((offset, found)) => {
                    self.bad_value(offset, &full, &KEYS[at].kind.expected(), found)
                }
            }
        }
    }

    fn classes(&mut self, table: &DeTable<'_>) {
        for (name, value) in table {
            let class = name.as_ref().as_ref();
            let full = format!("classes.{class}");
            if !is_class_name(class) {
                let expected = "named with lower-case letters, digits and `_`, at most 32 of them";
                self.bad_value(name.span().start, &full, expected, format!("{class:?}"));
                continue;
            }
            match value.as_ref().as_table() {
                Some(keys) => self.class(class, name.span().start, keys),
                None => self.bad_value(
                    value.span().start,
                    &full,
                    "a table",
                    describe(value.as_ref()),
                ),
            }
        }
    }

    fn class(&mut self, class: &str, at: usize, keys: &DeTable<'_>) {
        for (name, value) in keys {
            let full = format!("classes.{class}.{}", name.as_ref());
            if name.as_ref() != SLICE {
                self.unknown(name.span().start, full);
                continue;
            }
            let slice = value.as_ref().as_str();
            match slice.filter(|slice| slice.is_empty() || slice_name::is_slice_name(slice)) {
                Some(slice) => {
                    let origin = self.layer.at(name.span().start);
                    self.values
                        .classes
                        .insert(class.to_owned(), (slice.to_owned(), origin));
                }
                None => self.bad_value(
                    value.span().start,
                    &full,
                    slice_name::EXPECTED,
                    describe(value.as_ref()),
                ),
            }
        }
        if !keys.contains_key(SLICE) && !self.values.classes.contains_key(class) {
            self.mistakes.push(Mistake::Missing {
                origin: self.layer.at(at),
                what: format!("the class `{class}`"),
                key: SLICE.to_owned(),
                expected: slice_name::EXPECTED.to_owned(),
            });
        }
    }

    fn bad_value(&mut self, offset: usize, key: &str, expected: &str, found: String) {
        self.mistakes.push(Mistake::BadValue {
            origin: self.layer.at(offset),
            key: key.to_owned(),
            expected: expected.to_owned(),
            found,
        });
    }

    fn unknown(&mut self, offset: usize, key: String) {
        self.mistakes.push(Mistake::UnknownKey {
            origin: self.layer.at(offset),
            nearest: nearest_key(&key),
            key,
        });
    }
}

fn section_of(key: &str) -> &str {
    key.split('.').next().unwrap_or(key)
}

/// The key that was meant: the most similar whole name, else one with the same last part, as when the
/// section was forgotten.
fn nearest_key(key: &str) -> Option<String> {
    if let Some(class) = key
        .strip_prefix("classes.")
        .and_then(|rest| rest.split('.').next())
    {
        return Some(format!("classes.{class}.{SLICE}"));
    }
    let last = |name: &str| name.rsplit('.').next().unwrap_or_default().to_owned();
    let sections = KEYS
        .iter()
        .map(|key| section_of(key.name))
        .chain(["classes"]);
    let section = || {
        (!key.contains('.'))
            .then(|| nearest(key, sections))
            .flatten()
    };
    nearest(key, KEYS.iter().map(|key| key.name))
        .or_else(section)
        .or_else(|| {
            let lasts: Vec<String> = KEYS.iter().map(|key| last(key.name)).collect();
            let found = nearest(&last(key), lasts.iter().map(String::as_str))?;
            KEYS.iter()
                .map(|key| key.name.to_owned())
                .find(|name| last(name) == found)
        })
}
