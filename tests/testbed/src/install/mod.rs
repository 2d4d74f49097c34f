//! `cargo xtask install` and `uninstall`: the product for one user, or for the machine.
//!
//! Everything that can be refused is refused before the first file changes; the files then change
//! together or not at all; systemd is told last.

mod dist;
mod files;
mod folders;
mod foreign;
mod layout;
mod manifest;
mod older;
mod original;
mod places;
mod session;
mod staged;
mod system;
mod user;

use std::path::{Path, PathBuf};

use anyhow::{Result, bail, ensure};

pub use dist::Dist;
pub use files::stage_below;
pub use folders::Folders;
pub use layout::{Item, Part, packaged};
use places::Places;
use session::Systemctl;

/// The guard's unit.
const UNIT: &str = "workload-guard.service";
/// The unit that brings a boot into a profile.
const BENCH_UNIT: &str = "bench-prep.service";
/// The folder of data, of settings and of the list of what was installed.
const FOLDER: &str = "linux-workload-guard";

/// Arguments of `cargo xtask install`.
#[derive(Debug, Default, clap::Args)]
#[command(after_help = "\
For a user: programs go to ~/.local/bin and ~/.local/lib/linux-workload-guard (or below --prefix); units and D-Bus \
activation to ~/.local/share, where systemd and the bus look. ~/.config/linux-workload-guard/guard.toml is written only \
when there is none. An installed version is replaced; the guard is restarted if it ran, and its routes are kept.\n\n\
With --system, as root: the bench profiles and the command line, below /usr/local or --prefix; the bus policy goes to \
/etc/dbus-1/system.d and the polkit actions to /usr/share/polkit-1/actions, since nothing reads them elsewhere. \
What is replaced is copied to /var/backups/bench-profile/TIME first. An existing /etc/bench-profile/machine.toml is \
kept; else the older tools' machine.conf is taken over, or `bench plan` proposes one.\n\n\
With the variable DESTDIR the files go below that folder and nothing else happens: no systemd is told, and no list for \
`uninstall` is kept. With --system it is exactly the parts that were named, with their settings for all users, as a \
package wants them.")]
pub struct InstallArgs {
    /// Installs what lies in FOLDER (programs, units, config, polkit) instead of building it.
    #[arg(long, value_name = "FOLDER")]
    dist: Option<PathBuf>,
    /// Installs the files, but neither enables nor starts anything.
    #[arg(long)]
    no_start: bool,
    /// Installs for root as well, which seldom has a user manager.
    #[arg(long, conflicts_with = "system")]
    force: bool,
    /// Where programs, manual and completions go; /usr/local with --system, else ~/.local.
    #[arg(long, value_name = "FOLDER")]
    prefix: Option<PathBuf>,
    /// Installs for the machine.
    #[arg(long)]
    system: bool,
    /// With --system: what to install, more than once for several; the bench profiles by default.
    #[arg(long = "part", value_name = "PART", requires = "system")]
    parts: Vec<Part>,
    /// Stops an installed Python original and takes over its settings; its files are renamed to *.superseded.
    #[arg(long, conflicts_with = "system")]
    replace_original: bool,
    /// With DESTDIR: writes the paths of the files there, one a line and without DESTDIR.
    #[arg(long, value_name = "FILE")]
    list: Option<PathBuf>,
}

/// Arguments of `cargo xtask uninstall`.
#[derive(Debug, Default, clap::Args)]
#[command(after_help = "\
Removes exactly the files that install wrote. Settings and history are kept, with --system the machine file, its \
backups and what was renamed to *.superseded; routed work goes on where it is.")]
pub struct UninstallArgs {
    /// Removes settings, history and state as well; with --system the machine file.
    #[arg(long)]
    purge: bool,
    /// Uninstalls what was installed with --system.
    #[arg(long)]
    system: bool,
    /// With --system: the prefix that it was installed with.
    #[arg(long, value_name = "FOLDER", requires = "system")]
    prefix: Option<PathBuf>,
}

/// Installs for the user who runs it, or for the machine.
pub fn install(args: InstallArgs) -> Result<()> {
    if let Some(root) = std::env::var_os("DESTDIR").filter(|root| !root.is_empty()) {
        return stage(Path::new(&root), &args);
    }
    ensure!(
        args.list.is_none(),
        "--list is for an installation below DESTDIR"
    );
    if args.system {
        return system::install(&args);
    }
    if nix::unistd::Uid::effective().is_root() && !args.force {
        bail!(
            "this is root, and the guard is a service of the user whose work it watches: \
             run it as that user (or with --force, when root's own user manager is meant). \
             The bench profiles are installed with --system"
        );
    }
    let places = Places::from_environment(args.prefix.as_deref())?;
    user::install(&places, &mut Systemctl::user(), &args)
}

/// Uninstalls for the user who runs it, or for the machine.
pub fn uninstall(args: UninstallArgs) -> Result<()> {
    ensure!(
        std::env::var_os("DESTDIR").is_none_or(|root| root.is_empty()),
        "DESTDIR is set: what was staged there is removed by removing that folder"
    );
    if args.system {
        return system::uninstall(&args);
    }
    let places = Places::from_environment(None)?;
    user::uninstall(&places, &mut Systemctl::user(), &args)
}

/// Only the files, below `root`: for who makes a package or an image.
fn stage(root: &Path, args: &InstallArgs) -> Result<()> {
    ensure!(
        root.is_absolute(),
        "DESTDIR is {}, which is not absolute",
        root.display()
    );
    let (folders, parts) = if args.system {
        let parts = if args.parts.is_empty() {
            vec![Part::Common, Part::Bench]
        } else {
            args.parts.clone()
        };
        (Folders::system(args.prefix())?, parts)
    } else {
        let places = Places::from_environment(args.prefix.as_deref())?;
        (Folders::home(&places), vec![Part::Guard])
    };
    let dist = args.dist(&parts)?;
    let items = if args.system {
        layout::packaged(&folders, &parts, &dist)?
    } else {
        layout::items(&folders, &parts, &dist)?
    };
    if let Some(list) = &args.list {
        let lines: String = items
            .iter()
            .map(|item| format!("{}\n", item.target.display()))
            .collect();
        files::write(list, &lines)?;
    }
    files::stage_below(root, items)
}

impl InstallArgs {
    fn dist(&self, parts: &[Part]) -> Result<Dist> {
        match &self.dist {
            Some(folder) => Dist::at(folder),
            None => Dist::build(parts),
        }
    }

    /// Of the system.
    fn prefix(&self) -> &Path {
        self.prefix.as_deref().unwrap_or(Path::new("/usr/local"))
    }

    /// Of the system.
    fn parts(&self) -> Vec<Part> {
        if self.parts.is_empty() {
            vec![Part::Bench]
        } else {
            self.parts.clone()
        }
    }
}
