//! Takes away what an earlier run or an older tool wrote, and what a boot into a profile left in a normal entry.

use super::config::Config;
use super::default::{self, Shift};
use super::{BEGIN, END, EntryError, machine};
use crate::command_line;
use crate::entries::{Request, profile_of_title};

/// A file without entries of profiles.
#[derive(Debug)]
pub struct Stripped {
    /// Its text.
    pub text: String,
    /// What was done to entries that are not ours.
    pub notes: Vec<String>,
    /// Whether there were entries of ours.
    pub had_ours: bool,
    /// What an earlier run noted of the default.
    pub shift: Option<Shift>,
}

/// Takes it away.
pub fn strip(config: &Config<'_>, request: &Request<'_>) -> Result<Stripped, EntryError> {
    let mut stripped = once(config, request)?;
    // An entry of ours that somebody made a folder is an entry again when what was in it is gone.
    while stripped.had_ours {
        let text = stripped.text.clone();
        let again = once(&Config::parse(&text)?, request)?;
        if again.text == text {
            break;
        }
        stripped.text = again.text;
        stripped.notes.extend(again.notes);
    }
    Ok(stripped)
}

fn once(config: &Config<'_>, request: &Request<'_>) -> Result<Stripped, EntryError> {
    let mut stripped = Stripped {
        text: String::new(),
        notes: Vec::new(),
        had_ours: false,
        shift: None,
    };
    let mut kept = vec![true; config.lines.len()];
    for (from, to) in blocks(config) {
        // Whatever else somebody put between the two lines stays.
        for (line, kept) in kept.iter_mut().enumerate().take(to + 1).skip(from) {
            let text = &config.lines[line].text;
            *kept = ![0, to - from].contains(&(line - from)) && !is_filler(text);
        }
    }
    for entry in 0..config.entries.len() {
        let lines = config.entries[entry].line..config.entries[entry].end;
        let inside = blocks(config)
            .iter()
            .any(|(from, to)| (from..=to).contains(&&lines.start));
        if is_ours(config, entry, inside) {
            stripped.had_ours = true;
            for line in lines {
                // Comments behind the last option are the next entry's.
                if !is_filler(&config.lines[line].text) || line < last_option(config, entry) {
                    kept[line] = false;
                }
            }
        }
    }
    for (number, line) in config.lines.iter().enumerate() {
        let text: &str = &line.text;
        if let Some(shift) = default::noted(text) {
            stripped.shift = Some(shift);
            continue;
        }
        if kept[number] && text != BEGIN && text != END {
            stripped.text.push_str(line.raw);
        }
    }
    repair(&mut stripped, request)?;
    Ok(stripped)
}

/// Nothing that Limine reads.
pub fn is_filler(text: &str) -> bool {
    text.is_empty() || text.starts_with('#')
}

/// From and to of each block, both its own lines. A line without its other is no block.
fn blocks(config: &Config<'_>) -> Vec<(usize, usize)> {
    let mut blocks = Vec::new();
    let mut begin = None;
    for (number, line) in config.lines.iter().enumerate() {
        match line.text.as_ref() {
            BEGIN => begin = Some(number),
            END => blocks.extend(begin.take().map(|begin| (begin, number))),
            _ => {}
        }
    }
    blocks
}

/// Whether we, or an older tool, wrote this entry.
fn is_ours(config: &Config<'_>, entry: usize, in_block: bool) -> bool {
    if config.is_folder(entry) {
        return false;
    }
    let title = &config.entries[entry].title;
    let line = machine::command_line(config, entry).unwrap_or_default();
    let marked = command_line::booted(line) != Ok(None);
    let titled = profile_of_title(title).is_some();
    (in_block && (marked || titled)) || (marked && titled) || is_of_first_tool(config, entry, line)
}

/// The first tool knew one profile, and had neither block nor marker: its entries are called as another one, and
/// `benchmark`.
fn is_of_first_tool(config: &Config<'_>, entry: usize, line: &str) -> bool {
    let title = config.entries[entry].title.to_lowercase();
    let Some(kernel) = title.strip_suffix("benchmark") else {
        return false;
    };
    let kernel = kernel.trim_end_matches([' ', '-', ':']);
    line.contains("isolcpus=")
        && config
            .entries
            .iter()
            .any(|other| other.title.to_lowercase().trim_end() == kernel)
}

/// The line behind an entry's last option.
fn last_option(config: &Config<'_>, entry: usize) -> usize {
    let entry = &config.entries[entry];
    (entry.line..entry.end)
        .rev()
        .find(|line| !is_filler(&config.lines[*line].text))
        .map_or(entry.line, |line| line + 1)
}

/// A kernel that was installed during a boot into a profile may have got that boot's command line: what is the
/// profile's is taken out of the normal entries again.
fn repair(stripped: &mut Stripped, request: &Request<'_>) -> Result<(), EntryError> {
    let text = stripped.text.clone();
    let config = Config::parse(&text)?;
    let mut lines: Vec<String> = config
        .lines
        .iter()
        .map(|line| line.raw.to_owned())
        .collect();
    for entry in machine::own_kernels(&config, request) {
        for (number, key, value) in config.options(entry) {
            let of_kernel = ["cmdline", "kernel_cmdline"]
                .iter()
                .any(|known| key.eq_ignore_ascii_case(known));
            if of_kernel && command_line::booted(value) != Ok(None) {
                let raw = &mut lines[number];
                let body = raw.trim_end_matches(['\r', '\n']).len();
                let (head, ending) = (raw.find(':').unwrap_or(body), raw.split_off(body));
                raw.truncate(head);
                raw.push_str(&format!(
                    ": {}{ending}",
                    command_line::stripped(value).join(" ")
                ));
                stripped.notes.push(format!(
                    "{:?} had the command line of a boot into a profile: that was taken out of it",
                    config.entries[entry].title
                ));
            }
        }
    }
    stripped.text = lines.concat();
    Ok(())
}
