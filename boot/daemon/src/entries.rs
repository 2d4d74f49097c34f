//! What the members about boot entries do, once somebody may. It blocks: call it on a thread of its own.

use std::time::SystemTime;

use bench_profile::entries::Context;
use bench_profile::profile::Profile;
use bench_system::entries::next::{self, Way};
use bench_system::entries::{self, EntriesError, Live, Options};
use bench_system::root::Root;
use workload_guard_dbus::BenchError;
use workload_guard_dbus::bench_types::EntryRow;

use crate::systemd::Systemd;

/// The loader's name; empty when none is known.
pub fn loader(root: &Root) -> String {
    entries::loader(root)
        .map(|loader| loader.name().to_owned())
        .unwrap_or_default()
}

/// Loader, diff and notes.
pub fn preview(root: &Root) -> Result<(String, String, Vec<String>), BenchError> {
    let plan = entries::plan(root, &Options::default()).map_err(refused)?;
    // Whoever asks may not be allowed to read the files: what is not changed is not shown.
    let diff = plan.diff(Context::None);
    let mut notes = plan.notes;
    notes.extend(plan.unmatched.map(|error| error.to_string()));
    Ok((plan.loader.name().to_owned(), diff, notes))
}

/// What was changed, and notes.
pub fn regenerate(root: &Root) -> Result<(Vec<EntryRow>, Vec<String>), BenchError> {
    let now = SystemTime::now();
    let done = entries::regenerate(root, &Options::default(), &mut Live, now).map_err(refused)?;
    let mut notes = done.plan.notes;
    notes.extend(done.backup.map(|folder| entries::kept_in(&folder)));
    let rows = done.plan.changes.iter().map(|change| {
        let (path, action) = (format!("/{}", change.path), change.action().to_owned());
        log::info!("{path}: {action}");
        EntryRow { path, action }
    });
    let rows = rows.collect();
    for note in &notes {
        log::info!("{note}");
    }
    Ok((rows, notes))
}

/// Tells the loader; the entry's name.
pub fn set_next(
    root: &Root,
    systemd: Option<&Systemd>,
    profile: Profile,
) -> Result<String, BenchError> {
    let way = next::way(root, profile).map_err(refused)?;
    let entry = way.entry().to_owned();
    match way {
        Way::Logind(id) => ask_logind(systemd, &id)?,
        Way::Grub(id) => next::tell_grub(root, Some(&id)).map_err(refused)?,
    }
    log::info!("the next boot is {entry}");
    Ok(entry)
}

/// Takes back what it was told.
pub fn clear_next(root: &Root, systemd: Option<&Systemd>) -> Result<(), BenchError> {
    match next::teller(root).map_err(refused)? {
        next::Teller::Logind => ask_logind(systemd, ""),
        next::Teller::Grub => next::tell_grub(root, None).map_err(refused),
        next::Teller::Nobody => Ok(()),
    }
}

fn ask_logind(systemd: Option<&Systemd>, id: &str) -> Result<(), BenchError> {
    let Some(systemd) = systemd else {
        return Err(BenchError::UnsupportedLoader(
            "a recorded tree has no logind that could tell its boot loader".into(),
        ));
    };
    systemd.next_boot(id).map_err(|error| {
        BenchError::UnsupportedLoader(format!(
            "logind cannot tell the boot loader ({error}): it takes a boot by systemd-boot, and an entry that \
             `bootctl list` shows. Choose it in the boot menu"
        ))
    })
}

fn refused(error: EntriesError) -> BenchError {
    let text = error.to_string();
    match error {
        EntriesError::Machine(_) => BenchError::InvalidSettings(text),
        EntriesError::NoLoader
        | EntriesError::Absent(..)
        | EntriesError::Ambiguous(_)
        | EntriesError::Unsupported(_)
        | EntriesError::Enrolled(_) => BenchError::UnsupportedLoader(text),
        EntriesError::Entry { .. } | EntriesError::NoEntry(_) => BenchError::ConfigUnmatched(text),
        EntriesError::Busy(_) => BenchError::Busy(text),
        EntriesError::File(_) | EntriesError::Write { .. } => BenchError::EntriesFailed(text),
    }
}
