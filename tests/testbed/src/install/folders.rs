//! The folders that the system reads its files from: below a home, or below a prefix.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail, ensure};

use super::places::Places;

/// A kind of folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dir {
    /// Programs that people call.
    Bin,
    /// The guard.
    Daemon,
    /// The bench service, which hooks of boot loaders call as well.
    SystemDaemon,
    /// This one below `share`.
    Share(&'static str),
    /// Section 1 of the manual.
    Manual,
    /// Completions of zsh.
    Zsh,
    /// Units of user managers.
    UserUnits,
    /// Units of the system manager.
    SystemUnits,
    /// Activation on user buses.
    SessionServices,
    /// Activation on the system bus.
    SystemServices,
    /// Who may do what on the system bus.
    BusPolicy,
    /// What polkit can decide.
    PolkitActions,
    /// What limine-entry-tool runs after it wrote Limine's configuration.
    LimineHooks,
    /// What kernel-install runs when a kernel comes or goes.
    KernelHooks,
    /// What grub-mkconfig makes GRUB's configuration with.
    GrubGenerators,
    /// Examples of the benchmark profiles.
    BenchExamples,
    /// Settings for all users.
    Settings,
}

/// The folders of one installation.
#[derive(Clone, Debug)]
pub enum Folders {
    /// For one user.
    Home {
        /// As the user's variables say.
        places: Box<Places>,
    },
    /// For all users.
    System {
        /// `/usr` for a package, `/usr/local` by default.
        prefix: PathBuf,
        /// Where zsh looks, below `share`: distributions differ.
        zsh: &'static str,
    },
}

impl Folders {
    /// Those of a user.
    pub fn home(places: &Places) -> Folders {
        Folders::Home {
            places: Box::new(places.clone()),
        }
    }

    /// Those of the system, below `prefix`.
    ///
    /// # Errors
    /// When units could not name a program there.
    pub fn system(prefix: &Path) -> Result<Folders> {
        plain(prefix)?;
        Ok(Folders::System {
            prefix: prefix.to_owned(),
            zsh: "zsh/site-functions",
        })
    }

    /// Those of a Debian package.
    pub fn debian() -> Folders {
        Folders::System {
            prefix: "/usr".into(),
            zsh: "zsh/vendor-completions",
        }
    }

    /// One of them.
    ///
    /// # Errors
    /// When it is the system's, and this is a home.
    pub fn of(&self, dir: Dir) -> Result<PathBuf> {
        Ok(match self {
            Folders::Home { places } => match dir {
                Dir::Bin => places.bin.clone(),
                Dir::Daemon => places.lib.clone(),
                Dir::Share(below) => places.share.join(below),
                Dir::Manual => places.share.join("man/man1"),
                Dir::Zsh => places.share.join("zsh/site-functions"),
                Dir::UserUnits => places.units.clone(),
                Dir::SessionServices => places.activation.clone(),
                Dir::SystemDaemon
                | Dir::SystemUnits
                | Dir::SystemServices
                | Dir::BusPolicy
                | Dir::PolkitActions
                | Dir::LimineHooks
                | Dir::KernelHooks
                | Dir::GrubGenerators
                | Dir::BenchExamples
                | Dir::Settings => {
                    bail!("{dir:?} is of the whole system; it is installed with --system")
                }
            },
            Folders::System { prefix, zsh } => {
                let share = prefix.join("share");
                match dir {
                    Dir::Bin | Dir::Daemon | Dir::SystemDaemon => prefix.join("bin"),
                    Dir::Share(below) => share.join(below),
                    Dir::Manual => share.join("man/man1"),
                    Dir::Zsh => share.join(zsh),
                    Dir::UserUnits => prefix.join("lib/systemd/user"),
                    Dir::SystemUnits => prefix.join("lib/systemd/system"),
                    Dir::SessionServices => share.join("dbus-1/services"),
                    Dir::SystemServices => share.join("dbus-1/system-services"),
                    // The buses read policies below /usr and /etc only,
                    Dir::BusPolicy if prefix == Path::new("/usr") => share.join("dbus-1/system.d"),
                    Dir::BusPolicy => "/etc/dbus-1/system.d".into(),
                    // and polkit before version 124 actions below /usr only.
                    Dir::PolkitActions => "/usr/share/polkit-1/actions".into(),
                    // Each reads these folders only, and kernel-install a packager's below /usr.
                    Dir::LimineHooks => "/etc/boot/hooks/post.d".into(),
                    Dir::KernelHooks if prefix == Path::new("/usr") => {
                        prefix.join("lib/kernel/install.d")
                    }
                    Dir::KernelHooks => "/etc/kernel/install.d".into(),
                    Dir::GrubGenerators => "/etc/grub.d".into(),
                    Dir::Settings => "/etc/linux-workload-guard".into(),
                    Dir::BenchExamples => share.join("doc/workload-guard-bench/examples"),
                }
            }
        })
    }

    /// A program as a unit names it.
    pub fn in_a_unit(&self, dir: Dir, program: &str) -> Result<String> {
        let folder = self.of(dir)?;
        if let Folders::Home { places } = self
            && let Ok(below) = folder.strip_prefix(&places.home)
        {
            // systemd expands %h itself, whatever characters the home's path has.
            return Ok(format!("%h/{}/{program}", below.display()));
        }
        plain(&folder)?;
        Ok(format!("{}/{program}", folder.display()))
    }

    /// Where everything that is installed lies; what is not below one of them is not ours to remove.
    pub fn roots(&self) -> Vec<PathBuf> {
        match self {
            Folders::Home { places } => {
                vec![
                    places.home.clone(),
                    places.data.clone(),
                    places.prefix.clone(),
                ]
            }
            Folders::System { prefix, .. } => {
                vec![prefix.clone(), "/etc".into(), "/usr/share".into()]
            }
        }
    }
}

/// That a path needs no quoting in a unit.
pub fn plain(path: &Path) -> Result<()> {
    let text = path.to_string_lossy();
    ensure!(
        path.is_absolute()
            && text
                .chars()
                .all(|letter| letter.is_ascii_alphanumeric() || "/._-+".contains(letter))
            && !text.contains("/../"),
        "the prefix {text} cannot be: units name programs below it, so it has to be absolute, of letters, digits and /._-+"
    );
    Ok(())
}
