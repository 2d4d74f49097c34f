//! Entries in a grub.cfg: what `/etc/grub.d/42_bench_profiles` prints for the entries that `10_linux` printed.

pub mod env;
mod script;
#[cfg(test)]
mod tests;

use script::{Menuentry, quoted};

use super::kernel::Kernel;
use super::{Bench, EntryError, Generated, Request, suffix};
use crate::command_line;
use crate::profile::Profile;

/// The generator's name in `/etc/grub.d`: behind all that come with GRUB, so that no row of the menu moves.
pub const GENERATOR: &str = "42_bench_profiles";
/// The generator of the normal entries.
const NATIVE: &str = "10_linux";
/// The submenu that ours are in.
const MENU: &str = "bench-profiles";

/// What the generator prints, given what [`NATIVE`] printed.
///
/// # Errors
///
/// Nothing in it matches, GRUB would not take it, or a command line cannot be merged.
pub fn generate(native: &str, request: &Request<'_>) -> Result<Generated, EntryError> {
    let mut notes = Vec::new();
    if reads_files(native) {
        // GRUB takes the entries of the Boot Loader Specification, and so ours among them.
        return Ok(Generated {
            text: String::new(),
            notes,
        });
    }
    let entries = script::menuentries(native)?;
    let mut kernels: Vec<(&Menuentry<'_>, Kernel<'_>)> = Vec::new();
    let mut seen = Vec::new();
    for entry in &entries {
        let Some(kernel) = kernel(entry) else {
            continue;
        };
        // The newest kernel has one entry at the top and one in the submenu.
        let twice = kernels.iter().any(|(_, known)| known.path == kernel.path);
        if kernel.is_special() || twice {
            continue;
        }
        seen.push(entry.title.as_str());
        if kernel.is_wanted(request) {
            kernels.push((entry, kernel));
        }
    }
    if kernels.is_empty() {
        return Err(EntryError::no_match(request, &seen));
    }
    let mut text = format!("submenu 'Benchmark profiles' $menuentry_id_option '{MENU}' {{\n");
    for (entry, kernel) in &kernels {
        for profile in Profile::ALL {
            text.push_str(&menuentry(entry, kernel, profile, request)?);
        }
    }
    text.push_str("}\n");
    if kernels.iter().any(|(entry, _)| {
        let line = entry.command_line().unwrap_or_default();
        command_line::booted(line) != Ok(None)
    }) {
        notes.push(
            "the normal entries have the command line of a profile: take it out of GRUB_CMDLINE_LINUX in \
             /etc/default/grub"
                .to_owned(),
        );
    }
    Ok(Generated { text, notes })
}

/// A whole grub.cfg with our section made anew, as grub-mkconfig would do it.
///
/// # Errors
///
/// As [`generate`].
pub fn regenerate(text: &str, request: &Request<'_>) -> Result<Generated, EntryError> {
    whole(text)?;
    let native = section(text, NATIVE).map_or("", |at| &text[at]);
    let generated = generate(native, request)?;
    let ours = &generated.text;
    let text = match section(text, GENERATOR) {
        Some(at) => format!("{}{ours}{}", &text[..at.start], &text[at.end..]),
        None if ours.is_empty() => text.to_owned(),
        None => {
            let gap = if text.is_empty() || text.ends_with('\n') {
                ""
            } else {
                "\n"
            };
            format!(
                "{text}{gap}\n{}\n{ours}{}\n",
                begin(GENERATOR),
                end(GENERATOR)
            )
        }
    };
    Ok(Generated {
        text,
        notes: generated.notes,
    })
}

/// Whether a grub.cfg has GRUB read entries of the Boot Loader Specification.
pub fn reads_files(text: &str) -> bool {
    text.lines().any(|line| line.trim() == "blscfg")
}

/// The entries of profiles that a grub.cfg has.
///
/// # Errors
///
/// GRUB would not take our section.
pub fn benches(text: &str) -> Result<Vec<Bench>, EntryError> {
    let Some(at) = section(text, GENERATOR) else {
        return Ok(Vec::new());
    };
    let entries = script::menuentries(&text[at])?;
    Ok(entries
        .iter()
        .filter_map(|entry| {
            let profile = command_line::booted(entry.command_line()?).ok().flatten()?;
            Some(Bench {
                profile,
                kernel: entry.kernel_path()?.to_owned(),
                id: format!("{MENU}>{}", entry.id.as_deref()?),
            })
        })
        .collect())
}

fn begin(name: &str) -> String {
    format!("### BEGIN /etc/grub.d/{name} ###")
}

fn end(name: &str) -> String {
    format!("### END /etc/grub.d/{name} ###")
}

/// Our section ends before another begins; else what is replaced would not be ours alone.
fn whole(text: &str) -> Result<(), EntryError> {
    let is = |line: &str, wanted: &str| line.trim_end() == wanted;
    let mut lines = text.lines().enumerate();
    let Some((first, _)) = lines.find(|(_, line)| is(line, &begin(GENERATOR))) else {
        return Ok(());
    };
    let next = lines.find(|(_, line)| line.starts_with("### "));
    match next.is_some_and(|(_, line)| is(line, &end(GENERATOR)))
        && !lines.any(|(_, line)| is(line, &begin(GENERATOR)))
    {
        true => Ok(()),
        false => Err(EntryError::Malformed {
            line: first + 1,
            reason: format!(
                "the section of {GENERATOR} has no end of its own: `update-grub` or `grub-mkconfig` writes the file anew"
            ),
        }),
    }
}

/// What a generator printed, between the two lines that grub-mkconfig puts around it.
fn section(text: &str, name: &str) -> Option<std::ops::Range<usize>> {
    let line = |wanted: &str, from: usize| {
        let mut at = from;
        text[from..].split_inclusive('\n').find_map(|line| {
            let start = at;
            at += line.len();
            (line.trim_end() == wanted).then_some((start, at))
        })
    };
    let (_, from) = line(&begin(name), 0)?;
    let (to, _) = line(&end(name), from)?;
    Some(from..to)
}

fn kernel<'e>(entry: &'e Menuentry<'_>) -> Option<Kernel<'e>> {
    // A title or flag of several lines could look like the end of a section.
    let flags = entry.flags();
    if entry
        .title
        .chars()
        .chain(flags.chars())
        .any(char::is_control)
    {
        return None;
    }
    Some(Kernel {
        title: &entry.title,
        path: entry.kernel_path()?,
        initrds: Vec::new(),
        names: entry.id.as_deref().into_iter().collect(),
    })
}

/// The version that a kernel's file is named after, as 10_linux takes it.
fn version(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name
        .find(|c: char| c.is_ascii_digit())
        .and_then(|digit| name[..digit].rfind('-'))
    {
        Some(dash) => &name[dash + 1..],
        None => name.split_once('-').map_or(name, |(_, version)| version),
    }
}

fn menuentry(
    entry: &Menuentry<'_>,
    kernel: &Kernel<'_>,
    profile: Profile,
    request: &Request<'_>,
) -> Result<String, EntryError> {
    let version = version(kernel.path);
    let base = entry.command_line().unwrap_or_default();
    // The base is GRUB's own text, quoted as it needs; what is added is not.
    let add = |parameter: String| match is_plain(&parameter) {
        true => parameter,
        false => quoted(&parameter),
    };
    let line = command_line::merged_with(base, request.machine, profile, add).map_err(|error| {
        EntryError::CommandLine {
            entry: entry.title.clone(),
            error,
        }
    })?;
    let title = match kernel.title.contains(version) {
        true => kernel.title.to_owned(),
        false => format!("{}, with Linux {version}", kernel.title),
    };
    let id: String = version
        .chars()
        .map(|c| match c.is_ascii_alphanumeric() || "._+-".contains(c) {
            true => c,
            false => '_',
        })
        .collect();
    let mut text = format!(
        "\tmenuentry {}{} $menuentry_id_option 'bench-{id}-{profile}' {{\n",
        quoted(&format!("{title} {}", suffix(profile))),
        entry.flags(),
    );
    for piece in entry.body_with(&line) {
        text.push_str(&piece);
    }
    text.push_str("\t}\n");
    Ok(text)
}

/// Whether GRUB takes a word as it stands.
fn is_plain(word: &str) -> bool {
    word.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"=,._@:+/-".contains(&byte))
}
