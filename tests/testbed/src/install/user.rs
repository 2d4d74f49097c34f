//! The product for one user, below that user's home.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::dist::Dist;
use super::files::{self, remove};
use super::folders::Folders;
use super::layout::{self, Part};
use super::manifest::Manifest;
use super::original::{self, Original, Takeover};
use super::places::Places;
use super::session::Session;
use super::staged::Staged;
use super::{InstallArgs, UNIT, UninstallArgs, foreign};

/// What somebody may have enabled.
const ENABLED: [&str; 2] = [UNIT, "workload-guard-metrics.timer"];

/// A user has the guard; the bench profiles are the machine's.
const PARTS: &[Part] = &[Part::Guard];

/// Installs for one user.
pub fn install(places: &Places, session: &mut impl Session, args: &InstallArgs) -> Result<()> {
    let original = may_install(places, session, args)?;
    let dist = args.dist(PARTS)?;
    install_into(places, &dist, session, args, original.as_ref())
}

/// What stands in the way, told before anything is built or written. Answers what somebody agreed to replace.
fn may_install(
    places: &Places,
    session: &mut impl Session,
    args: &InstallArgs,
) -> Result<Option<Original>> {
    let ours = installed(places)?.unwrap_or_default();
    let targets = targets(places)?;
    let original = Original::find(places, &targets, &ours.files);
    if let Some(original) = &original {
        original.consent(places, args.replace_original)?;
    }
    let agreed = original
        .as_ref()
        .map_or(&[][..], |original| &original.files);
    foreign::check(&targets, &ours, agreed)?;
    if let (Err(error), false) = (session.reachable(), args.no_start) {
        bail!(
            "no systemd user manager to start the guard ({error:#}); nothing was changed. Log in as this user or run \
             `loginctl enable-linger`, or install the files alone with --no-start"
        );
    }
    Ok(original)
}

fn installed(places: &Places) -> Result<Option<Manifest>> {
    Manifest::read(&places.manifest(), &Folders::home(places).roots())
}

fn targets(places: &Places) -> Result<Vec<PathBuf>> {
    layout::targets(&Folders::home(places), PARTS)
}

fn install_into(
    places: &Places,
    dist: &Dist,
    session: &mut impl Session,
    args: &InstallArgs,
    original: Option<&Original>,
) -> Result<()> {
    let before = installed(places)?;
    let reachable = session.reachable();
    let ran = reachable.is_ok() && session.is_active(UNIT);
    let takeover = original::take_over(original, places, dist, session)?;
    let original_ran = takeover.as_ref().is_some_and(|takeover| takeover.ran);
    write_files(places, dist, before.as_ref(), takeover).with_context(|| {
        original.map_or_else(
            || "nothing was installed".to_owned(),
            |_| original::context(original_ran),
        )
    })?;
    for path in overriding(places)? {
        println!(
            "note: {} is yours and wins over the installed one",
            path.display()
        );
    }
    if reachable.is_err() {
        println!(
            "not started: there is no systemd user manager; it will find the units when it starts"
        );
        println!("then: systemctl --user enable --now {UNIT}");
        return Ok(());
    }
    session.reload()?;
    check_unit(places, session)?;
    let first = before.is_none();
    match (args.no_start, first, ran) {
        (true, _, _) => {
            println!("not started (--no-start); to start it: systemctl --user enable --now {UNIT}")
        }
        (false, true, _) => session
            .systemctl(&["enable", "--now", UNIT])
            .with_context(not_started)?,
        (false, false, true) => session
            .systemctl(&["restart", UNIT])
            .with_context(not_started)?,
        (false, false, false) => {
            println!(
                "not started, since it did not run before; to start it: systemctl --user start {UNIT}"
            );
        }
    }
    if !on_path(&places.bin) {
        println!("note: {} is not on your PATH", places.bin.display());
    }
    println!("installed; see: workload-guard status");
    Ok(())
}

fn not_started() -> String {
    format!(
        "the files are installed, but {UNIT} does not start; see: journalctl --user -u {UNIT} -n 30"
    )
}

/// Writes all files, or changes nothing.
fn write_files(
    places: &Places,
    dist: &Dist,
    before: Option<&Manifest>,
    takeover: Option<Takeover>,
) -> Result<()> {
    let items = layout::items(&Folders::home(places), PARTS, dist)?;
    let mut staged = Staged::default();
    for item in &items {
        staged.add(item)?;
    }
    let config = places.config.join("guard.toml");
    let write_config = fs::symlink_metadata(&config).is_err();
    if write_config {
        staged.add(&layout::Item::file(
            config.clone(),
            dist.data("config/guard.toml")?,
            0o644,
        ))?;
    }
    // `systemctl enable` would make it and `disable` would leave it.
    staged.folder(&places.own_units)?;
    let path = places.manifest();
    // Before the list of folders is taken, which it belongs to.
    staged.folder(path.parent().unwrap_or(&places.data))?;
    let mut manifest = Manifest {
        files: items.iter().map(|item| item.target.clone()).collect(),
        // What an earlier installation made is still ours to remove.
        folders: before
            .map(|before| before.folders.clone())
            .unwrap_or_default(),
    };
    let roots = Folders::home(places).roots();
    manifest.add_folders(staged.folders(), &roots, &places.config);
    staged.add(&layout::Item::file(
        path,
        manifest.to_text().into_bytes(),
        0o644,
    ))?;
    staged.commit()?;
    if let Some(takeover) = takeover {
        takeover.finish(places)?;
    }

    for item in &items {
        println!("installed {}", item.target.display());
    }
    println!(
        "{} {}",
        if write_config {
            "installed"
        } else {
            "kept your"
        },
        config.display()
    );
    let gone = before
        .iter()
        .flat_map(|before| &before.files)
        .filter(|file| !manifest.files.contains(file));
    for file in gone {
        remove(file)?;
    }
    Ok(())
}

/// That systemd reads our unit file and no other of that name.
fn check_unit(places: &Places, session: &mut impl Session) -> Result<()> {
    let ours = places.units.join(UNIT);
    let read = session.property(UNIT, "FragmentPath")?;
    match read.as_str() {
        path if Path::new(path) == ours => Ok(()),
        "" => bail!(
            "the files are installed, but the user manager does not read {}: does XDG_DATA_HOME differ between it and \
             this shell? (systemctl --user show-environment)",
            places.units.display()
        ),
        path => bail!(
            "the files are installed, but {path} wins over {}; move it away and install again",
            ours.display()
        ),
    }
}

/// The person's own units with names of ours: systemd reads them instead.
fn overriding(places: &Places) -> Result<Vec<PathBuf>> {
    let targets = targets(places)?;
    let units = targets
        .iter()
        .filter(|path| path.parent() == Some(&places.units));
    let own = units.filter_map(|unit| unit.file_name().map(|name| places.own_units.join(name)));
    Ok(own.filter(|path| files::exists(path)).collect())
}

/// Uninstalls for one user.
pub fn uninstall(places: &Places, session: &mut impl Session, args: &UninstallArgs) -> Result<()> {
    let manifest = installed(places)?;
    let reachable = session.reachable().is_ok();
    if let Some(manifest) = &manifest {
        if reachable {
            let ours = ENABLED.iter().copied();
            let there = ours.filter(|unit| manifest.files.contains(&places.units.join(unit)));
            let words: Vec<&str> = ["disable", "--now"].into_iter().chain(there).collect();
            session.systemctl(&words)?;
        }
        // Left by an `enable` when the user manager is away, and by one that did not end well.
        for link in places.enable_links() {
            if foreign::is_our_link(&link) {
                remove(&link)?;
            }
        }
        for file in &manifest.files {
            remove(file)?;
        }
        remove(&places.manifest())?;
        // The deepest first; one that holds something else stays.
        for folder in manifest.folders.iter().rev() {
            if fs::remove_dir(folder).is_ok() {
                println!("removed {}", folder.display());
            }
        }
        if reachable {
            session.reload()?;
        }
    } else {
        println!(
            "nothing is installed here: there is no {}",
            places.manifest().display()
        );
    }
    for (folder, what) in places.user_data() {
        if !folder.exists() {
            continue;
        }
        if args.purge {
            files::remove_all(&folder, what)?;
        } else {
            println!("kept {} ({what}); --purge removes it", folder.display());
        }
    }
    if manifest.is_some() {
        println!("uninstalled; work that was routed goes on where it is");
    }
    Ok(())
}

fn on_path(folder: &Path) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|entry| entry == folder))
}

#[cfg(test)]
mod tests;
