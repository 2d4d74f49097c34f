//! Texts of settings and rules, and what is wrong in them.

use std::borrow::Cow;
use std::fmt;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// One file, read by the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layer {
    /// Its path, as it is to be shown.
    pub origin: String,
    /// Its contents.
    pub text: String,
}

impl Layer {
    /// The last component of its path, by which a later file replaces an earlier one.
    pub fn file_name(&self) -> &str {
        self.origin.rsplit('/').next().unwrap_or(&self.origin)
    }

    /// `FILE:LINE` of a byte offset.
    pub fn at(&self, offset: usize) -> String {
        format!("{}:{}", self.origin, line_of(&self.text, offset))
    }
}

/// The line of a byte offset, counted from 1.
pub(crate) fn line_of(text: &str, offset: usize) -> usize {
    let end = offset.min(text.len());
    1 + text.as_bytes()[..end]
        .iter()
        .filter(|&&b| b == b'\n')
        .count()
}

/// One thing that is wrong, with the place, the key and the way out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mistake {
    /// Not TOML.
    #[error("{origin}: {}", cut(message))]
    Syntax {
        /// `FILE:LINE`.
        origin: String,
        /// The parser's words.
        message: String,
    },
    /// A key that nothing reads.
    #[error("{origin}: unknown key `{}`{}", cut(key), hint(nearest.as_deref()))]
    UnknownKey {
        /// `FILE:LINE`.
        origin: String,
        /// The key, dotted.
        key: String,
        /// The most similar valid key.
        nearest: Option<String>,
    },
    /// A value of the wrong type, or one that cannot be.
    #[error("{origin}: `{}` must be {expected}, not {}", cut(key), cut(found))]
    BadValue {
        /// `FILE:LINE`, or the variable.
        origin: String,
        /// The key, dotted.
        key: String,
        /// What it takes.
        expected: String,
        /// What was there.
        found: String,
    },
    /// A key without which the rest means nothing.
    #[error("{origin}: {} lacks `{key}`: {expected}", cut(what))]
    Missing {
        /// `FILE:LINE`.
        origin: String,
        /// What lacks it.
        what: String,
        /// The key.
        key: String,
        /// What it takes.
        expected: String,
    },
    /// Two values that cannot both be.
    #[error(
        "`{}` ({a_origin}) and `{}` ({b_origin}) cannot both be: {why}",
        cut(a),
        cut(b)
    )]
    Impossible {
        /// One key, with its value.
        a: String,
        /// Where it comes from.
        a_origin: String,
        /// The other key, with its value.
        b: String,
        /// Where that comes from.
        b_origin: String,
        /// Why, and the way out.
        why: String,
    },
}

/// The longest part of a message that comes from a file or a variable, in characters: whatever stands
/// there, a reason fits on a screen.
const MAX_PART: usize = 200;
/// Mistakes that are told of a file, and of all files together.
const MAX_TOLD: usize = 50;

fn cut(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(MAX_PART) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}… (cut: {} bytes)", &text[..end], text.len())),
    }
}

fn hint(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |key| format!(", did you mean `{key}`?"))
}

/// Everything that is wrong, never empty; shown one to a line, the first [`MAX_TOLD`] of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Errors(Vec<Mistake>);

impl Errors {
    /// `Ok(value)` when nothing is wrong.
    pub(crate) fn none_or<T>(
        mistakes: Vec<Mistake>,
        value: impl FnOnce() -> T,
    ) -> Result<T, Errors> {
        if mistakes.is_empty() {
            Ok(value())
        } else {
            Err(Errors(mistakes))
        }
    }

    /// In the order in which they were found.
    pub fn mistakes(&self) -> &[Mistake] {
        &self.0
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, mistake) in self.0.iter().take(MAX_TOLD).enumerate() {
            if n > 0 {
                f.write_str("\n")?;
            }
            mistake.fmt(f)?;
        }
        match self.0.len().saturating_sub(MAX_TOLD) {
            0 => Ok(()),
            more => write!(f, "\nand {more} more mistakes"),
        }
    }
}

impl std::error::Error for Errors {}

/// The mistakes of one layer, which are told in the order of its lines.
pub(crate) struct Notes<'a> {
    pub layer: &'a Layer,
    found: Vec<(usize, Mistake)>,
    /// Mistakes beyond [`MAX_TOLD`]: finding the words for each would hold the daemon's loop up for minutes.
    more: usize,
}

impl<'a> Notes<'a> {
    pub fn new(layer: &'a Layer) -> Self {
        Notes {
            layer,
            found: Vec::new(),
            more: 0,
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.found.len() + self.more
    }

    fn note(&mut self, offset: usize, mistake: impl FnOnce(String) -> Mistake) {
        if self.found.len() == MAX_TOLD {
            self.more += 1;
            return;
        }
        let origin = self.layer.at(offset);
        self.found.push((offset, mistake(origin)));
    }

    pub fn bad_value(&mut self, offset: usize, key: &str, expected: &str, found: String) {
        self.note(offset, |origin| Mistake::BadValue {
            origin,
            key: key.to_owned(),
            expected: expected.to_owned(),
            found,
        });
    }

    pub fn unknown(
        &mut self,
        offset: usize,
        key: String,
        nearest: impl FnOnce(&str) -> Option<String>,
    ) {
        self.note(offset, |origin| Mistake::UnknownKey {
            origin,
            nearest: nearest(&key),
            key,
        });
    }

    pub fn missing(&mut self, offset: usize, what: String, key: &str, expected: &str) {
        self.note(offset, |origin| Mistake::Missing {
            origin,
            what,
            key: key.to_owned(),
            expected: expected.to_owned(),
        });
    }

    pub fn tell(mut self, mistakes: &mut Vec<Mistake>) {
        self.found.sort_by_key(|(offset, _)| *offset);
        mistakes.extend(self.found.into_iter().map(|(_, mistake)| mistake));
        if self.more > 0 {
            mistakes.push(Mistake::Syntax {
                origin: self.layer.origin.clone(),
                message: format!("{} more mistakes", self.more),
            });
        }
    }

    /// Parses the layer as far as it goes.
    pub fn parse(&mut self) -> DeTable<'a> {
        let (table, errors) = DeTable::parse_recoverable(&self.layer.text);
        for error in errors {
            let offset = error.span().map_or(0, |span| span.start);
            self.note(offset, |origin| Mistake::Syntax {
                origin,
                message: error.message().replace('\n', ", "),
            });
        }
        table.into_inner()
    }
}

/// A value as an error message names it.
pub(crate) fn describe(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("the string {text:?}"),
        DeValue::Integer(number) => format!("the number {number}"),
        DeValue::Float(number) => format!("the number {number}"),
        DeValue::Boolean(value) => format!("the boolean {value}"),
        DeValue::Datetime(value) => format!("the date {value}"),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

/// A list of strings, or the first value that is none.
pub(crate) fn strings<'a, 'i>(
    value: &'a Spanned<DeValue<'i>>,
) -> Result<Vec<(&'a str, usize)>, &'a Spanned<DeValue<'i>>> {
    let list = value.as_ref().as_array().ok_or(value)?;
    list.iter()
        .map(|item| {
            item.as_ref()
                .as_str()
                .map(|text| (text, item.span().start))
                .ok_or(item)
        })
        .collect()
}

/// The candidate that is most like `word`, unless none is much like it.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    similar(word, candidates, 3)
}

/// As [`nearest`], with at most one edit in `part` characters, and always with two.
pub(crate) fn similar<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    part: usize,
) -> Option<String> {
    candidates
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .min()
        .filter(|(distance, candidate)| {
            *distance <= (candidate.len().max(word.len()) / part).max(2)
        })
        .map(|(_, candidate)| candidate.to_owned())
}

/// Edit distance with swaps of neighbours counted as one (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) =
        (a.chars().take(128).collect(), b.chars().take(128).collect());
    let mut before = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let same = usize::from(a[i - 1] != b[j - 1]);
            row[j] = (last[j] + 1).min(row[j - 1] + 1).min(last[j - 1] + same);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_edits_and_swaps() {
        for (a, b, expected) in [
            ("", "", 0),
            ("abc", "", 3),
            ("cpu", "cpu", 0),
            ("cpu_treshold", "cpu_threshold", 1),
            ("tpye", "type", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
            assert_eq!(distance(b, a), expected, "{b} {a}");
        }
    }

    #[test]
    fn nothing_is_suggested_for_a_stranger() {
        assert_eq!(nearest("zebra", ["cpu_threshold", "samples"]), None);
        assert_eq!(
            nearest("sample", ["cpu_threshold", "samples"]),
            Some("samples".into())
        );
    }

    #[test]
    fn lines_are_counted_from_one() {
        assert_eq!(line_of("a\nb\nc", 0), 1);
        assert_eq!(line_of("a\nb\nc", 2), 2);
        assert_eq!(line_of("a\nb\nc", 99), 3);
    }
}
