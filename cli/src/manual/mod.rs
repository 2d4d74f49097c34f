//! The manual, from what is there already: the definition of the command line, the daemon's usage, the commented
//! settings files, and the introspection XML of the interfaces.

mod commands;
mod daemon;
mod interfaces;
mod settings;
mod troff;

use clap::CommandFactory;

use crate::args::Cli;

/// When this version of the product was made; mandoc wants a day.
const DATE: &str = "2026-12-01";

/// The names of all pages, each with its section: `workload-guard-status.1`.
pub fn names() -> impl Iterator<Item = String> {
    let commands = commands::all(Cli::command()).into_iter();
    let commands = commands.map(|command| format!("{}.1", commands::name(&command)));
    let daemon = std::iter::once(daemon::PAGE.to_owned());
    let settings = settings::FILES
        .iter()
        .map(|file| format!("{}.5", file.name));
    let interfaces = workload_guard_dbus::xml::INTERFACES.iter();
    let interfaces = interfaces.map(|(name, _)| format!("{name}.5"));
    commands.chain(daemon).chain(settings).chain(interfaces)
}

/// The page of that name as troff.
pub fn page(name: &str) -> Option<String> {
    if name == daemon::PAGE {
        return Some(daemon::page());
    }
    let (stem, section) = name.rsplit_once('.')?;
    match section {
        "1" => commands::all(Cli::command())
            .iter()
            .find(|command| commands::name(command) == stem)
            .map(commands::page),
        "5" => {
            let file = settings::FILES.iter().find(|file| file.name == stem);
            file.map(settings::page).or_else(|| {
                let (name, xml) = workload_guard_dbus::xml::INTERFACES
                    .iter()
                    .find(|(name, _)| *name == stem)?;
                Some(interfaces::page(name, xml))
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_installation_has_the_names_of_all_pages() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/manual/pages.txt");
        let text: String = names().map(|name| name + "\n").collect();
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(file, &text).unwrap();
        }
        assert_eq!(
            std::fs::read_to_string(file).unwrap(),
            text,
            "after a new command: UPDATE_GOLDEN=1 cargo test -p workload-guard pages"
        );
    }

    #[test]
    fn every_page_is_there_and_begins_as_one() {
        let names: Vec<String> = names().collect();
        for name in [
            "workload-guard.1",
            "workload-guard-status.1",
            "workload-guard-quota-set.1",
            "workload-guard-bench-apply.1",
            "workload-guardd.8",
            "guard.toml.5",
            "machine.toml.5",
            "org.workloadguard.Guard1.5",
            "org.workloadguard.BenchPrep1.5",
        ] {
            assert!(names.iter().any(|known| known == name), "{name}: {names:?}");
        }
        for name in &names {
            let text = page(name).unwrap_or_else(|| panic!("{name}"));
            assert!(text.starts_with(".TH "), "{name}: {text}");
            assert!(text.is_ascii(), "{name} has what not every troff can read");
        }
        for name in ["", "x", "status.1", "guard.toml.1", "workload-guard.5"] {
            assert_eq!(page(name), None, "{name}");
        }
    }
}
