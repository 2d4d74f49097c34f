//! The Python original: found, and replaced where somebody agrees to it.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::dist::Dist;
use super::files::{self, Superseded, exists};
use super::foreign::is_our_link;
use super::places::Places;
use super::session::Session;

/// Its unit; ours has it as an alias.
pub const UNIT: &str = "workload-router.service";
/// Its program.
const PROGRAM: &str = "workload-router.py";
/// Units of its own beside that, which may not be there.
const HELPERS: [&str; 2] = ["browser-automation.timer", "browser-automation.service"];
/// The file with its settings, and what becomes of it.
const ENV: &str = "workload-guard.env";
const SETTINGS: &str = "guard.toml.d/40-workload-router.toml";

/// What of it is on this machine.
#[derive(Debug, PartialEq, Eq)]
pub struct Original {
    /// What shows that it is here.
    pub evidence: Vec<PathBuf>,
    /// All its files in the user's folders.
    pub files: Vec<PathBuf>,
}

impl Original {
    /// Looks for it; `targets` is where our files go.
    pub fn find(places: &Places, targets: &[PathBuf], ours: &[PathBuf]) -> Option<Original> {
        let units = [&places.own_units, &places.units];
        let mut evidence: Vec<PathBuf> = units
            .into_iter()
            .chain(&places.system_units)
            .map(|folder| folder.join(UNIT))
            .filter(|unit| exists(unit) && !is_our_link(unit))
            .collect();
        let programs: Vec<PathBuf> = evidence
            .iter()
            .flat_map(|unit| programs_of(unit, places))
            .collect();
        let data = places.data.join(super::FOLDER);
        evidence.extend(
            [&places.bin, &places.lib, &data]
                .map(|folder| folder.join(PROGRAM))
                .into_iter()
                .filter(|path| exists(path)),
        );
        if evidence.is_empty() {
            return None;
        }
        // Its units have our names, and those in ~/.config would win over ours.
        let names = targets.iter().filter_map(|path| path.file_name());
        let names = names.chain(HELPERS.iter().map(OsStr::new));
        let twins = names.flat_map(|name| units.map(|folder| folder.join(name)));
        let files: BTreeSet<PathBuf> = evidence
            .iter()
            .cloned()
            .chain(programs)
            .chain(twins)
            .chain(targets.iter().cloned())
            .filter(|path| path.starts_with(&places.home) || path.starts_with(&places.data))
            .filter(|path| exists(path) && !ours.contains(path) && !is_our_link(path))
            .collect();
        Some(Original {
            evidence,
            files: files.into_iter().collect(),
        })
    }

    /// Agrees or refuses: by the option, or by asking the person at the terminal.
    pub fn consent(&self, places: &Places, given: bool) -> Result<()> {
        let outside: Vec<PathBuf> = self
            .evidence
            .iter()
            .filter(|path| !self.files.contains(path))
            .cloned()
            .collect();
        if !outside.is_empty() {
            bail!(
                "the Python original is installed outside of {}; nothing was changed. Whoever administers this machine \
                 has to remove it first:\n{}",
                places.home.display(),
                files::list(&outside)
            );
        }
        if given || (std::io::stdin().is_terminal() && self.asked()?) {
            return Ok(());
        }
        bail!(
            "the Python original is installed, and two routers would move the same processes; nothing was changed. \
             --replace-original stops it, takes over its settings and renames its files to *.superseded. Found:\n{}",
            files::list(&self.evidence)
        );
    }

    fn asked(&self) -> Result<bool> {
        println!(
            "The Python original is installed. To be stopped, and renamed to *.superseded:\n{}",
            files::list(&self.files)
        );
        print!("Replace it, and take over its settings? [y/N] ");
        std::io::stdout().flush()?;
        let mut answer = String::new();
        std::io::stdin().lock().read_line(&mut answer)?;
        Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
    }

    /// Stops it and renames its files; answers what it set, in our words, for [`Takeover::finish`].
    pub fn take_over(
        &self,
        places: &Places,
        dist: &Dist,
        session: &mut impl Session,
    ) -> Result<Takeover> {
        let env = places.config.join(ENV);
        let settings = exists(&env)
            .then(|| dist.ask_cli(&[OsStr::new("config"), OsStr::new("import"), env.as_os_str()]));
        let mut takeover = Takeover::default();
        if session.reachable().is_ok() {
            for unit in [UNIT].iter().chain(&HELPERS) {
                if self.files.iter().any(|path| path.ends_with(unit)) {
                    takeover.ran |= *unit == UNIT && session.is_active(unit);
                    session.systemctl(&["disable", "--now", unit])?;
                }
            }
        }
        // A quota that it set for this login; the unit file's holds again after the next reload.
        if let Some(runtime) = places.runtime.as_deref().and_then(Path::parent) {
            files::remove(
                &runtime.join("systemd/user.control/heavy-workload.slice.d/50-CPUQuota.conf"),
            )?;
        }
        for path in &self.files {
            takeover.superseded.add(path)?;
        }
        match settings {
            Some(Ok(text)) => {
                takeover.superseded.add(&env)?;
                takeover.settings = Some((places.config.join(SETTINGS), text));
            }
            // It stays in force: our unit reads the same file.
            Some(Err(error)) => println!(
                "note: {} stays as it is, since it cannot be turned into guard.toml: {error:#}",
                env.display()
            ),
            None => {}
        }
        Ok(takeover)
    }
}

/// What was taken from it. Dropped before [`Takeover::finish`], its files get their names back.
#[derive(Debug, Default)]
pub struct Takeover {
    superseded: Superseded,
    settings: Option<(PathBuf, Vec<u8>)>,
    /// Whether it was running.
    pub ran: bool,
}

impl Takeover {
    /// After our files are in place.
    pub fn finish(self, places: &Places) -> Result<()> {
        self.superseded.keep();
        if let Some((path, text)) = self.settings {
            files::write(&path, &String::from_utf8(text)?)?;
            println!("took over the settings into {}", path.display());
        }
        let history = places.state.join("history.jsonl");
        if exists(&history) {
            println!("kept {} (its history)", history.display());
        }
        Ok(())
    }
}

/// The programs of its own in the user's home that a unit of it starts.
fn programs_of(unit: &Path, places: &Places) -> Vec<PathBuf> {
    let text = fs::read_to_string(unit).unwrap_or_default();
    let home = places.home.display().to_string();
    text.lines()
        .filter_map(|line| line.trim().strip_prefix("ExecStart="))
        .flat_map(str::split_whitespace)
        .map(|word| PathBuf::from(word.trim_matches('"').replace("%h", &home)))
        .filter(|path| path.ends_with(PROGRAM))
        .collect()
}

/// That nothing was lost when it could not be replaced.
pub fn context(ran: bool) -> String {
    if ran {
        format!(
            "the Python original has its files back, but is stopped: systemctl --user enable --now {UNIT}"
        )
    } else {
        "the Python original has its files back".to_owned()
    }
}

/// As [`Original::take_over`], where there may be none.
pub fn take_over(
    original: Option<&Original>,
    places: &Places,
    dist: &Dist,
    session: &mut impl Session,
) -> Result<Option<Takeover>> {
    original
        .map(|original| original.take_over(places, dist, session))
        .transpose()
        .context("the Python original cannot be replaced")
}
