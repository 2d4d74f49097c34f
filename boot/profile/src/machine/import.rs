//! Reads the shell-like `machine.conf` of the older Bash tools. Nothing of it is run.

use std::collections::BTreeMap;

use super::mistake::{Mistake, Mistakes};
use super::render::{Reasons, render};
use super::shell::{self, Value};
use super::{Cpus, Machine, MachineFile, Switches, keys};
use crate::profile::Profile;

/// What an import answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The text of the new machine file, which [`MachineFile::parse`] accepts.
    pub text: String,
    /// What of the old file is not in the new one, a sentence each.
    pub notes: Vec<String>,
}

/// The old names and the keys that they became.
const NAMES: [(&str, &str); 9] = [
    ("BENCH_CPUS", keys::BENCH),
    ("HOUSEKEEPING_CPUS", keys::HOUSEKEEPING),
    ("SINGLE_CORE_CPU", keys::SINGLE_CORE),
    ("PARKED_CPUS", keys::PARKED),
    ("EXPECTED_ONLINE_CPUS", keys::EXPECTED_ONLINE),
    ("KERNEL_ENTRY_MATCH", keys::KERNEL_ENTRY_MATCH),
    ("MASKED_UNITS", keys::MASKED),
    ("NOISY_UNITS", keys::NOISY),
    ("CANARY_SPEEDUP_DIVISOR", keys::DIVISOR),
];

/// Reads `text`; `origin` is the old file's name.
///
/// # Errors
///
/// Each line that would have to be run to know its value, each value that is none, and what does not
/// agree with the rest.
pub fn import(origin: &str, text: &str) -> Result<Imported, Mistakes> {
    let mut import = Import {
        origin,
        values: BTreeMap::new(),
        mistakes: Vec::new(),
        notes: Vec::new(),
    };
    for assignment in shell::assignments(text) {
        match assignment {
            Ok((line, name, value)) => import.assign(line, &name, value),
            Err((line, reason)) => import.wrong(line, "", reason),
        }
    }
    let machine = import.machine();
    let notes = std::mem::take(&mut import.notes);
    Mistakes::none(import.mistakes)?;
    let head = format!("The machine that measures, taken over from {origin}.");
    let text = render(&machine, &Reasons::from([(String::new(), vec![head])]));
    // The rules of the file hold for what was taken over too.
    MachineFile::parse(origin, &text).map_err(|mistakes| without_lines(origin, &mistakes))?;
    Ok(Imported { text, notes })
}

/// The lines are those of a text that nobody has seen.
fn without_lines(origin: &str, mistakes: &Mistakes) -> Mistakes {
    let old = |key: &str| {
        NAMES
            .iter()
            .find(|(_, new)| *new == key)
            .map(|(old, _)| *old)
    };
    let all = mistakes.iter().map(|mistake| {
        let key = old(&mistake.key).unwrap_or(&mistake.key);
        (0, Mistake::new(origin, 0, key, mistake.reason.clone()))
    });
    Mistakes::none(all.collect()).expect_err("there was one")
}

struct Import<'a> {
    origin: &'a str,
    values: BTreeMap<&'static str, (usize, Value)>,
    mistakes: Vec<(usize, Mistake)>,
    notes: Vec<String>,
}

impl Import<'_> {
    fn assign(&mut self, line: usize, name: &str, value: Value) {
        match NAMES.iter().find(|(old, _)| *old == name) {
            // The last one holds, as in a shell.
            Some((old, _)) => {
                self.values.insert(old, (line, value));
            }
            None => self.notes.push(format!(
                "{}:{line}: {name} has no counterpart and is left out",
                self.origin
            )),
        }
    }

    fn wrong(&mut self, line: usize, key: &str, reason: String) {
        let mistake = Mistake::new(self.origin, line, key, reason);
        self.mistakes.push((line, mistake));
    }

    fn words(&mut self, name: &str) -> Vec<String> {
        match self.values.get(name) {
            Some((_, Value::Text(text))) => text.split_whitespace().map(str::to_owned).collect(),
            Some((_, Value::List(words))) => words.clone(),
            None => Vec::new(),
        }
    }

    fn read<T: std::str::FromStr>(&mut self, name: &str, expected: &str) -> Option<T> {
        let (line, value) = self.values.get(name)?;
        let line = *line;
        let read = match value {
            Value::Text(text) => text.trim().parse().map_err(|_| format!("{text:?}")),
            Value::List(_) => Err("an array".to_owned()),
        };
        read.map_err(|found| self.wrong(line, name, format!("it must be {expected}, not {found}")))
            .ok()
    }

    fn machine(&mut self) -> Machine {
        let list = "a CPU list such as 8-15";
        let profiles = Profile::ALL
            .into_iter()
            .map(|profile| (profile, Switches::default_of(profile)))
            .collect();
        Machine {
            cpus: Cpus {
                bench: self.read("BENCH_CPUS", list).unwrap_or_default(),
                housekeeping: self.read("HOUSEKEEPING_CPUS", list).unwrap_or_default(),
                single_core: self
                    .read("SINGLE_CORE_CPU", "the number of a CPU")
                    .unwrap_or_default(),
                parked: self.read("PARKED_CPUS", list).unwrap_or_default(),
                expected_online: self.read("EXPECTED_ONLINE_CPUS", list).unwrap_or_default(),
            },
            kernel_entry_match: self
                .read("KERNEL_ENTRY_MATCH", "a text")
                .unwrap_or_default(),
            masked_units: self.words("MASKED_UNITS"),
            noisy_units: self.words("NOISY_UNITS"),
            canary_divisor: self
                .read("CANARY_SPEEDUP_DIVISOR", "a whole number")
                .unwrap_or(2),
            profiles,
        }
    }
}
