//! `cargo xtask images`.

use anyhow::Result;

use crate::images::{self, Recipe};

/// Arguments of `cargo xtask images`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Images to build; all of them unless named.
    names: Vec<String>,
    /// Only lists what is cached.
    #[arg(long, conflicts_with_all = ["clean", "names"])]
    list: bool,
    /// Removes all cached images, also those of older recipes.
    #[arg(long, conflicts_with = "names")]
    clean: bool,
}

/// Builds, lists or removes images.
pub fn run(args: &Args) -> Result<()> {
    if args.clean {
        return images::clean();
    }
    if args.list {
        for image in images::list()? {
            let state = if image.current { "current" } else { "stale" };
            println!("{state:8} {}", image.path.display());
        }
        return Ok(());
    }
    let known: Vec<String> = Recipe::all()
        .iter()
        .map(|recipe| recipe.name.to_owned())
        .collect();
    let names = if args.names.is_empty() {
        &known
    } else {
        &args.names
    };
    for name in names {
        println!("{name:16} {}", images::ensure(name)?.display());
    }
    Ok(())
}
