//! The shape of a machine file: which keys it holds, each value by itself.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};

use super::keys;
use super::mistake::Mistake;
use crate::cpus::CpuSet;

/// A file's keys, not yet taken.
pub struct Raw<'t> {
    origin: &'t str,
    text: &'t str,
    values: BTreeMap<String, (usize, DeValue<'t>)>,
    /// Line of each key that was there.
    pub lines: BTreeMap<String, usize>,
    /// What is wrong, with its line.
    pub mistakes: Vec<(usize, Mistake)>,
}

impl<'t> Raw<'t> {
    /// Reads the TOML. A text that is none has one mistake and no keys.
    pub fn parse(origin: &'t str, text: &'t str) -> Self {
        let mut raw = Raw {
            origin,
            text,
            values: BTreeMap::new(),
            lines: BTreeMap::new(),
            mistakes: Vec::new(),
        };
        match DeTable::parse(text) {
            Ok(table) => raw.flatten("", table.into_inner()),
            Err(error) => {
                let line = raw.line(error.span().map_or(0, |span| span.start));
                raw.wrong(line, "", format!("this is no TOML: {}", error.message()));
            }
        }
        raw
    }

    fn flatten(&mut self, prefix: &str, table: DeTable<'t>) {
        for (name, value) in table {
            let line = self.line(name.span().start);
            let key = format!("{prefix}{}", part(name.get_ref()));
            match value.into_inner() {
                DeValue::Table(inner) => self.flatten(&format!("{key}."), inner),
                value => {
                    self.lines.insert(key.clone(), line);
                    self.values.insert(key, (line, value));
                }
            }
        }
    }

    fn line(&self, offset: usize) -> usize {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        1 + before.iter().filter(|&&byte| byte == b'\n').count()
    }

    /// Notes a mistake.
    pub fn wrong(&mut self, line: usize, key: &str, reason: String) {
        let mistake = Mistake::new(self.origin, line, key, reason);
        self.mistakes.push((line, mistake));
    }

    /// A key's value, read by `read`, which answers what it should have been where it is not.
    fn take<T>(
        &mut self,
        key: &str,
        read: impl FnOnce(&DeValue<'_>) -> Result<T, String>,
    ) -> Option<T> {
        let (line, value) = self.values.remove(key)?;
        match read(&value) {
            Ok(good) => Some(good),
            Err(reason) => {
                self.wrong(line, key, reason);
                None
            }
        }
    }

    /// A CPU list.
    pub fn cpus(&mut self, key: &str) -> Option<CpuSet> {
        self.take(key, |value| {
            let text = value
                .as_str()
                .ok_or_else(|| found("a CPU list in quotes, such as \"8-15\"", value))?;
            text.parse()
                .map_err(|error| format!("{error}; write a list such as \"8-15\" or \"0-3,8\""))
        })
    }

    /// A whole number of `range`.
    pub fn number(&mut self, key: &str, range: std::ops::RangeInclusive<u32>) -> Option<u32> {
        self.take(key, |value| {
            let (first, last) = (range.start(), range.end());
            value
                .as_integer()
                .and_then(|number| u32::from_str_radix(number.as_str(), number.radix()).ok())
                .filter(|number| range.contains(number))
                .ok_or_else(|| found(&format!("a whole number from {first} to {last}"), value))
        })
    }

    /// `true` or `false`.
    pub fn flag(&mut self, key: &str) -> Option<bool> {
        self.take(key, |value| {
            value
                .as_bool()
                .ok_or_else(|| found("true or false, without quotes", value))
        })
    }

    /// One line of text.
    pub fn text(&mut self, key: &str) -> Option<String> {
        self.take(key, |value| {
            let text = value
                .as_str()
                .ok_or_else(|| found("a text in quotes", value))?;
            match text.chars().find(|c| c.is_control()) {
                Some(c) => Err(format!("it holds {c:?}; write one line of plain text")),
                None => Ok(text.to_owned()),
            }
        })
    }

    /// Names of units.
    pub fn units(&mut self, key: &str) -> Option<Vec<String>> {
        self.take(key, |value| {
            let expected = "a list of units in quotes, such as [\"cups.service\"]";
            let list = value.as_array().ok_or_else(|| found(expected, value))?;
            list.iter()
                .map(|value| {
                    let unit = value.get_ref();
                    let name = unit.as_str().ok_or_else(|| found(expected, unit))?;
                    if is_unit_name(name) {
                        Ok(name.to_owned())
                    } else {
                        Err(format!("{name:?} is no unit's full name; write one such as \"cups.service\", with its ending"))
                    }
                })
                .collect()
        })
    }

    /// Every key that nothing took is one that there is not.
    pub fn refuse_the_rest(&mut self) {
        for (key, (line, _)) in std::mem::take(&mut self.values) {
            let meant = match keys::meant(&key) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => "take it out".to_owned(),
            };
            self.wrong(line, &key, format!("there is no such key; {meant}"));
        }
    }
}

/// A part of a key as TOML has it: a quoted one is no other's beginning, and a message shows no control characters.
fn part(name: &str) -> String {
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    if !name.is_empty() && name.bytes().all(is_bare) {
        return name.to_owned();
    }
    format!("{name:?}")
}

fn found(expected: &str, value: &DeValue<'_>) -> String {
    let shown = match value {
        DeValue::String(text) => format!("{text:?}"),
        DeValue::Integer(number) => number.as_str().to_owned(),
        other => other.type_str().to_owned(),
    };
    format!("it must be {expected}, not {shown}")
}

/// Endings of the units that can be masked.
const UNIT_TYPES: [&str; 9] = [
    "service",
    "socket",
    "timer",
    "path",
    "target",
    "mount",
    "automount",
    "swap",
    "slice",
];

/// Whether it is a unit's name as systemd takes it (`unit_name_is_valid`). The names go into the kernel
/// command line, so nothing else may pass: no blank, no quote, no `$`.
fn is_unit_name(name: &str) -> bool {
    name.len() <= 255
        && name
            .rsplit_once('.')
            .is_some_and(|(stem, kind)| !stem.is_empty() && UNIT_TYPES.contains(&kind))
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b":-_.\\@".contains(&byte))
}
