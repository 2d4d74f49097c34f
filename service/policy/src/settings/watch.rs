//! What `Watch` and `Unwatch` change: one drop-in of their own, so that no file of the person's is rewritten
//! and no comment lost.

use super::{Layer, Loaded, Sources, load};

/// File name of the drop-in, below `guard.toml.d`.
pub const DROP_IN: &str = "50-watch.toml";
const KEY: &str = "watch.parent_units";

/// What is to be done with the drop-in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It says so already.
    None,
    /// This is to be its text.
    Write(String),
    /// The other sources alone say what is wanted.
    Remove,
}

/// The change after which `add` are watched, and `remove` are not.
///
/// `sources` are all that would be read, the drop-in among them under the name `path`, if it is there.
///
/// # Errors
///
/// In words: which unit is no slice, cannot be watched or is not watched, and which source would win over
/// the drop-in. Nothing is to be written then.
pub fn change(
    sources: &Sources,
    path: &str,
    add: &[String],
    remove: &[String],
) -> Result<Change, String> {
    let now = load(sources).map_err(|errors| {
        format!("the settings are wrong already, and have to be put right first: {errors}")
    })?;
    let mut units = now.settings.watch.parent_units.clone();
    if let Some(unit) = remove.iter().find(|unit| !units.contains(unit)) {
        return Err(format!(
            "{unit} is not watched by itself; these are: {}",
            units.join(", ")
        ));
    }
    units.retain(|unit| !remove.contains(unit));
    units.extend(add.iter().cloned());
    let units = dedup(units);
    if units.is_empty() {
        return Err(
            "nothing would be watched; at least one unit has to be, and \
                    `systemctl --user stop workload-guard` stops the guard"
                .to_owned(),
        );
    }
    if units == now.settings.watch.parent_units {
        return Ok(Change::None);
    }
    let without = without(sources, path);
    if let Ok(bare) = load(&without)
        && bare.settings.watch.parent_units == units
    {
        return Ok(Change::Remove);
    }
    let text = text(&units);
    let then = load(&with(without, path, &text)).map_err(|errors| errors.to_string())?;
    match origin(&then) {
        Some(origin) if !origin.starts_with(path) => Err(format!(
            "`{KEY}` is set by {origin}, which wins over {path}; change it there"
        )),
        _ => Ok(Change::Write(text)),
    }
}

fn text(units: &[String]) -> String {
    let list: Vec<toml::Value> = units.iter().cloned().map(toml::Value::String).collect();
    format!(
        "# Written by `workload-guard watch`, which replaces this file. Without it the other files say what is watched.\n\
         [watch]\nparent_units = {}\n",
        toml::Value::Array(list)
    )
}

fn dedup(units: Vec<String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for unit in units {
        if !kept.contains(&unit) {
            kept.push(unit);
        }
    }
    kept
}

fn without(sources: &Sources, path: &str) -> Sources {
    let mut sources = sources.clone();
    sources.files.retain(|layer| layer.origin != path);
    sources
}

/// Where the drop-in would be read: last, but for the files of its folder that sort after it. The folder is
/// the last one that is read.
fn with(mut sources: Sources, path: &str, text: &str) -> Sources {
    let folder = path.strip_suffix(DROP_IN).unwrap_or(path);
    let comes_after = |layer: &Layer| {
        layer
            .origin
            .strip_prefix(folder)
            .is_some_and(|name| name > DROP_IN)
    };
    let at = sources
        .files
        .iter()
        .position(comes_after)
        .unwrap_or(sources.files.len());
    let layer = Layer {
        origin: path.to_owned(),
        text: text.to_owned(),
    };
    sources.files.insert(at, layer);
    sources
}

fn origin(loaded: &Loaded) -> Option<&str> {
    let row = loaded.effective.iter().find(|row| row.key == KEY)?;
    Some(&row.origin)
}
