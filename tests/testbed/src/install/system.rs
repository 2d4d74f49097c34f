//! The product for the machine: `--system`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};

use super::dist::Dist;
use super::files::{self, Superseded, below, remove};
use super::folders::Folders;
use super::layout::{self, Content, Item, Part};
use super::manifest::Manifest;
use super::session::{Session, Systemctl};
use super::staged::Staged;
use super::{BENCH_UNIT, FOLDER, InstallArgs, UninstallArgs, foreign, older};

/// The description of the machine: the person's, and kept.
const MACHINE: &str = "/etc/bench-profile/machine.toml";
/// Below it, a folder for each time that something was replaced.
const BACKUPS: &str = "/var/backups/bench-profile";
/// What bench-prepd put there before it changed the machine.
const ORIGINALS: &str = "/run/bench-profile/originals.json";
/// The bench service, which the bus starts.
const SERVICE: &str = "bench-prepd.service";

/// The machine that is installed to. A test has one of its own.
struct Machine {
    root: PathBuf,
    folders: Folders,
    prefix: PathBuf,
}

impl Machine {
    fn new(root: &Path, prefix: &Path) -> Result<Machine> {
        ensure!(
            prefix != Path::new("/usr"),
            "/usr belongs to the packages of the distribution; use /usr/local, or DESTDIR to make a package"
        );
        Ok(Machine {
            root: root.to_owned(),
            folders: Folders::system(prefix)?,
            prefix: prefix.to_owned(),
        })
    }

    fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        below(&self.root, path.as_ref())
    }

    fn manifest(&self) -> PathBuf {
        self.prefix.join("share").join(FOLDER).join("manifest")
    }

    fn installed(&self) -> Result<Option<Manifest>> {
        Manifest::read(&self.at(self.manifest()), &self.folders.roots())
    }
}

/// Installs for the machine.
pub fn install(args: &InstallArgs) -> Result<()> {
    require_root()?;
    let machine = Machine::new(Path::new("/"), args.prefix())?;
    let mut session = Systemctl::system();
    may_install(&machine, &mut session, args)?;
    let dist = args.dist(&args.parts())?;
    install_into(&machine, &dist, &mut session, args)
}

/// Uninstalls what was installed for the machine.
pub fn uninstall(args: &UninstallArgs) -> Result<()> {
    require_root()?;
    let prefix = args.prefix.as_deref().unwrap_or(Path::new("/usr/local"));
    let machine = Machine::new(Path::new("/"), prefix)?;
    uninstall_from(&machine, &mut Systemctl::system(), args)
}

fn require_root() -> Result<()> {
    ensure!(
        nix::unistd::Uid::effective().is_root(),
        "--system changes files of the machine: run it as root. cargo need not be root's: build as yourself, then \
         sudo target/debug/xtask install --system --dist FOLDER"
    );
    Ok(())
}

/// What stands in the way, told before anything is built or written.
fn may_install(machine: &Machine, session: &mut impl Session, args: &InstallArgs) -> Result<()> {
    let ours = machine.installed()?.unwrap_or_default();
    let old: Vec<PathBuf> = older::find(&machine.root, &ours.files)
        .into_iter()
        .map(|path| machine.at(path))
        .collect();
    let ours = Manifest {
        files: ours.files.iter().map(|path| machine.at(path)).collect(),
        folders: vec![],
    };
    let targets: Vec<PathBuf> = layout::targets(&machine.folders, &args.parts())?
        .into_iter()
        .map(|path| machine.at(path))
        .collect();
    foreign::check(&targets, &ours, &old)?;
    if let (Err(error), false) = (session.reachable(), args.no_start) {
        bail!(
            "systemd does not answer ({error:#}); nothing was changed. With --no-start the files alone are installed"
        );
    }
    Ok(())
}

fn install_into(
    machine: &Machine,
    dist: &Dist,
    session: &mut impl Session,
    args: &InstallArgs,
) -> Result<()> {
    let parts = args.parts();
    let before = machine.installed()?;
    let ours = before.clone().unwrap_or_default();
    let old = older::find(&machine.root, &ours.files);
    let mut items = layout::items(&machine.folders, &parts, dist)?;
    let machine_file = if parts.contains(&Part::Bench) {
        machine_file(machine, dist)?
    } else {
        None
    };
    back_up(machine, &items, &old)?;

    let mut superseded = Superseded::default();
    for path in &old {
        superseded.add(&machine.at(path))?;
    }
    let mut manifest = Manifest {
        files: items.iter().map(|item| item.target.clone()).collect(),
        folders: ours.folders.clone(),
    };
    // What another part brought stays until it is uninstalled.
    let known = layout::targets(&machine.folders, &[Part::Guard, Part::Bench])?;
    for file in ours.files.iter().filter(|file| known.contains(file)) {
        if !manifest.files.contains(file) {
            manifest.files.push(file.clone());
        }
    }
    items.extend(machine_file);
    let mut staged = Staged::default();
    for item in &items {
        staged.add(&Item {
            target: machine.at(&item.target),
            content: item.content.clone(),
        })?;
    }
    let list = machine.at(machine.manifest());
    staged.folder(list.parent().unwrap_or(&machine.root))?;
    let made: Vec<PathBuf> = staged
        .folders()
        .iter()
        .filter_map(|folder| folder.strip_prefix(&machine.root).ok())
        .map(|folder| Path::new("/").join(folder))
        .collect();
    manifest.add_folders(&made, &machine.folders.roots(), Path::new(MACHINE));
    staged.add(&Item::file(list, manifest.to_text().into_bytes(), 0o644))?;
    staged.commit()?;
    superseded.keep();
    for item in &items {
        println!("installed {}", item.target.display());
    }
    for file in ours
        .files
        .iter()
        .filter(|file| !manifest.files.contains(file))
    {
        remove(&machine.at(file))?;
    }

    if session.reachable().is_err() {
        println!(
            "systemd was not told, since it does not answer; it finds the units when it starts"
        );
        return Ok(());
    }
    session.reload()?;
    if parts.contains(&Part::Bench) {
        // What runs is the old program. It ends without harm: what it must know is in /run.
        session.systemctl(&["stop", SERVICE])?;
        if args.no_start {
            println!("not enabled (--no-start): systemctl enable {BENCH_UNIT}");
        } else if before.is_none() {
            session.systemctl(&["enable", BENCH_UNIT])?;
        }
        println!("installed; see: workload-guard bench status");
    }
    if parts.contains(&Part::Guard) {
        println!(
            "each user who wants the guard: systemctl --user enable --now {}",
            super::UNIT
        );
    }
    Ok(())
}

/// The machine file to be written, if there is none yet.
fn machine_file(machine: &Machine, dist: &Dist) -> Result<Option<Item>> {
    if files::exists(&machine.at(MACHINE)) {
        println!("kept your {MACHINE}");
        return Ok(None);
    }
    let text = if let Some(old) = older::machine(&machine.root) {
        let path = machine.at(&old);
        let words = ["bench", "config", "--import", &path.to_string_lossy()].map(str::to_owned);
        let text = dist.ask_cli(&words).with_context(|| {
            format!(
                "{} cannot be taken over; nothing was changed. Put a {MACHINE} there yourself, and install again",
                old.display()
            )
        })?;
        println!("took over {} into {MACHINE}", old.display());
        text
    } else {
        match dist.ask_cli(&["bench", "plan"]) {
            Ok(text) => {
                println!("{MACHINE} is what `bench plan` proposes; look at it before you measure");
                text
            }
            Err(error) => {
                println!("note: no {MACHINE} was written, since none can be proposed: {error:#}");
                return Ok(None);
            }
        }
    };
    Ok(Some(Item::file(MACHINE.into(), text, 0o644)))
}

/// Copies what will be renamed or replaced, and what the boot loader reads. Our own programs are not worth it.
fn back_up(machine: &Machine, items: &[Item], old: &[PathBuf]) -> Result<()> {
    let replaced = items.iter().filter(|item| match &item.content {
        Content::File { bytes, mode } => {
            let there = fs::read(machine.at(&item.target));
            mode & 0o111 == 0 && there.is_ok_and(|there| there != *bytes)
        }
        Content::Link(_) => false,
    });
    let mut paths: Vec<PathBuf> = replaced.map(|item| item.target.clone()).collect();
    paths.extend(old.iter().cloned());
    paths.sort();
    paths.dedup();
    if !old.is_empty() {
        paths.extend(older::loader(&machine.root));
    }
    if paths.is_empty() {
        return Ok(());
    }
    let time = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let folder = Path::new(BACKUPS).join(stamp(time));
    older::back_up(&machine.root, &paths, &folder)?;
    println!("backed up {} paths to {}", paths.len(), folder.display());
    Ok(())
}

/// Seconds since 1970 as `20260131T235959Z`.
fn stamp(seconds: u64) -> String {
    // Days to a date: Howard Hinnant's civil_from_days, for days after 1970.
    let days = seconds / 86_400 + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 {
        month_index + 3
    } else {
        month_index - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let second = seconds % 86_400;
    format!(
        "{year:04}{month:02}{day:02}T{:02}{:02}{:02}Z",
        second / 3_600,
        second / 60 % 60,
        second % 60
    )
}

fn uninstall_from(
    machine: &Machine,
    session: &mut impl Session,
    args: &UninstallArgs,
) -> Result<()> {
    let manifest = machine.installed()?;
    if let Some(manifest) = &manifest {
        ensure!(
            !files::exists(&machine.at(ORIGINALS)),
            "a profile is applied, and what was there before could not be put back afterwards; nothing was changed. \
             First: workload-guard bench restore (or reboot)"
        );
        let reachable = session.reachable().is_ok();
        if reachable && manifest.files.iter().any(|file| file.ends_with(SERVICE)) {
            session.systemctl(&["disable", "--now", BENCH_UNIT])?;
            session.systemctl(&["stop", SERVICE])?;
        }
        for file in &manifest.files {
            remove(&machine.at(file))?;
        }
        remove(&machine.at(machine.manifest()))?;
        for folder in manifest.folders.iter().rev() {
            if fs::remove_dir(machine.at(folder)).is_ok() {
                println!("removed {}", folder.display());
            }
        }
        if reachable {
            session.reload()?;
        }
    } else {
        println!(
            "nothing is installed here: there is no {}",
            machine.manifest().display()
        );
    }
    let file = machine.at(MACHINE);
    if args.purge {
        remove(&file)?;
        if let Some(folder) = file.parent() {
            // Somebody else's file keeps it.
            let _ = fs::remove_dir(folder);
        }
    } else if files::exists(&file) {
        println!("kept {MACHINE}; --purge removes it");
    }
    if files::exists(&machine.at(BACKUPS)) {
        println!("kept {BACKUPS}: what was there before");
    }
    Ok(())
}

#[cfg(test)]
mod tests;
