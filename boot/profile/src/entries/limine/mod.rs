//! Entries in a limine.conf, of Limine 8 to 12.

mod block;
mod config;
mod default;
mod machine;
mod strip;
#[cfg(test)]
mod tests;

use config::Config;

use super::{Bench, EntryError, Generated, Request, profile_of_title};
use crate::command_line;

/// First line of what is ours.
pub const BEGIN: &str = "# BEGIN AUTO BENCHMARK ENTRIES";
/// Last line of it.
pub const END: &str = "# END AUTO BENCHMARK ENTRIES";

/// The file with an entry for each kernel and profile in place of those that an earlier run, or an older tool, wrote.
///
/// # Errors
///
/// Limine would not take the file as it is, nothing in it matches, or a command line cannot be merged.
pub fn regenerate(text: &str, request: &Request<'_>) -> Result<Generated, EntryError> {
    let before = Config::parse(text)?;
    let stripped = strip::strip(&before, request)?;
    let config = Config::parse(&stripped.text)?;
    let kernels = machine::kernels(&config, request)?;
    let block = block::block(&config, &kernels, request)?;
    let mut placed = String::new();
    for (number, line) in config.lines.iter().enumerate() {
        if number == block.line {
            placed.push_str(&block.text);
        }
        placed.push_str(line.raw);
    }
    if block.line == config.lines.len() {
        if !placed.is_empty() && !placed.ends_with('\n') {
            placed.push_str(block.ending);
        }
        placed.push_str(&block.text);
    }
    let (text, of_default) = default::kept(&before, &stripped, &placed, request)?;
    let mut notes = stripped.notes;
    notes.extend(of_default);
    if let Some((_, value)) = config.global("remember_last_entry")
        && value.eq_ignore_ascii_case("yes")
    {
        notes.push(
            "`remember_last_entry: yes` makes Limine boot a profile again and again once it was chosen: choose the \
             normal entry in the menu afterwards, or set it to no"
                .to_owned(),
        );
    }
    Ok(Generated { text, notes })
}

/// The entries of profiles that a file has.
///
/// # Errors
///
/// Limine would not take the file.
pub fn benches(text: &str) -> Result<Vec<Bench>, EntryError> {
    let config = Config::parse(text)?;
    let entries = (0..config.entries.len()).filter(|entry| !config.is_folder(*entry));
    Ok(entries
        .filter_map(|entry| {
            let line = machine::command_line(&config, entry)?;
            let profile = command_line::booted(line).ok().flatten()?;
            (profile_of_title(&config.entries[entry].title) == Some(profile)).then(|| Bench {
                profile,
                kernel: machine::path(&config, entry).unwrap_or_default().to_owned(),
                id: default::path_of(&config, entry),
            })
        })
        .collect())
}
