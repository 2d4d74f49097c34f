//! `cargo xtask install` and `uninstall`: the product for one user, below that user's home.
//!
//! Everything that can be refused is refused before the first file changes; the files then change
//! together or not at all; systemd is told last.

mod dist;
mod foreign;
mod layout;
mod manifest;
mod places;
mod session;
mod staged;
#[cfg(test)]
mod tests;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use dist::Dist;
use manifest::Manifest;
use places::Places;
use session::{Session, Systemctl};
use staged::Staged;

/// The unit that is started.
const UNIT: &str = "workload-guard.service";

/// Arguments of `cargo xtask install`.
///
/// Programs go to ~/.local/bin and ~/.local/lib/linux-workload-guard (file-hierarchy(7) knows no
/// ~/.local/libexec); units, D-Bus activation, manual and completions below ~/.local/share, which leaves
/// ~/.config/systemd/user to the person.
#[derive(Debug, Default, clap::Args)]
#[command(after_help = "\
Programs go to ~/.local/bin and ~/.local/lib/linux-workload-guard; units, D-Bus activation, manual page and \
completions below ~/.local/share. ~/.config/linux-workload-guard/guard.toml is written only when there is none. \
An installed version is replaced; the guard is restarted if it ran, and its routes are kept.")]
pub struct InstallArgs {
    /// Installs what lies in FOLDER (workload-guard, workload-guardd, units/, config/) instead of building it.
    #[arg(long, value_name = "FOLDER")]
    dist: Option<PathBuf>,
    /// Installs the files, but neither enables nor starts the guard.
    #[arg(long)]
    no_start: bool,
    /// Installs for root as well, which seldom has a user manager.
    #[arg(long)]
    force: bool,
}

/// Arguments of `cargo xtask uninstall`.
#[derive(Debug, Default, clap::Args)]
#[command(after_help = "\
Removes exactly the files that install wrote. Settings and history are kept; routed work goes on where it is.")]
pub struct UninstallArgs {
    /// Removes settings, history and state as well.
    #[arg(long)]
    purge: bool,
}

/// Installs for the user who runs it.
pub fn install(args: InstallArgs) -> Result<()> {
    if nix::unistd::Uid::effective().is_root() && !args.force {
        bail!(
            "this is root, and the guard is a service of the user whose work it watches: \
             run it as that user (or with --force, when root's own user manager is meant)"
        );
    }
    let places = Places::from_environment()?;
    let mut session = Systemctl::new();
    may_install(&places, &mut session, &args)?;
    let dist = match &args.dist {
        Some(folder) => Dist::at(folder)?,
        None => Dist::build()?,
    };
    install_into(&places, &dist, &mut session, &args)
}

/// Uninstalls for the user who runs it.
pub fn uninstall(args: UninstallArgs) -> Result<()> {
    uninstall_from(&Places::from_environment()?, &mut Systemctl::new(), &args)
}

/// What stands in the way, told before anything is built or written.
fn may_install(places: &Places, session: &mut impl Session, args: &InstallArgs) -> Result<()> {
    foreign::check(places, &Manifest::read(places)?.unwrap_or_default())?;
    if let (Err(error), false) = (session.reachable(), args.no_start) {
        bail!(
            "no systemd user manager to start the guard ({error:#}); nothing was changed. Log in as this user or run \
             `loginctl enable-linger`, or install the files alone with --no-start"
        );
    }
    Ok(())
}

fn install_into(
    places: &Places,
    dist: &Dist,
    session: &mut impl Session,
    args: &InstallArgs,
) -> Result<()> {
    let before = Manifest::read(places)?;
    let reachable = session.reachable();
    let ran = reachable.is_ok()
        && session.succeeds(&["systemctl", "--user", "--quiet", "is-active", UNIT]);
    write_files(places, dist, before.as_ref())?;
    for path in foreign::overriding(places) {
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
    tell_systemd(session)?;
    check_unit(places, session)?;
    let first = before.is_none();
    match (args.no_start, first, ran) {
        (true, _, _) => {
            println!("not started (--no-start); to start it: systemctl --user enable --now {UNIT}")
        }
        (false, true, _) => session
            .run(&["systemctl", "--user", "enable", "--now", UNIT])
            .with_context(not_started)?,
        (false, false, true) => session
            .run(&["systemctl", "--user", "restart", UNIT])
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
fn write_files(places: &Places, dist: &Dist, before: Option<&Manifest>) -> Result<()> {
    let items = layout::items(places, dist)?;
    let mut staged = Staged::default();
    for item in &items {
        staged.add(item)?;
    }
    let config = places.config.join("guard.toml");
    let write_config = fs::symlink_metadata(&config).is_err();
    if write_config {
        staged.add(&layout::Item::file(
            config.clone(),
            dist.default_settings()?,
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
    manifest.add_folders(staged.folders(), places);
    staged.add(&layout::Item::file(
        path,
        manifest.to_text().into_bytes(),
        0o644,
    ))?;
    staged.commit()?;

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
    let read = session.output(&[
        "systemctl",
        "--user",
        "show",
        "--property=FragmentPath",
        "--value",
        UNIT,
    ])?;
    match read.trim() {
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

fn tell_systemd(session: &mut impl Session) -> Result<()> {
    session.run(&["systemctl", "--user", "daemon-reload"])?;
    // dbus-broker finds a new activation file only when told; dbus-daemon does not mind.
    session.run(&[
        "busctl",
        "--user",
        "call",
        "org.freedesktop.DBus",
        "/org/freedesktop/DBus",
        "org.freedesktop.DBus",
        "ReloadConfig",
    ])
}

fn uninstall_from(places: &Places, session: &mut impl Session, args: &UninstallArgs) -> Result<()> {
    let manifest = Manifest::read(places)?;
    let reachable = session.reachable().is_ok();
    if let Some(manifest) = &manifest {
        if reachable {
            session.run(&["systemctl", "--user", "disable", "--now", UNIT])?;
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
            tell_systemd(session)?;
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
            fs::remove_dir_all(&folder)
                .with_context(|| format!("cannot remove {}", folder.display()))?;
            println!("removed {} ({what})", folder.display());
        } else {
            println!("kept {} ({what}); --purge removes it", folder.display());
        }
    }
    if manifest.is_some() {
        println!("uninstalled; work that was routed goes on where it is");
    }
    Ok(())
}

/// Removes a file or link that may be gone already.
fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Ok(()) => println!("removed {}", path.display()),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => {
            return Err(error).with_context(|| format!("cannot remove {}", path.display()));
        }
    }
    Ok(())
}

fn on_path(folder: &Path) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|entry| entry == folder))
}
