//! Which file goes where.

use std::path::PathBuf;

use anyhow::Result;

use super::dist::Dist;
use super::places::Places;

/// One file or link to be installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Where it goes.
    pub target: PathBuf,
    /// What it is.
    pub content: Content,
}

/// What a target is.
#[derive(Clone, PartialEq, Eq)]
pub enum Content {
    /// A file.
    File {
        /// All of it.
        bytes: Vec<u8>,
        /// Its permissions.
        mode: u32,
    },
    /// A symbolic link to this.
    Link(&'static str),
}

impl std::fmt::Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Content::File { bytes, mode } => write!(f, "{} bytes, {mode:o}", bytes.len()),
            Content::Link(to) => write!(f, "-> {to}"),
        }
    }
}

impl Item {
    /// A file.
    pub fn file(target: PathBuf, bytes: Vec<u8>, mode: u32) -> Item {
        Item {
            target,
            content: Content::File { bytes, mode },
        }
    }
}

/// The unit files.
const UNITS: &[&str] = &[
    super::UNIT,
    "protected.slice",
    "protected-workload.slice",
    "heavy.slice",
    "heavy-workload.slice",
    "browser.slice",
    "browser-automation.slice",
];
const ACTIVATION: &str = "org.workloadguard.Guard1.service";
/// Shells that get completions: the name that the CLI knows, and the file below the data folder.
const COMPLETIONS: &[(&str, &str)] = &[
    ("bash", "bash-completion/completions/workload-guard"),
    ("zsh", "zsh/site-functions/_workload-guard"),
    ("fish", "fish/vendor_completions.d/workload-guard.fish"),
];
const MANUAL: &str = "man/man1/workload-guard.1";

/// The links: what they are called and what they point to.
fn links(places: &Places) -> [(PathBuf, &'static str); 2] {
    [
        (places.bin.join("run-workload"), "workload-guard"),
        (
            places.data.join("man/man1/run-workload.1"),
            "workload-guard.1",
        ),
    ]
}

/// Every path that an installation writes, but for settings and the manifest.
pub fn targets(places: &Places) -> Vec<PathBuf> {
    let mut targets = vec![
        places.bin.join("workload-guard"),
        places.lib.join("workload-guardd"),
        places.activation.join(ACTIVATION),
        places.data.join(MANUAL),
    ];
    targets.extend(UNITS.iter().map(|unit| places.units.join(unit)));
    targets.extend(COMPLETIONS.iter().map(|(_, file)| places.data.join(file)));
    targets.extend(links(places).map(|(link, _)| link));
    targets
}

/// The same, with their contents.
pub fn items(places: &Places, dist: &Dist) -> Result<Vec<Item>> {
    let mut items = vec![
        Item::file(
            places.bin.join("workload-guard"),
            dist.program("workload-guard")?,
            0o755,
        ),
        Item::file(
            places.lib.join("workload-guardd"),
            dist.program("workload-guardd")?,
            0o755,
        ),
        Item::file(
            places.activation.join(ACTIVATION),
            dist.unit(&format!("dbus-1/{ACTIVATION}"))?,
            0o644,
        ),
        Item::file(places.data.join(MANUAL), dist.ask_cli(&["man"])?, 0o644),
    ];
    for unit in UNITS {
        let mut bytes = dist.unit(unit)?;
        if *unit == super::UNIT {
            bytes = with_daemon(&String::from_utf8(bytes)?, places)?.into_bytes();
        }
        items.push(Item::file(places.units.join(unit), bytes, 0o644));
    }
    for (shell, file) in COMPLETIONS {
        items.push(Item::file(
            places.data.join(file),
            dist.ask_cli(&["completions", shell])?,
            0o644,
        ));
    }
    items.extend(links(places).map(|(target, to)| Item {
        target,
        content: Content::Link(to),
    }));
    Ok(items)
}

/// The unit with the daemon's installed path instead of the packaged one.
fn with_daemon(unit: &str, places: &Places) -> Result<String> {
    const PACKAGED: &str = "\nExecStart=/usr/bin/workload-guardd\n";
    // systemd expands %h itself, whatever characters the home's path has.
    let below = places.lib.strip_prefix(&places.home)?;
    let installed = format!("\nExecStart=%h/{}/workload-guardd\n", below.display());
    anyhow::ensure!(
        unit.matches(PACKAGED).count() == 1,
        "{}: the line {:?} is missing",
        super::UNIT,
        PACKAGED.trim()
    );
    Ok(unit.replace(PACKAGED, &installed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_starts_the_installed_daemon() {
        let places = Places::new(|name| (name == "HOME").then(|| "/home/a b".into())).unwrap();
        let unit = "[Service]\nExecStart=/usr/bin/workload-guardd\nRestart=on-failure\n";
        assert_eq!(
            with_daemon(unit, &places).unwrap(),
            "[Service]\nExecStart=%h/.local/lib/linux-workload-guard/workload-guardd\nRestart=on-failure\n"
        );
        assert!(with_daemon("[Service]\nExecStart=/opt/x\n", &places).is_err());
    }

    #[test]
    fn the_shipped_unit_has_the_line_that_is_rewritten() {
        let shipped = include_str!("../../../../units/user/workload-guard.service");
        let places = Places::new(|name| (name == "HOME").then(|| "/home/dev".into())).unwrap();
        assert!(
            with_daemon(shipped, &places)
                .unwrap()
                .contains("ExecStart=%h/.local/lib/")
        );
    }
}
