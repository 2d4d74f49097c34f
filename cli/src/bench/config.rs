//! `bench config`.

use std::path::Path;

use bench_profile::cpus::CpuSet;
use bench_profile::machine::{Machine, Reasons, render};
use bench_system::machine::FILE;
use bench_system::root::Root;
use serde::Serialize;

use super::machine;
use crate::error::CliError;

/// A set in both of the kernel's notations.
#[derive(Serialize)]
struct Mask {
    name: &'static str,
    cpus: CpuSet,
    mask: String,
}

/// The JSON of `bench config`.
#[derive(Serialize)]
struct View<'a> {
    file: String,
    machine: &'a Machine,
    masks: Vec<Mask>,
}

/// Shows the machine file as it was understood, with the masks that follow from it.
pub fn run(root: &Root, json: bool) -> Result<u8, CliError> {
    let file = root.path(FILE).display().to_string();
    let loaded = machine::required(root)?;
    let view = View {
        masks: masks(&loaded.machine),
        machine: &loaded.machine,
        file,
    };
    let text = if json {
        crate::render::to_json(&view)
    } else {
        text(&view)
    };
    crate::print(&text).map(|()| 0)
}

/// Prints what the older tools' description of a machine says as one of ours; what is left out is told beside.
pub fn import(path: &Path) -> Result<u8, CliError> {
    let origin = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| CliError::Failed(format!("cannot read {origin}: {error}")))?;
    let imported = bench_profile::machine::import(&origin, &text).map_err(machine::failed)?;
    for note in &imported.notes {
        eprintln!("note: {note}");
    }
    crate::print(&imported.text).map(|()| 0)
}

fn masks(machine: &Machine) -> Vec<Mask> {
    let cpus = &machine.cpus;
    [
        ("bench", cpus.bench.clone()),
        ("housekeeping", cpus.housekeeping.clone()),
        ("single_core", CpuSet::from(cpus.single_core)),
        ("parked", cpus.parked.clone()),
        ("expected_online", cpus.expected_online.clone()),
    ]
    .map(|(name, cpus)| Mask {
        name,
        mask: cpus.to_mask(),
        cpus,
    })
    .into()
}

fn text(view: &View<'_>) -> String {
    let mut text = format!("# {}\n", view.file);
    text.push_str(&render(view.machine, &Reasons::new()));
    text.push_str("\n# derived masks\n");
    for mask in &view.masks {
        text.push_str(&format!("# {:<16} {}\n", mask.name, mask.mask));
    }
    text
}

#[cfg(test)]
mod tests {
    use bench_profile::machine::MachineFile;

    use super::*;

    #[test]
    fn masks_follow_from_the_lists() {
        let shipped = include_str!("../../../config/machine.toml");
        let file = MachineFile::parse("machine.toml", shipped).expect("the shipped file");
        let view = View {
            file: "machine.toml".into(),
            machine: &file.machine,
            masks: masks(&file.machine),
        };
        let text = text(&view);
        assert!(text.contains("\n# bench            ff00\n"), "{text}");
        assert!(text.contains("\n# parked           fe\n"), "{text}");
        // What is printed is a machine file that says the same.
        let again = MachineFile::parse("printed", &text).expect("it can be read back");
        assert_eq!(again.machine, file.machine);
    }
}
