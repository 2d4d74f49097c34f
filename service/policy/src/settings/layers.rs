//! The shape of a settings file: which keys it holds, each checked by itself.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Effective;
use super::class_keys::{self, CLASS_KEYS, PATTERNS, SLICE, nearest_class_key};
use super::keys::{BROWSER, CLASSES, KEYS};
use super::kind::Value;
use crate::class::is_class_name;
use crate::source::{Layer, Mistake, Notes, describe, nearest, similar};

/// Says that nothing set it.
pub const DEFAULT: &str = "default";

/// What the layers say of one class: by the name of the key, the value and its origin.
pub type ClassValues = BTreeMap<&'static str, (class_keys::Value, String)>;

/// The values that hold, each with its origin.
pub struct Values {
    /// As [`KEYS`].
    pub keys: Vec<(Value, String)>,
    /// Each class, by name.
    pub classes: BTreeMap<String, ClassValues>,
}

impl Default for Values {
    fn default() -> Self {
        let keys = KEYS
            .iter()
            .map(|key| ((key.default)(), DEFAULT.to_owned()))
            .collect();
        let default = |value| (value, DEFAULT.to_owned());
        let class = |(name, slice): &(&str, &str)| {
            let mut values = ClassValues::from([(SLICE, default(class_keys::Value::slice(slice)))]);
            if *name == BROWSER {
                values.insert(PATTERNS, default(class_keys::Value::List(Vec::new())));
            }
            ((*name).to_owned(), values)
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
        let classes = self.classes.iter().flat_map(|(name, values)| {
            values.iter().map(move |(key, (value, origin))| Effective {
                key: format!("classes.{name}.{key}"),
                value: value.to_string(),
                origin: origin.clone(),
            })
        });
        fixed.chain(classes).collect()
    }
}

/// Lays a file over `values`.
pub fn read(layer: &Layer, values: &mut Values, mistakes: &mut Vec<Mistake>) {
    let mut reader = Reader {
        notes: Notes::new(layer),
        values,
    };
    let table = reader.notes.parse();
    for (section, value) in &table {
        reader.section(section, value);
    }
    reader.notes.tell(mistakes);
}

struct Reader<'a> {
    notes: Notes<'a>,
    values: &'a mut Values,
}

type Name<'i> = Spanned<std::borrow::Cow<'i, str>>;

impl Reader<'_> {
    fn section(&mut self, name: &Name<'_>, value: &Spanned<DeValue<'_>>) {
        let section = name.as_ref().as_ref();
        let known = section == "classes" || KEYS.iter().any(|key| section_of(key.name) == section);
        let Some(table) = value.as_ref().as_table().filter(|_| known) else {
            if known {
                self.notes.bad_value(
                    value.span().start,
                    section,
                    "a table",
                    describe(value.as_ref()),
                );
            } else {
                let meant = match value.as_ref() {
                    DeValue::Table(_) => nearest_section,
                    _ => nearest_key,
                };
                self.notes
                    .unknown(name.span().start, section.to_owned(), meant);
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
                self.notes.unknown(name.span().start, full, nearest_key);
                continue;
            };
            match KEYS[at].kind.read_toml(value) {
                Ok(good) => self.values.keys[at] = (good, self.notes.layer.at(name.span().start)),
                Err((offset, found)) => {
                    self.notes
                        .bad_value(offset, &full, &KEYS[at].kind.expected(), found)
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
                self.notes
                    .bad_value(name.span().start, &full, expected, format!("{class:?}"));
                continue;
            }
            match value.as_ref().as_table() {
                Some(keys) => self.class(class, name.span().start, keys),
                None => self.notes.bad_value(
                    value.span().start,
                    &full,
                    "a table",
                    describe(value.as_ref()),
                ),
            }
        }
    }

    fn class(&mut self, class: &str, at: usize, keys: &DeTable<'_>) {
        let mut found = self.values.classes.remove(class).unwrap_or_default();
        for (name, value) in keys {
            let full = format!("classes.{class}.{}", name.as_ref());
            let Some(key) = CLASS_KEYS.iter().find(|key| key.name == name.as_ref()) else {
                let meant = |_: &str| {
                    nearest_class_key(name.as_ref()).map(|key| format!("classes.{class}.{key}"))
                };
                self.notes.unknown(name.span().start, full, meant);
                continue;
            };
            match key.read(value) {
                Ok(good) => {
                    let origin = self.notes.layer.at(name.span().start);
                    found.insert(key.name, (good, origin));
                }
                Err((offset, wrong)) => self.notes.bad_value(offset, &full, &key.expected(), wrong),
            }
        }
        if found.contains_key(SLICE) {
            self.values.classes.insert(class.to_owned(), found);
        } else if !keys.contains_key(SLICE) {
            let what = format!("the class `{class}`");
            self.notes
                .missing(at, what, SLICE, super::slice_name::EXPECTED);
        }
    }
}

fn section_of(key: &str) -> &str {
    key.split('.').next().unwrap_or(key)
}

/// The section that was meant. There are few, so that the nearest is worth a word.
fn nearest_section(section: &str) -> Option<String> {
    let sections = KEYS
        .iter()
        .map(|key| section_of(key.name))
        .chain(["classes"]);
    similar(section, sections, 2)
}

/// The key that was meant: the most similar whole name, else one with the same last part, as when the
/// section was forgotten.
fn nearest_key(key: &str) -> Option<String> {
    let last = |name: &'static str| name.rsplit('.').next().unwrap_or(name);
    let by_last = || {
        let found = nearest(
            key.rsplit('.').next()?,
            KEYS.iter().map(|key| last(key.name)),
        )?;
        KEYS.iter()
            .map(|key| key.name.to_owned())
            .find(|name| name.ends_with(&format!(".{found}")))
    };
    nearest(key, KEYS.iter().map(|key| key.name)).or_else(by_last)
}
