//! Which file of the product goes where. The one list of it: the two installers, the packages and the recipes of other
//! distributions all follow from it.

use std::path::PathBuf;

use anyhow::Result;

use super::dist::Dist;
use super::folders::{Dir, Folders};

/// What can be installed on its own. Everything needs [`Part::Common`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Part {
    /// The command line, its manual and completions.
    Common,
    /// The guard of a user's session.
    Guard,
    /// The benchmark profiles.
    Bench,
}

/// Where the bytes of a file come from.
#[derive(Clone, Copy, Debug)]
enum Source {
    /// A program that is built.
    Program,
    /// A file of the checkout.
    Data(&'static str),
    /// A text file of the checkout that names our programs by their packaged paths, which become the installed ones.
    Text(&'static str),
    /// Likewise, of a script that others run.
    Script(&'static str),
    /// What the command line prints when it is called with these words.
    Says(&'static [&'static str]),
    /// The page of the manual that the command line calls so.
    Page,
    /// A symbolic link to a neighbour.
    Link(&'static str),
    /// Settings: a package has them as a configuration file; an installer leaves the built-in ones in force.
    Conffile(&'static str),
}

/// One line of the list.
#[derive(Clone, Copy)]
struct Entry(Part, Dir, &'static str, Source);

use Part::{Bench, Common, Guard};
use Source::{Conffile, Data, Link, Page, Program, Says, Script, Text};

/// The pages of the manual, one a line, as `workload-guard man --list` prints them.
const PAGES: &str = include_str!("../../../../cli/src/manual/pages.txt");

/// Part, folder, name, source.
#[rustfmt::skip]
const LAYOUT: &[Entry] = &[
    Entry(Common, Dir::Bin, "workload-guard", Program),
    Entry(Common, Dir::Share("bash-completion/completions"), "workload-guard", Says(&["completions", "bash"])),
    Entry(Common, Dir::Zsh, "_workload-guard", Says(&["completions", "zsh"])),
    Entry(Common, Dir::Share("fish/vendor_completions.d"), "workload-guard.fish", Says(&["completions", "fish"])),

    Entry(Guard, Dir::Bin, "run-workload", Link("workload-guard")),
    Entry(Guard, Dir::Manual, "run-workload.1", Link("workload-guard.1")),
    Entry(Guard, Dir::Daemon, "workload-guardd", Program),
    Entry(Guard, Dir::UserUnits, super::UNIT, Text("units/user/workload-guard.service")),
    Entry(Guard, Dir::UserUnits, "protected.slice", Data("units/user/protected.slice")),
    Entry(Guard, Dir::UserUnits, "protected-workload.slice", Data("units/user/protected-workload.slice")),
    Entry(Guard, Dir::UserUnits, "heavy.slice", Data("units/user/heavy.slice")),
    Entry(Guard, Dir::UserUnits, "heavy-workload.slice", Data("units/user/heavy-workload.slice")),
    Entry(Guard, Dir::UserUnits, "browser.slice", Data("units/user/browser.slice")),
    Entry(Guard, Dir::UserUnits, "browser-automation.slice", Data("units/user/browser-automation.slice")),
    Entry(Guard, Dir::UserUnits, "workload-guard-metrics.service", Text("units/user/workload-guard-metrics.service")),
    Entry(Guard, Dir::UserUnits, "workload-guard-metrics.timer", Data("units/user/workload-guard-metrics.timer")),
    Entry(Guard, Dir::Settings, "guard.toml", Conffile("config/guard.toml")),
    Entry(Guard, Dir::SessionServices, "org.workloadguard.Guard1.service", Data("units/user/dbus-1/org.workloadguard.Guard1.service")),

    Entry(Bench, Dir::SystemDaemon, "bench-prepd", Program),
    // The names that the older tools had.
    Entry(Bench, Dir::Bin, "bench-prep", Link("workload-guard")),
    Entry(Bench, Dir::Bin, "bench-profile-run", Link("workload-guard")),
    Entry(Bench, Dir::Bin, "bench-profile-status", Link("workload-guard")),
    Entry(Bench, Dir::Manual, "bench-prep.1", Link("workload-guard.1")),
    Entry(Bench, Dir::Manual, "bench-profile-run.1", Link("workload-guard.1")),
    Entry(Bench, Dir::Manual, "bench-profile-status.1", Link("workload-guard.1")),
    Entry(Bench, Dir::SystemUnits, "bench-prepd.service", Text("units/system/bench-prepd.service")),
    Entry(Bench, Dir::SystemUnits, super::BENCH_UNIT, Text("units/system/bench-prep.service")),
    Entry(Bench, Dir::SystemServices, "org.workloadguard.BenchPrep1.service", Data("units/system/dbus-1/org.workloadguard.BenchPrep1.service")),
    Entry(Bench, Dir::BusPolicy, "org.workloadguard.BenchPrep1.conf", Data("units/system/dbus-1/org.workloadguard.BenchPrep1.conf")),
    Entry(Bench, Dir::PolkitActions, "org.workloadguard.policy", Data("polkit/org.workloadguard.policy")),
    Entry(Bench, Dir::LimineHooks, "80-bench-profile-boot-entries", Script("boot/hooks/80-bench-profile-boot-entries")),
    Entry(Bench, Dir::KernelHooks, "95-bench-profile.install", Script("boot/hooks/95-bench-profile.install")),
    Entry(Bench, Dir::GrubGenerators, "42_bench_profiles", Script("boot/hooks/42_bench_profiles")),
    Entry(Bench, Dir::BenchExamples, "machine.toml", Data("config/machine.toml")),
    Entry(Bench, Dir::BenchExamples, "50-bench-profiles.rules", Data("polkit/50-bench-profiles.rules.example")),
];

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

    /// The bytes of a program; none of anything else.
    pub fn program(&self) -> Option<&[u8]> {
        match &self.content {
            Content::File { bytes, mode } if mode & 0o111 != 0 => Some(bytes),
            _ => None,
        }
    }
}

fn page(name: &'static str) -> Entry {
    let part = match name {
        "workload-guardd.8" => Guard,
        // The command line is of both, and reads the files of both.
        _ => Common,
    };
    let folder = match name.rsplit('.').next() {
        Some("5") => "man/man5",
        Some("8") => "man/man8",
        _ => "man/man1",
    };
    Entry(part, Dir::Share(folder), name, Page)
}

fn all() -> impl Iterator<Item = Entry> {
    LAYOUT.iter().copied().chain(PAGES.lines().map(page))
}

fn entries(parts: &[Part]) -> impl Iterator<Item = Entry> {
    all()
        .filter(move |entry| entry.0 == Common || parts.contains(&entry.0))
        .filter(|entry| !matches!(entry.3, Conffile(_)))
}

/// The programs of these parts, which are packages of the same names.
pub fn programs(parts: &[Part]) -> Vec<&'static str> {
    entries(parts)
        .filter(|entry| matches!(entry.3, Program))
        .map(|entry| entry.2)
        .collect()
}

/// Every path that an installation of these parts writes, but for settings and its own list.
pub fn targets(folders: &Folders, parts: &[Part]) -> Result<Vec<PathBuf>> {
    entries(parts)
        .map(|Entry(_, dir, name, _)| Ok(folders.of(dir)?.join(name)))
        .collect()
}

/// The files of these parts, with those that all need.
pub fn items(folders: &Folders, parts: &[Part], dist: &Dist) -> Result<Vec<Item>> {
    entries(parts)
        .map(|entry| item(entry, folders, dist))
        .collect()
}

/// The files of exactly these parts with their settings, as a package has them.
pub fn packaged(folders: &Folders, parts: &[Part], dist: &Dist) -> Result<Vec<Item>> {
    all()
        .filter(|entry| parts.contains(&entry.0))
        .map(|entry| item(entry, folders, dist))
        .collect()
}

fn item(Entry(_, dir, name, source): Entry, folders: &Folders, dist: &Dist) -> Result<Item> {
    let (bytes, mode) = match source {
        Program => (dist.program(name)?, 0o755),
        Data(file) | Conffile(file) => (dist.data(file)?, 0o644),
        Says(words) => (dist.ask_cli(words)?, 0o644),
        Page => (dist.ask_cli(&["man", name])?, 0o644),
        Text(file) | Script(file) => {
            let text = String::from_utf8(dist.data(file)?)?;
            let mode = if matches!(source, Script(_)) {
                0o755
            } else {
                0o644
            };
            (with_programs(&text, folders)?.into_bytes(), mode)
        }
        Link(to) => {
            return Ok(Item {
                target: folders.of(dir)?.join(name),
                content: Content::Link(to),
            });
        }
    };
    Ok(Item::file(folders.of(dir)?.join(name), bytes, mode))
}

/// Where the files of the checkout say that our programs are.
const PACKAGED: &str = "/usr/bin/";

/// The text with the installed paths of our programs.
fn with_programs(text: &str, folders: &Folders) -> Result<String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(PACKAGED) {
        let (before, from) = rest.split_at(at);
        let after = &from[PACKAGED.len()..];
        let end = after
            .find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-')
            .unwrap_or(after.len());
        out.push_str(before);
        match LAYOUT
            .iter()
            .find(|entry| entry.2 == &after[..end] && matches!(entry.3, Program))
        {
            Some(entry) => out.push_str(&folders.in_a_unit(entry.1, entry.2)?),
            None => out.push_str(&from[..PACKAGED.len() + end]),
        }
        rest = &after[end..];
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::super::places::Places;
    use super::*;

    fn home() -> Folders {
        let places =
            Places::new(|name| (name == "HOME").then(|| "/home/a b".into()), None).unwrap();
        Folders::home(&places)
    }

    #[test]
    fn units_start_the_installed_programs() {
        let shipped = include_str!("../../../../units/user/workload-guard.service");
        let there = with_programs(shipped, &home()).unwrap();
        assert!(
            there.contains("\nExecStart=%h/.local/lib/linux-workload-guard/workload-guardd\n"),
            "{there}"
        );
        assert!(there.contains("\nExecReload=busctl "), "{there}");
        let shipped = include_str!("../../../../units/user/workload-guard-metrics.service");
        let there = with_programs(shipped, &home()).unwrap();
        let line = "\nExecStart=%h/.local/bin/workload-guard metrics --output ${FILE}\n";
        assert!(there.contains(line), "{there}");
        let shipped = include_str!("../../../../units/system/bench-prep.service");
        let local = Folders::system(Path::new("/usr/local")).unwrap();
        let there = with_programs(shipped, &local).unwrap();
        assert!(
            there.contains("\nExecStart=/usr/local/bin/workload-guard bench apply\n"),
            "{there}"
        );
        let packaged = Folders::system(Path::new("/usr")).unwrap();
        assert_eq!(with_programs(shipped, &packaged).unwrap(), shipped);
    }

    #[test]
    fn only_our_programs_are_renamed() {
        let local = Folders::system(Path::new("/opt/guard")).unwrap();
        assert_eq!(
            with_programs(
                "/usr/bin/workload-guardd-x /usr/bin/env /usr/bin/bench-prepd",
                &local
            )
            .unwrap(),
            "/usr/bin/workload-guardd-x /usr/bin/env /opt/guard/bin/bench-prepd"
        );
    }

    #[test]
    fn no_two_entries_have_one_target_and_every_data_file_is_there() {
        let folders = Folders::system(Path::new("/usr")).unwrap();
        let all = targets(&folders, &[Guard, Bench]).unwrap();
        assert_eq!(
            all.iter().collect::<BTreeSet<_>>().len(),
            all.len(),
            "{all:#?}"
        );
        let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for entry in LAYOUT {
            if let Data(file) | Text(file) | Script(file) | Conffile(file) = entry.3 {
                assert!(checkout.join(file).is_file(), "{file}");
            }
        }
    }

    #[test]
    fn every_unit_and_hook_of_the_checkout_is_installed() {
        let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut folders = vec![checkout.join("units"), checkout.join("boot/hooks")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    assert!(
                        LAYOUT.iter().any(|entry| match entry.3 {
                            Data(file) | Text(file) | Script(file) => path.ends_with(file),
                            _ => false,
                        }),
                        "{} is not in the list",
                        path.display()
                    );
                }
            }
        }
    }
}
