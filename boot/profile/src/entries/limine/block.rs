//! What is put into a limine.conf.

use super::config::{Config, option};
use super::strip::is_filler;
use super::{BEGIN, END, EntryError, machine};
use crate::command_line::{self, CommandLineError};
use crate::entries::{Request, suffix};
use crate::profile::Profile;

/// The longest title, slashes included, that Limine before 12 keeps.
const LONGEST_TITLE: usize = 63;

/// Our lines.
pub struct Block {
    /// Before which line of the file they go; the file's end behind the last.
    pub line: usize,
    /// The lines.
    pub text: String,
    /// How the file's lines end.
    pub ending: &'static str,
}

/// An entry for each kernel and profile.
pub fn block(
    config: &Config<'_>,
    kernels: &[usize],
    request: &Request<'_>,
) -> Result<Block, EntryError> {
    let ending = match config.lines.iter().any(|line| line.raw.ends_with("\r\n")) {
        true => "\r\n",
        false => "\n",
    };
    let mut lines = Vec::new();
    let (line, depth) = place(config, kernels);
    for kernel in kernels {
        for profile in Profile::ALL {
            lines.extend(entry(config, *kernel, depth, profile, request)?);
        }
    }
    let first = config.lines[config.entries[kernels[0]].line].raw;
    let indent = blanks(first);
    lines.insert(0, format!("{indent}{BEGIN}"));
    lines.push(format!("{indent}{END}"));
    Ok(Block {
        line,
        text: lines
            .iter()
            .flat_map(|line| [line.as_str(), ending])
            .collect(),
        ending,
    })
}

/// Where the block goes and how deep its entries are: to the end of the folder of this system, before snapshots.
fn place(config: &Config<'_>, kernels: &[usize]) -> (usize, usize) {
    let first = kernels[0];
    let outermost = config.ancestry(first).last().unwrap_or(first);
    let (end, depth) = if outermost == first {
        // No folder: behind the last kernel that is in none either.
        let last = kernels
            .iter()
            .rev()
            .find(|kernel| config.entries[**kernel].depth == 1)
            .copied()
            .unwrap_or(first);
        (last + 1, 1)
    } else {
        let end = config.end_of_folder(outermost);
        let depth = config.entries[outermost].depth + 1;
        let snapshots = (outermost + 1..end).find(|entry| {
            let entry = &config.entries[*entry];
            entry.depth == depth && entry.title.eq_ignore_ascii_case("snapshots")
        });
        (snapshots.unwrap_or(end), depth)
    };
    // What stands right before an entry belongs to it: a comment, an empty line.
    let mut line = config.line_of(end);
    while line > 0
        && is_filler(&config.lines[line - 1].text)
        && !is_macro(config.lines[line - 1].raw)
    {
        line -= 1;
    }
    (line, depth)
}

fn is_macro(raw: &str) -> bool {
    raw.trim_start_matches([' ', '\t']).starts_with("${")
}

fn blanks(raw: &str) -> &str {
    &raw[..raw.len() - raw.trim_start_matches([' ', '\t']).len()]
}

fn entry(
    config: &Config<'_>,
    kernel: usize,
    depth: usize,
    profile: Profile,
    request: &Request<'_>,
) -> Result<Vec<String>, EntryError> {
    let source = &config.entries[kernel];
    let wrong = |error: CommandLineError| EntryError::CommandLine {
        entry: source.title.clone(),
        error,
    };
    let base = match machine::command_line(config, kernel) {
        Some(line) => line,
        None if machine::is_image(config, kernel) => request.own_line,
        None => "",
    };
    let line = command_line::merged(base, request.machine, profile).map_err(wrong)?;
    if line.contains("${") || source.title.contains("${") {
        return Err(wrong(CommandLineError::Macro));
    }
    let indent = blanks(config.lines[source.line].raw);
    let inner = (source.line + 1..source.end)
        .find(|line| option(&config.lines[*line].text).is_some())
        .map_or(indent, |line| blanks(config.lines[line].raw));
    let title = title(&source.title, depth, profile);
    // Limine drops the blank; without it these would be more slashes, or the sign of an expanded folder.
    let gap = if title.starts_with(['/', '+']) {
        " "
    } else {
        ""
    };
    let slashes = "/".repeat(depth) + gap;
    let mut lines = vec![
        format!("{indent}{slashes}{title}"),
        format!("{inner}comment: benchmark profile {profile}"),
    ];
    for number in source.line + 1..source.end {
        let Some((key, _)) = option(&config.lines[number].text) else {
            continue;
        };
        // A comment names the entry to the tool that wrote it.
        if ["comment", "cmdline", "kernel_cmdline"]
            .iter()
            .any(|known| key.eq_ignore_ascii_case(known))
        {
            continue;
        }
        // As it stands, with its macros.
        let raw = config.lines[number]
            .raw
            .trim_matches([' ', '\t', '\r', '\n']);
        let value = raw
            .split_once(':')
            .map_or("", |(_, value)| value.trim_start());
        // Limine 8 knows no other name for it.
        let key = match key.eq_ignore_ascii_case("path") && !machine::is_image(config, kernel) {
            true => "kernel_path",
            false => key,
        };
        lines.push(format!("{inner}{key}: {value}"));
    }
    lines.push(format!("{inner}cmdline: {line}"));
    Ok(lines)
}

/// The kernel's title, cut where an older Limine would cut what tells the profiles apart.
fn title(kernel: &str, depth: usize, profile: Profile) -> String {
    let suffix = suffix(profile);
    let room = LONGEST_TITLE.saturating_sub(depth + 1 + suffix.len());
    let mut end = kernel.len().min(room);
    while !kernel.is_char_boundary(end) {
        end -= 1;
    }
    format!("{} {suffix}", kernel[..end].trim_end())
}
