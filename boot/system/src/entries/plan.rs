//! What would become of a loader's files.

use std::collections::BTreeMap;

use bench_profile::entries::{
    Context, EntryError, Generated, MachineId, Request, bls, grub, limine as entries, unified,
};

use super::loader::{self, Loader};
use super::{EntriesError, LARGEST, Options, limine};
use crate::machine;
use crate::root::Root;

/// One file that is to be otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Below the root.
    pub path: String,
    /// What it holds; none where it is not there.
    pub before: Option<String>,
    /// What it is to hold; none where it goes.
    pub after: Option<String>,
}

impl Change {
    /// `written` or `removed`.
    pub fn action(&self) -> &'static str {
        match self.after {
            Some(_) => "written",
            None => "removed",
        }
    }
}

/// What is to be done.
#[derive(Debug)]
pub struct Plan {
    /// Whose files.
    pub loader: Loader,
    /// In the order in which they are written: the machine boots after each of them.
    pub changes: Vec<Change>,
    /// What a person should know, a sentence each.
    pub notes: Vec<String>,
    /// There is nothing to clone, and yet files of kernels that are gone to be taken away.
    pub unmatched: Option<EntriesError>,
}

impl Plan {
    /// As a unified diff; empty when nothing changes.
    pub fn diff(&self, context: Context) -> String {
        self.changes
            .iter()
            .map(|change| {
                let (before, after) = (change.before.as_deref(), change.after.as_deref());
                unified(&change.path, before, after, context)
            })
            .collect()
    }
}

/// Compares what is there with what should be; it writes nothing.
///
/// # Errors
///
/// There is no machine file, no loader, or nothing that can be cloned.
pub fn plan(root: &Root, options: &Options) -> Result<Plan, EntriesError> {
    let file = machine::load(root)?;
    let loader = loader::choose(root, options)?;
    let id = root
        .read("etc/machine-id")?
        .and_then(|text| text.parse::<MachineId>().ok());
    let own_line = own_line(root)?;
    let request = Request {
        machine: &file.machine,
        machine_id: id.as_ref(),
        own_line: &own_line,
        uefi: loader::uefi(root),
    };
    let mut plan = Plan {
        loader,
        changes: Vec::new(),
        notes: Vec::new(),
        unmatched: None,
    };
    match loader {
        Loader::Limine => of_limine(root, options, &request, &mut plan)?,
        Loader::SystemdBoot => of_folders(root, options, &request, &mut plan)?,
        Loader::Grub => of_grub(root, options, &request, &mut plan)?,
    }
    Ok(plan)
}

/// What the generator in `/etc/grub.d` prints, given what the normal one printed.
///
/// # Errors
///
/// There is no machine file, or nothing that can be cloned.
pub fn printed(root: &Root, native: &str) -> Result<Generated, EntriesError> {
    let file = machine::load(root)?;
    let request = Request {
        machine: &file.machine,
        machine_id: None,
        own_line: "",
        uefi: loader::uefi(root),
    };
    grub::generate(native, &request)
        .map_err(|error| EntriesError::entry("etc/grub.d/10_linux", error))
}

/// The machine's command line, for entries that have none: as it is set, else that of this boot.
fn own_line(root: &Root) -> Result<String, EntriesError> {
    for path in ["etc/kernel/cmdline", "usr/lib/kernel/cmdline"] {
        if let Some(text) = root.read(path)? {
            let lines = text
                .lines()
                .filter(|line| !line.trim_start().starts_with('#'));
            return Ok(lines.collect::<Vec<_>>().join(" "));
        }
    }
    let booted = root.read("proc/cmdline")?.unwrap_or_default();
    // The loader's own additions.
    let words = booted.split_whitespace();
    Ok(words
        .filter(|word| !word.starts_with("BOOT_IMAGE=") && !word.starts_with("initrd="))
        .collect::<Vec<_>>()
        .join(" "))
}

/// A file that is written anew takes the place of its name: what a link points to would stay as it was.
fn text_of(root: &Root, path: &str) -> Result<Option<String>, EntriesError> {
    if root.is_link(path) {
        let error = std::io::Error::new(
            std::io::ErrorKind::InvalidInput,
            "it is a symbolic link: put the file itself there",
        );
        return Err(root.error(path, error).into());
    }
    let Some(bytes) = root.bytes(path, LARGEST)? else {
        return Ok(None);
    };
    String::from_utf8(bytes).map(Some).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let error = std::io::Error::new(
            std::io::ErrorKind::InvalidData,
            format!("it is no UTF-8 text (byte {at})"),
        );
        root.error(path, error).into()
    })
}

fn of_limine(
    root: &Root,
    options: &Options,
    request: &Request<'_>,
    plan: &mut Plan,
) -> Result<(), EntriesError> {
    let absent = || EntriesError::Absent(Loader::Limine, "limine.conf".to_owned());
    let found = limine::find(root, options)?.ok_or_else(absent)?;
    let before = text_of(root, &found.path)?.ok_or_else(absent)?;
    let new = entries::regenerate(&before, request)
        .map_err(|error| EntriesError::entry(&found.path, error))?;
    plan.notes.extend(new.notes);
    for hidden in found.hidden {
        plan.notes.push(format!(
            "/{hidden} is not read by Limine while /{} is there (their order differs between its versions)",
            found.path
        ));
    }
    note_images(root, &new.text, plan);
    if new.text != before {
        let enrols_again = options.hook && limine::is_enrolled_by_hooks(root)?;
        if !enrols_again && let Some(program) = limine::enrolled(root, options)? {
            return Err(EntriesError::Enrolled(format!("/{program}")));
        }
        plan.changes.push(Change {
            path: found.path,
            before: Some(before),
            after: Some(new.text),
        });
    }
    Ok(())
}

fn of_folders(
    root: &Root,
    options: &Options,
    request: &Request<'_>,
    plan: &mut Plan,
) -> Result<(), EntriesError> {
    let mut matched = false;
    for folder in loader::folders(root, options) {
        let files = files(root, &folder, &mut plan.notes)?;
        let change = |name: &String, after: Option<String>| Change {
            path: format!("{folder}/{name}"),
            before: files.get(name).cloned(),
            after,
        };
        match bls::regenerate(&files, request) {
            Ok(new) => {
                matched = true;
                let changes = new.changes.into_iter();
                plan.changes
                    .extend(changes.map(|(name, after)| change(&name, after)));
                plan.notes.extend(new.notes);
                note_images(root, &files.values().cloned().collect::<String>(), plan);
            }
            Err(error @ EntryError::NoMatch { .. }) => {
                let gone = bls::orphans(&files, request);
                plan.changes
                    .extend(gone.iter().map(|name| change(name, None)));
                plan.unmatched = Some(EntriesError::entry(&folder, error));
            }
            Err(error) => return Err(EntriesError::entry(&folder, error)),
        }
    }
    if matched {
        plan.unmatched = None;
    }
    // Nothing to clone and nothing to take away is a plain failure.
    match plan.unmatched.take() {
        Some(error) if plan.changes.is_empty() => Err(error),
        unmatched => {
            plan.unmatched = unmatched;
            Ok(())
        }
    }
}

/// The entries in a folder. One that cannot be read is none of ours.
fn files(
    root: &Root,
    folder: &str,
    notes: &mut Vec<String>,
) -> Result<BTreeMap<String, String>, EntriesError> {
    let mut files = BTreeMap::new();
    for name in root.names(folder)? {
        if !name.to_ascii_lowercase().ends_with(".conf") {
            continue;
        }
        match text_of(root, &format!("{folder}/{name}")) {
            Ok(Some(text)) => {
                files.insert(name, text);
            }
            Ok(None) => {}
            Err(error) => notes.push(format!("not looked at: {error}")),
        }
    }
    Ok(files)
}

fn of_grub(
    root: &Root,
    options: &Options,
    request: &Request<'_>,
    plan: &mut Plan,
) -> Result<(), EntriesError> {
    let absent = || EntriesError::Absent(Loader::Grub, "grub.cfg".to_owned());
    let path = format!(
        "{}/grub.cfg",
        loader::grub(root, options).ok_or_else(absent)?
    );
    let before = text_of(root, &path)?.ok_or_else(absent)?;
    if grub::reads_files(&before) {
        return of_folders(root, options, request, plan);
    }
    let new =
        grub::regenerate(&before, request).map_err(|error| EntriesError::entry(&path, error))?;
    plan.notes.extend(new.notes);
    let generator = format!("etc/grub.d/{}", grub::GENERATOR);
    if !root.exists(&generator) {
        plan.notes.push(format!(
            "/{generator} is not installed: the next update of GRUB's configuration takes the entries away"
        ));
    }
    if new.text != before {
        plan.changes.push(Change {
            path,
            before: Some(before),
            after: Some(new.text),
        });
    }
    Ok(())
}

/// A unified kernel image takes its command line from its own signed self where Secure Boot is on.
fn note_images(root: &Root, text: &str, plan: &mut Plan) {
    let has_image = text.to_ascii_lowercase().contains("/efi/linux/");
    if has_image && loader::secure_boot(root) {
        plan.notes.push(
            "Secure Boot is on: a unified kernel image that has a command line of its own ignores that of an entry, so \
             its benchmark entries boot the normal system"
                .to_owned(),
        );
    }
}
