//! A limine.conf as Limine reads it (its common/lib/config.c): macros expanded, entries by depth, options by key.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::EntryError;

/// A file, line by line.
#[derive(Debug)]
pub struct Config<'t> {
    /// Each line.
    pub lines: Vec<Line<'t>>,
    /// Each entry, in the file's order.
    pub entries: Vec<Entry>,
}

/// One line.
#[derive(Debug)]
pub struct Line<'t> {
    /// As it stands, with its ending.
    pub raw: &'t str,
    /// As Limine has it: without blanks around it, macros expanded. Empty for the definition of a macro.
    pub text: Cow<'t, str>,
}

/// An entry or a folder of entries.
#[derive(Debug)]
pub struct Entry {
    /// Its line.
    pub line: usize,
    /// The line behind its options: the next entry's, or the file's end.
    pub end: usize,
    /// How many slashes it has.
    pub depth: usize,
    /// Whether a folder is shown with what is in it.
    pub expanded: bool,
    /// Its title.
    pub title: String,
    /// The folder that it is in.
    pub parent: Option<usize>,
}

impl<'t> Config<'t> {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// Limine would refuse it, or not boot from it.
    pub fn parse(text: &'t str) -> Result<Config<'t>, EntryError> {
        let macros = macros(text);
        let mut lines = Vec::new();
        for (number, raw) in text.split_inclusive('\n').enumerate() {
            let malformed = |reason: &str| EntryError::Malformed {
                line: number + 1,
                reason: reason.to_owned(),
            };
            let trimmed = raw.trim_matches([' ', '\t', '\r', '\n']);
            if trimmed.contains('\0') {
                return Err(malformed("it holds a NUL, which ends the file for Limine"));
            }
            let text = match definition(trimmed) {
                Some(_) => Cow::Borrowed(""),
                None => expand(trimmed, &macros)
                    .ok_or_else(|| malformed("`${` has no `}`: Limine would not go on"))?,
            };
            lines.push(Line { raw, text });
        }
        let entries = entries(&lines)?;
        Ok(Config { lines, entries })
    }

    /// The first value of an option of an entry; keys have no case.
    pub fn option(&self, entry: usize, key: &str) -> Option<&str> {
        self.options(entry)
            .find(|(_, known, _)| known.eq_ignore_ascii_case(key))
            .map(|(_, _, value)| value)
    }

    /// Each option of an entry: line, key, value.
    pub fn options(&self, entry: usize) -> impl Iterator<Item = (usize, &str, &str)> {
        let entry = &self.entries[entry];
        self.options_in(entry.line + 1, entry.end)
    }

    /// The first value of an option that stands before all entries, and its line.
    pub fn global(&self, key: &str) -> Option<(usize, &str)> {
        let end = self
            .entries
            .first()
            .map_or(self.lines.len(), |entry| entry.line);
        self.options_in(0, end)
            .find(|(_, known, _)| known.eq_ignore_ascii_case(key))
            .map(|(line, _, value)| (line, value))
    }

    fn options_in(&self, from: usize, to: usize) -> impl Iterator<Item = (usize, &str, &str)> {
        (from..to).filter_map(|number| {
            let (key, value) = option(&self.lines[number].text)?;
            Some((number, key, value))
        })
    }

    /// An entry and the folders that it is in, from the inside out.
    pub fn ancestry(&self, entry: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(entry), |entry| self.entries[*entry].parent)
    }

    /// Whether an entry is a folder: the next one is one level deeper.
    pub fn is_folder(&self, entry: usize) -> bool {
        self.entries
            .get(entry + 1)
            .is_some_and(|next| next.parent == Some(entry))
    }

    /// The first entry that is not below `entry`; the number of entries where there is none.
    pub fn end_of_folder(&self, entry: usize) -> usize {
        let depth = self.entries[entry].depth;
        (entry + 1..self.entries.len())
            .find(|next| self.entries[*next].depth <= depth)
            .unwrap_or(self.entries.len())
    }

    /// The line on which an entry begins; the file's end behind the last.
    pub fn line_of(&self, entry: usize) -> usize {
        self.entries
            .get(entry)
            .map_or(self.lines.len(), |entry| entry.line)
    }
}

/// `key: value` of a line that is an option.
pub fn option(text: &str) -> Option<(&str, &str)> {
    if text.starts_with(['/', '#']) {
        return None;
    }
    let (key, value) = text.split_once(':')?;
    Some((key, value.trim_start_matches([' ', '\t'])))
}

fn entries(lines: &[Line<'_>]) -> Result<Vec<Entry>, EntryError> {
    let mut entries: Vec<Entry> = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let name = line.text.trim_start_matches('/');
        let depth = line.text.len() - name.len();
        if depth == 0 {
            continue;
        }
        let parent = match entries.len().checked_sub(1) {
            Some(last) => {
                entries[last].end = number;
                std::iter::successors(Some(last), |entry| entries[*entry].parent)
                    .find(|entry| entries[*entry].depth < depth)
            }
            None => None,
        };
        if parent.map_or(0, |parent| entries[parent].depth) + 1 != depth {
            return Err(EntryError::Malformed {
                line: number + 1,
                reason: format!(
                    "{:?} has {depth} slashes, and no entry before it has {}: Limine would not go on",
                    line.text,
                    depth - 1
                ),
            });
        }
        let title = name.strip_prefix('+');
        entries.push(Entry {
            line: number,
            end: lines.len(),
            depth,
            expanded: title.is_some(),
            title: title.unwrap_or(name).trim_start_matches(' ').to_owned(),
            parent,
        });
    }
    Ok(entries)
}

/// Name and value of a line that defines a macro.
fn definition(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix("${")?
        .split_once('}')
        .and_then(|(name, rest)| Some((name, rest.strip_prefix('=')?)))
}

/// All of them; the last definition of a name counts, wherever it stands.
fn macros(text: &str) -> BTreeMap<&str, &str> {
    text.split('\n')
        .filter_map(|line| definition(line.trim_matches([' ', '\t', '\r'])))
        .collect()
}

/// Puts in the macros' texts, which are not expanded themselves. What Limine knows of the machine stays as it is, and
/// an unknown name is empty. None where a use has no end.
fn expand<'t>(line: &'t str, macros: &BTreeMap<&str, &str>) -> Option<Cow<'t, str>> {
    if !line.contains("${") {
        return Some(Cow::Borrowed(line));
    }
    let mut expanded = String::new();
    let mut rest = line;
    while let Some((before, behind)) = rest.split_once("${") {
        let (name, after) = behind.split_once('}')?;
        expanded.push_str(before);
        match macros.get(name) {
            Some(value) => expanded.push_str(value),
            None if ["ARCH", "FW_TYPE"].contains(&name) => {
                expanded.push_str(&format!("${{{name}}}"));
            }
            None => {}
        }
        rest = after;
    }
    expanded.push_str(rest);
    Some(Cow::Owned(expanded))
}
