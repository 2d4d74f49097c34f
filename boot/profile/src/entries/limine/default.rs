//! Keeps `default_entry` pointing at the same entry: as a number it counts the rows of the menu, and rows above it
//! are added and taken away.

use std::collections::BTreeMap;

use super::EntryError;
use super::config::Config;
use super::machine;
use super::strip::Stripped;
use crate::entries::Request;

/// The key.
const KEY: &str = "default_entry";
/// How the comment begins that notes what a number was without our entries. Tools that write the file anew may keep
/// the number and drop the entries.
const NOTE: &str = "# bench-profile: default_entry";

/// What the default was without our entries, and is with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shift {
    without: usize,
    with: usize,
}

/// The note of an earlier run.
pub fn noted(line: &str) -> Option<Shift> {
    let mut words = line.strip_prefix(NOTE)?.split_whitespace();
    let mut number = |word| {
        let found = words.next()? == word;
        found.then_some(words.next()?.trim_end_matches(',').parse().ok()?)
    };
    Some(Shift {
        without: number("without")?,
        with: number("with")?,
    })
}

impl Shift {
    fn line(self) -> String {
        let Shift { without, with } = self;
        format!("{NOTE} without {without}, with {with} (the benchmark entries)")
    }
}

/// The new file with the default where it was.
pub fn kept(
    before: &Config<'_>,
    stripped: &Stripped,
    placed: &str,
    request: &Request<'_>,
) -> Result<(String, Option<String>), EntryError> {
    let unchanged = || Ok((placed.to_owned(), None));
    let Some(number) = before
        .global(KEY)
        .and_then(|(_, value)| value.parse::<usize>().ok())
    else {
        return unchanged();
    };
    let without = Config::parse(&stripped.text)?;
    let with = Config::parse(placed)?;
    let (counted, meant) = match stripped.shift {
        Some(shift) if !stripped.had_ours && shift.with == number => (&without, shift.without),
        _ => (before, number),
    };
    let mut note = None;
    let (was, now) = match rows(counted, request).nth(meant.max(1) - 1) {
        Some(meant) => {
            let of = |config: &Config<'_>| {
                let mut rows = rows(config, request);
                rows.position(|row| row == meant).map(|at| at + 1)
            };
            let now = of(&with).or_else(|| {
                note = Some(format!(
                    "`{KEY}: {number}` was a benchmark entry that is gone: it is the normal entry now"
                ));
                first_kernel(&with, request)
            });
            (of(&without), now)
        }
        // Behind the last row. It must not come to be one of ours.
        None => {
            let count = |config: &Config<'_>| rows(config, request).count();
            let noted = stripped.shift.filter(|shift| shift.with == number);
            match number > count(&with) {
                true => (noted.map(|shift| shift.without), Some(number)),
                false => (Some(meant), Some(count(&with) + meant - count(counted))),
            }
        }
    };
    let (Some((line, _)), Some(now)) = (with.global(KEY), now) else {
        return unchanged();
    };
    let mut lines: Vec<String> = with.lines.iter().map(|line| line.raw.to_owned()).collect();
    let raw = &lines[line];
    let body = raw.trim_end_matches(['\r', '\n']);
    let ending = &raw[body.len()..];
    let indent: String = raw
        .chars()
        .take_while(|c| [' ', '\t'].contains(c))
        .collect();
    let mut new = String::new();
    if let Some(without) = was.filter(|was| *was != now) {
        let shift = Shift { without, with: now };
        new.push_str(&format!("{indent}{}{ending}", shift.line()));
    }
    match now == number {
        true => new.push_str(raw),
        false => {
            let key = body.split(':').next().unwrap_or(KEY);
            new.push_str(&format!("{key}: {now}{ending}"));
        }
    }
    lines[line] = new;
    Ok((lines.concat(), note))
}

/// The row of the first kernel, counted from 1.
fn first_kernel(config: &Config<'_>, request: &Request<'_>) -> Option<usize> {
    let first = *machine::kernels(config, request).ok()?.first()?;
    let key = &keys(config)[first];
    let row = rows(config, request).position(|row| row == *key)?;
    Some(row + 1)
}

/// The rows of the menu: what is in a folder is shown where the folder is expanded.
fn rows(config: &Config<'_>, request: &Request<'_>) -> impl Iterator<Item = (String, usize)> {
    let shown = |entry: &usize| {
        let folders = config.ancestry(*entry).skip(1);
        folders
            .into_iter()
            .all(|folder| config.entries[folder].expanded)
            && config
                .ancestry(*entry)
                .all(|entry| is_for_this(config, entry, request))
    };
    let keys = keys(config);
    (0..config.entries.len())
        .filter(shown)
        .map(|entry| keys[entry].clone())
        .collect::<Vec<_>>()
        .into_iter()
}

/// Whether an entry is for this firmware; others are not shown.
fn is_for_this(config: &Config<'_>, entry: usize, request: &Request<'_>) -> bool {
    let firmware = if request.uefi { "uefi" } else { "bios" };
    config
        .option(entry, "if_fw_type")
        .is_none_or(|kind| kind.eq_ignore_ascii_case(firmware))
}

/// What each entry is known by: its path, and which one of that path it is.
fn keys(config: &Config<'_>) -> Vec<(String, usize)> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut keys = Vec::new();
    for entry in 0..config.entries.len() {
        let path = path_of(config, entry);
        let count = seen.entry(path.clone()).or_default();
        keys.push((path, *count));
        *count += 1;
    }
    keys
}

/// An entry's path, as `default_entry` and a one-shot boot name it.
pub fn path_of(config: &Config<'_>, entry: usize) -> String {
    let mut titles: Vec<String> = config
        .ancestry(entry)
        .map(|entry| {
            let title = &config.entries[entry].title;
            title
                .replace('\\', "\\\\")
                .replace('/', "\\/")
                .replace('#', "\\#")
        })
        .collect();
    titles.reverse();
    titles.join("/")
}
