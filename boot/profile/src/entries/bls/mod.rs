//! Entries of the Boot Loader Specification, type 1: a file each, for systemd-boot and for GRUB where it reads them.

mod entry;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use entry::Entry;

use super::kernel::Kernel;
use super::{Bench, EntryError, Request, suffix, title};
use crate::command_line;
use crate::profile::Profile;

/// The first line of each file of ours.
pub const HEAD: &str = "# Made by bench-profile, made anew with each kernel: edit /etc/bench-profile/machine.toml instead";
/// How that line begins, in this and other versions.
const MARK: &str = "# Made by bench-profile";

/// What becomes of a folder of entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// Each file that is to be otherwise: its new text, or none where it goes. Those that boot a normal system come
    /// first, what goes comes last.
    pub changes: Vec<(String, Option<String>)>,
    /// What a person should know.
    pub notes: Vec<String>,
}

/// What becomes of a folder, given its files by name, when each kernel of this machine has an entry for each profile.
/// Entries of kernels that are gone go as well.
///
/// # Errors
///
/// Nothing in it matches, a file has the name of one of ours, or a command line cannot be merged. [`orphans`] are to
/// go even so.
pub fn regenerate(
    files: &BTreeMap<String, String>,
    request: &Request<'_>,
) -> Result<Files, EntryError> {
    let mut out = Files::default();
    let entries = own_kernels(files, request);
    let mut fresh: BTreeMap<String, String> = BTreeMap::new();
    let mut repaired = Vec::new();
    let mut seen = Vec::new();
    for (name, entry) in &entries {
        let options = entry.options().unwrap_or_else(|| entry.implied_options());
        // A kernel that was installed during a boot into a profile may have got that boot's command line.
        let clean = command_line::stripped(&options).join(" ");
        if command_line::booted(&options) != Ok(None) {
            repaired.push(((*name).to_owned(), Some(entry.with_options(&clean))));
            out.notes.push(format!(
                "{name} had the command line of a boot into a profile: that was taken out of it"
            ));
        }
        let kernel = kernel(name, entry);
        seen.push(kernel.title.to_owned());
        if !kernel.is_wanted(request) {
            continue;
        }
        for profile in Profile::ALL {
            let line =
                command_line::merged(&options, request.machine, profile).map_err(|error| {
                    EntryError::CommandLine {
                        entry: (*name).to_owned(),
                        error,
                    }
                })?;
            let file = file_name(name, entry, profile);
            if files.get(&file).is_some_and(|text| !is_ours(text)) {
                return Err(EntryError::Foreign(file));
            }
            fresh.insert(file, clone(entry, profile, &line));
        }
    }
    if fresh.is_empty() {
        return Err(EntryError::no_match(request, &seen));
    }
    out.changes.extend(repaired);
    out.changes.extend(
        fresh
            .iter()
            .filter(|(name, text)| files.get(*name) != Some(text))
            .map(|(name, text)| (name.clone(), Some(text.clone()))),
    );
    out.changes.extend(
        files
            .iter()
            .filter(|(name, text)| is_ours(text) && !fresh.contains_key(*name))
            .map(|(name, _)| (name.clone(), None)),
    );
    Ok(out)
}

/// Our files whose kernel has no entry any more: they would start what is no longer there.
pub fn orphans(files: &BTreeMap<String, String>, request: &Request<'_>) -> Vec<String> {
    let alive: Vec<String> = own_kernels(files, request)
        .iter()
        .flat_map(|(name, entry)| Profile::ALL.map(|profile| file_name(name, entry, profile)))
        .collect();
    files
        .iter()
        .filter(|(name, text)| is_ours(text) && !alive.contains(name))
        .map(|(name, _)| name.clone())
        .collect()
}

/// The entries of profiles in a folder.
pub fn benches(files: &BTreeMap<String, String>) -> Vec<Bench> {
    let mut benches: Vec<Bench> = files
        .iter()
        .filter(|(_, text)| is_ours(text))
        .filter_map(|(name, text)| {
            let entry = Entry::parse(text);
            let profile = command_line::booted(&entry.options()?).ok().flatten()?;
            Some(Bench {
                profile,
                kernel: entry.value("version").or(entry.kernel_path())?.to_owned(),
                id: name.clone(),
            })
        })
        .collect();
    // The newest kernel first, as far as names tell.
    benches.reverse();
    benches
}

fn is_ours(text: &str) -> bool {
    text.starts_with(MARK)
}

/// Each normal kernel of this machine.
fn own_kernels<'f>(
    files: &'f BTreeMap<String, String>,
    request: &Request<'_>,
) -> Vec<(&'f str, Entry<'f>)> {
    files
        .iter()
        .filter(|(name, text)| entry::stem(name).is_some() && !is_ours(text))
        .map(|(name, text)| (name.as_str(), Entry::parse(text)))
        .filter(|(name, entry)| {
            entry.kernel_path().is_some()
                && !kernel(name, entry).is_special()
                && is_of_machine(name, entry, request)
        })
        .collect()
}

/// The id that the entry names, else that of its file; an entry without either is this machine's.
fn is_of_machine(name: &str, entry: &Entry<'_>, request: &Request<'_>) -> bool {
    let of_file = Kernel {
        path: name,
        ..Kernel::default()
    };
    let named = entry.value("machine-id").or(of_file.machine_id());
    let own = request.machine_id.map(|id| id.as_str());
    named.is_none_or(|id| Some(id.to_ascii_lowercase().as_str()) == own)
}

fn kernel<'e>(name: &'e str, entry: &Entry<'e>) -> Kernel<'e> {
    Kernel {
        title: entry.value("title").unwrap_or(name),
        path: entry.kernel_path().unwrap_or_default(),
        initrds: entry.values("initrd").collect(),
        names: entry.value("version").into_iter().chain([name]).collect(),
    }
}

/// The file of ours for an entry. Entries that name no sort key are sorted by their files' names, and ours must not
/// be first: nothing sorts below a lone `A`.
fn file_name(name: &str, entry: &Entry<'_>, profile: Profile) -> String {
    let stem = entry::without_counters(name);
    match entry.value("sort-key") {
        Some(_) => format!("{stem}-bench-{profile}{}", entry::EXTENSION),
        None => format!("A-bench-{profile}-{stem}{}", entry::EXTENSION),
    }
}

fn clone(entry: &Entry<'_>, profile: Profile, options: &str) -> String {
    let mut text = format!("{HEAD}\n");
    let mut titled = false;
    for (key, value) in entry.pairs() {
        let value = match key {
            "options" | "grub_hotkey" => continue,
            "title" if titled => continue,
            "title" => {
                titled = true;
                title(value, profile)
            }
            // Behind the normal entries of the same system, whatever becomes of those.
            "sort-key" => format!("{value}-bench"),
            _ => value.to_owned(),
        };
        text.push_str(&format!("{key} {value}\n"));
    }
    if !titled {
        text.push_str(&format!("title {}\n", suffix(profile)));
    }
    text.push_str(&format!("options {options}\n"));
    text
}
