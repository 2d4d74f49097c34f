//! `bench boot-entries`: over the bus for people, without it for hooks and trees.

use std::io::Read;
use std::path::Path;
use std::time::SystemTime;

use bench_profile::entries::Context;
use bench_system::entries::{self, Change, EntriesError, Live, Options};
use bench_system::machine::LoadError;
use bench_system::root::Root;
use serde::Serialize;
use workload_guard_dbus::bench_types::EntryRow;

use super::service;
use crate::args::{EntriesAction, PlaceArgs};
use crate::error::CliError;

/// The largest output of a generator that is read, in bytes.
const LARGEST: u64 = 4 << 20;

/// The JSON of `preview`.
#[derive(Serialize)]
struct Preview {
    loader: String,
    diff: String,
    notes: Vec<String>,
}

/// The JSON of `regenerate`.
#[derive(Serialize)]
struct Regenerated {
    changed: Vec<EntryRow>,
    notes: Vec<String>,
}

/// Carries it out.
pub fn run(action: &EntriesAction) -> Result<u8, CliError> {
    match action {
        EntriesAction::Preview { place, json } => {
            let preview = match nix::unistd::geteuid().is_root() || place.is_particular() {
                true => preview(place)?,
                false => ask_preview()?,
            };
            notes(&preview.notes, *json);
            print(&preview, preview.diff.clone(), *json)
        }
        EntriesAction::Regenerate { place, hook, json } => {
            let done = match *hook || place.is_particular() {
                true => regenerate(place, *hook)?,
                false => ask_regenerate()?,
            };
            notes(&done.notes, *json);
            print(&done, text(&done.changed), *json)
        }
        EntriesAction::PrintGrub { root } => print_grub(&root_of(root.as_deref())),
    }
}

fn root_of(folder: Option<&Path>) -> Root {
    Root::new(folder.unwrap_or(Path::new("/")))
}

fn options(place: &PlaceArgs, hook: bool) -> Options {
    Options {
        loader: place.loader,
        boot: place
            .boot
            .as_deref()
            .map(|boot| boot.to_string_lossy().into_owned()),
        hook,
    }
}

fn preview(place: &PlaceArgs) -> Result<Preview, CliError> {
    let root = root_of(place.root.as_deref());
    let plan = entries::plan(&root, &options(place, false)).map_err(explain)?;
    let diff = plan.diff(Context::Usual);
    match plan.unmatched {
        Some(error) if diff.is_empty() => Err(explain(error)),
        unmatched => Ok(Preview {
            loader: plan.loader.to_string(),
            diff,
            notes: plan
                .notes
                .into_iter()
                .chain(unmatched.map(|error| error.to_string()))
                .collect(),
        }),
    }
}

fn regenerate(place: &PlaceArgs, hook: bool) -> Result<Regenerated, CliError> {
    let root = root_of(place.root.as_deref());
    let done = entries::regenerate(&root, &options(place, hook), &mut Live, SystemTime::now());
    match done {
        Ok(done) => {
            let mut notes = done.plan.notes;
            notes.extend(done.backup.map(|folder| entries::kept_in(&folder)));
            Ok(Regenerated {
                changed: done.plan.changes.iter().map(row).collect(),
                notes,
            })
        }
        // Nobody set the profiles up.
        Err(EntriesError::Machine(LoadError::Missing(_))) if hook => Ok(Regenerated {
            changed: Vec::new(),
            notes: Vec::new(),
        }),
        Err(error) => Err(explain(error)),
    }
}

fn row(change: &Change) -> EntryRow {
    EntryRow {
        path: format!("/{}", change.path),
        action: change.action().to_owned(),
    }
}

fn ask_preview() -> Result<Preview, CliError> {
    async_io::block_on(async {
        let service = service::service(&service::connect().await?).await?;
        let (loader, diff, notes) = service::call(&service, "PreviewBootEntries", &()).await?;
        Ok(Preview {
            loader,
            diff,
            notes,
        })
    })
}

fn ask_regenerate() -> Result<Regenerated, CliError> {
    async_io::block_on(async {
        let service = service::service(&service::connect().await?).await?;
        let (changed, notes) = service::call(&service, "RegenerateBootEntries", &()).await?;
        Ok(Regenerated { changed, notes })
    })
}

fn notes(notes: &[String], json: bool) {
    if !json {
        for note in notes {
            eprintln!("note: {note}");
        }
    }
}

fn text(changed: &[EntryRow]) -> String {
    changed
        .iter()
        .map(|row| format!("{} {}\n", row.action, row.path))
        .collect()
}

fn print(view: &impl Serialize, text: String, json: bool) -> Result<u8, CliError> {
    let text = match json {
        true => crate::render::to_json(view),
        false => text,
    };
    crate::print(&text).map(|()| 0)
}

/// Prints all or nothing: what is printed goes into grub.cfg.
fn print_grub(root: &Root) -> Result<u8, CliError> {
    let mut native = Vec::new();
    std::io::stdin()
        .lock()
        .take(LARGEST)
        .read_to_end(&mut native)
        .map_err(|error| CliError::Failed(format!("cannot read standard input: {error}")))?;
    let native = String::from_utf8(native)
        .map_err(|_| CliError::Failed("what 10_linux prints is no UTF-8 text".into()))?;
    match entries::printed(root, &native) {
        Ok(generated) => {
            notes(&generated.notes, false);
            crate::print(&generated.text).map(|()| 0)
        }
        Err(EntriesError::Machine(LoadError::Missing(_))) => Ok(0),
        Err(error) => Err(explain(error)),
    }
}

/// An error, with what it means to whoever may not read or write there.
fn explain(error: EntriesError) -> CliError {
    match error.is_denied() {
        true => CliError::NotPermitted(format!("{error}: root can")),
        false => CliError::Failed(error.to_string()),
    }
}
