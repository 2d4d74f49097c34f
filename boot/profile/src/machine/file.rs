//! A machine file: its shape first, then what it means.

use std::collections::BTreeMap;

use super::mistake::{Mistake, Mistakes};
use super::raw::Raw;
use super::{Cpus, Machine, Switches, consistency, keys};
use crate::cpus::{CpuSet, LIMIT};
use crate::profile::Profile;

/// The canary's divisor where the file has none.
const DIVISOR: u32 = 2;

/// A machine file that agrees with itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineFile {
    /// What it says.
    pub machine: Machine,
    origin: String,
    lines: BTreeMap<String, usize>,
}

impl MachineFile {
    /// Reads and validates `text`; `origin` is the file's name for the messages.
    ///
    /// # Errors
    ///
    /// Every mistake, with file, line, key, reason and way out.
    pub fn parse(origin: &str, text: &str) -> Result<Self, Mistakes> {
        let mut raw = Raw::parse(origin, text);
        if !raw.mistakes.is_empty() {
            return Err(Mistakes::none(raw.mistakes).expect_err("there is one"));
        }
        let bench = raw.cpus(keys::BENCH);
        let housekeeping = raw.cpus(keys::HOUSEKEEPING);
        let single_core = raw.number(keys::SINGLE_CORE, 0..=LIMIT - 1);
        let parked = raw.cpus(keys::PARKED);
        let expected_online = raw.cpus(keys::EXPECTED_ONLINE);
        let machine = Machine {
            kernel_entry_match: raw.text(keys::KERNEL_ENTRY_MATCH).unwrap_or_default(),
            masked_units: raw.units(keys::MASKED).unwrap_or_default(),
            noisy_units: raw.units(keys::NOISY).unwrap_or_default(),
            canary_divisor: raw.number(keys::DIVISOR, 1..=LIMIT).unwrap_or(DIVISOR),
            profiles: switches(&mut raw),
            cpus: Cpus {
                bench: bench.unwrap_or_default(),
                housekeeping: housekeeping.unwrap_or_default(),
                single_core: single_core.unwrap_or_default(),
                parked: parked.unwrap_or_default(),
                expected_online: expected_online.unwrap_or_default(),
            },
        };
        raw.refuse_the_rest();
        for (key, what) in [
            (keys::BENCH, "the CPUs that are measured on"),
            (keys::HOUSEKEEPING, "the CPUs for everything else"),
            (keys::SINGLE_CORE, "the CPU that single-core measures on"),
            (
                keys::EXPECTED_ONLINE,
                "the CPUs that are online after the boot",
            ),
        ] {
            if !raw.lines.contains_key(key) {
                raw.wrong(0, key, format!("the file lacks it: {what}; `workload-guard bench plan` proposes a whole file for this machine"));
            }
        }
        // What cannot be read means nothing beside the rest.
        if raw.mistakes.is_empty() {
            for (key, reason) in consistency::of(&machine) {
                let line = raw.lines.get(key).copied().unwrap_or_default();
                raw.wrong(line, key, reason);
            }
        }
        let lines = std::mem::take(&mut raw.lines);
        Mistakes::none(raw.mistakes)?;
        Ok(MachineFile {
            machine,
            origin: origin.to_owned(),
            lines,
        })
    }

    /// Reasons by key, with the file and line of each key.
    pub(crate) fn mistakes(&self, wrong: Vec<(&str, String)>) -> Result<(), Mistakes> {
        let place = |(key, reason): (&str, String)| {
            let line = self.lines.get(key).copied().unwrap_or_default();
            (line, Mistake::new(&self.origin, line, key, reason))
        };
        Mistakes::none(wrong.into_iter().map(place).collect())
    }
}

fn switches(raw: &mut Raw<'_>) -> BTreeMap<Profile, Switches> {
    let of = |profile| {
        let default = Switches::default_of(profile);
        let switches = Switches {
            boost: raw.flag(&keys::boost(profile)).unwrap_or(default.boost),
            smt: raw.flag(&keys::smt(profile)).unwrap_or(default.smt),
        };
        (profile, switches)
    };
    Profile::ALL.into_iter().map(of).collect()
}

impl Cpus {
    /// Housekeeping CPUs that stay online when some are parked.
    pub fn kept(&self) -> CpuSet {
        self.housekeeping.without(&self.parked)
    }
}
