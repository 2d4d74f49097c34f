//! Root trees of Debian suites, cached outside the checkout.
//!
//! A tree is built under a temporary name and renamed when it is complete, under a lock, so that a tree that has its
//! final name is whole. Its name carries a hash of its recipe: another recipe never finds it.

mod build;
mod place;
pub mod recipe;

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};

use crate::host;
use crate::host::packages::{self, Package};
use crate::progress;
pub use recipe::Recipe;

/// The folder that holds the images: in the user's cache, or, without root and in a home that is closed to others, in
/// a folder of the user's below /var/tmp. There a tree belongs to subordinate user ids, which have to get to it.
pub fn cache() -> Result<PathBuf> {
    let cache = root()?.join("images");
    if host::is_root() || place::is_open(&cache)? {
        return Ok(cache);
    }
    place::in_var_tmp()
}

/// The folder that holds the machine tier's snapshots.
pub fn machines() -> Result<PathBuf> {
    Ok(root()?.join("machine"))
}

/// The project's folder below `$XDG_CACHE_HOME` or `~/.cache`.
fn root() -> Result<PathBuf> {
    let base = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        // The base directory specification: a relative path is to be ignored.
        .filter(|path| path.is_absolute())
        .or_else(|| std::env::home_dir().map(|home| home.join(".cache")))
        .ok_or_else(|| anyhow!("no cache folder: neither XDG_CACHE_HOME nor HOME is set"))?;
    Ok(base.join("linux-workload-guard"))
}

/// The host packages that building an image takes, and changing one without root.
pub fn packages() -> &'static [Package] {
    if host::is_root() {
        packages::IMAGES
    } else {
        packages::IMAGES_UNPRIVILEGED
    }
}

/// The root tree of the image `name`, built now unless it is there already.
///
/// Never write to it: it is shared by all runs, also those of other checkouts.
pub fn ensure(name: &str) -> Result<PathBuf> {
    let recipe = Recipe::named(name)?;
    let cache = cache()?;
    let tree = cache.join(recipe.directory());
    if place::is_whole(&tree) {
        return Ok(tree);
    }
    packages::require(&[packages()])?;
    let _lock = lock(&cache, &recipe)?;
    // Another run may have built it while we waited.
    if !place::is_whole(&tree) {
        build::remove_tree(&tree)?;
        let partial = cache.join(format!("{}.partial", recipe.directory()));
        build::remove_tree(&partial)?;
        if let Err(error) = build::build(&recipe, &host::debian_mirror(), &partial) {
            // The error that matters is the one that we have.
            if let Err(left) = build::remove_tree(&partial) {
                progress::say(&format!("warning: {left:#}"));
            }
            return Err(error);
        }
        fs::rename(&partial, &tree).with_context(|| {
            format!("cannot rename {} to {}", partial.display(), tree.display())
        })?;
    }
    Ok(tree)
}

/// One builder of an image at a time; released when the file is dropped, also by a crash.
fn lock(cache: &Path, recipe: &Recipe) -> Result<File> {
    fs::create_dir_all(cache)
        .with_context(|| format!("cannot create the cache folder {}", cache.display()))?;
    let path = cache.join(format!(".{}.lock", recipe.name));
    let file = File::create(&path).with_context(|| format!("cannot create {}", path.display()))?;
    if file.try_lock().is_err() {
        progress::say(&format!(
            "image {}: another run builds it, waiting",
            recipe.name
        ));
        file.lock()
            .with_context(|| format!("cannot lock {}", path.display()))?;
    }
    Ok(file)
}

/// What a folder in the cache is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cached {
    /// Path of the tree.
    pub path: PathBuf,
    /// Whether a recipe of this checkout makes it.
    pub current: bool,
}

/// Everything in the cache, sorted by name, also trees of older recipes and of interrupted runs.
pub fn list() -> Result<Vec<Cached>> {
    let cache = cache()?;
    let current: Vec<_> = Recipe::all().iter().map(Recipe::directory).collect();
    let mut found: Vec<Cached> = fs::read_dir(&cache)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        // Locks and mount points.
        .filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
        .map(|entry| Cached {
            current: current
                .iter()
                .any(|name| *name == *entry.file_name().to_string_lossy()),
            path: entry.path(),
        })
        .collect();
    found.sort_by(|left, right| left.path.cmp(&right.path));
    Ok(found)
}

/// Removes everything from the cache, the machine's snapshots too. Waits for builds that run.
pub fn clean() -> Result<()> {
    let machines = machines()?;
    if machines.is_dir() {
        progress::say(&format!("removing {}", machines.display()));
        fs::remove_dir_all(&machines)
            .with_context(|| format!("cannot remove {}", machines.display()))?;
    }
    let cache = cache()?;
    if !cache.is_dir() {
        return Ok(());
    }
    let _locks: Vec<File> = Recipe::all()
        .iter()
        .map(|recipe| lock(&cache, recipe))
        .collect::<Result<_>>()?;
    for image in list()? {
        progress::say(&format!("removing {}", image.path.display()));
        build::remove_tree(&image.path)?;
    }
    Ok(())
}
