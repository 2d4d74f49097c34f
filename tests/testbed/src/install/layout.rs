//! Which file goes where.

use std::path::{Path, PathBuf};

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
    METRICS,
    "workload-guard-metrics.timer",
];
/// Runs the program as well.
const METRICS: &str = "workload-guard-metrics.service";
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
        let program = match *unit {
            super::UNIT => Some(("workload-guardd", &places.lib)),
            METRICS => Some(("workload-guard", &places.bin)),
            _ => None,
        };
        if let Some((program, folder)) = program {
            let text = String::from_utf8(bytes)?;
            bytes = with_program(unit, &text, program, folder, places)?.into_bytes();
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

/// The unit with its program's installed path instead of the packaged one.
fn with_program(
    unit: &str,
    text: &str,
    program: &str,
    folder: &Path,
    places: &Places,
) -> Result<String> {
    let packaged = format!("\nExecStart=/usr/bin/{program}");
    // systemd expands %h itself, whatever characters the home's path has.
    let below = folder.strip_prefix(&places.home)?;
    let installed = format!("\nExecStart=%h/{}/{program}", below.display());
    // A longer name may begin alike.
    let ends = |(at, _): (usize, &str)| text[at + packaged.len()..].starts_with([' ', '\n']);
    anyhow::ensure!(
        text.match_indices(&packaged)
            .filter(|found| ends(*found))
            .count()
            == 1,
        "{unit}: the line {:?} is missing",
        packaged.trim()
    );
    Ok(text.replace(&packaged, &installed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_starts_the_installed_program() {
        let places = Places::new(|name| (name == "HOME").then(|| "/home/a b".into())).unwrap();
        let with = |unit: &str| with_program("x", unit, "workload-guardd", &places.lib, &places);
        let unit = "[Service]\nExecStart=/usr/bin/workload-guardd\nRestart=on-failure\n";
        assert_eq!(
            with(unit).unwrap(),
            "[Service]\nExecStart=%h/.local/lib/linux-workload-guard/workload-guardd\nRestart=on-failure\n"
        );
        assert!(with("[Service]\nExecStart=/opt/x\n").is_err());
        assert!(with("[Service]\nExecStart=/usr/bin/workload-guardd2\n").is_err());
    }

    #[test]
    fn the_shipped_units_have_the_line_that_is_rewritten() {
        let places = Places::new(|name| (name == "HOME").then(|| "/home/dev".into())).unwrap();
        for (text, program, folder, installed) in [
            (
                include_str!("../../../../units/user/workload-guard.service"),
                "workload-guardd",
                &places.lib,
                "\nExecStart=%h/.local/lib/linux-workload-guard/workload-guardd\n",
            ),
            (
                include_str!("../../../../units/user/workload-guard-metrics.service"),
                "workload-guard",
                &places.bin,
                "\nExecStart=%h/.local/bin/workload-guard metrics --output ${FILE}\n",
            ),
        ] {
            let text = with_program("x", text, program, folder, &places).unwrap();
            assert!(text.contains(installed), "{text}");
        }
    }
}
