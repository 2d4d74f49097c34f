//! What is on or off: swap, disturbing units, SMT, sysctls, parked CPUs.

use bench_profile::requested::{Requested, STOPPED, SYSCTLS};

use super::{Action, Entry, Meets};
use crate::snapshot::{CPUS, SWAPS, Snapshot, sysctl};

/// Swap goes off, where there is any notion of it.
pub fn swap(snapshot: &Snapshot) -> Vec<Entry> {
    let action = match snapshot.text(SWAPS) {
        Some(_) => Action::SwapOff,
        None => Action::Unsupported("this kernel has no swap".to_owned()),
    };
    vec![Entry {
        id: "swap".to_owned(),
        action,
    }]
}

/// Units that move interrupts back, where interrupts are moved at all.
pub fn units(requested: &Requested) -> Vec<Entry> {
    if requested.housekeeping.is_none() {
        return Vec::new();
    }
    STOPPED
        .iter()
        .map(|unit| Entry {
            id: format!("unit:{unit}"),
            action: Action::Stop {
                unit: (*unit).to_owned(),
            },
        })
        .collect()
}

/// The second threads of the cores.
pub fn smt(requested: &Requested, snapshot: &Snapshot) -> Entry {
    let path = format!("{CPUS}/smt/control");
    match snapshot.word(&path) {
        None => Entry::unsupported("smt", "this kernel has no SMT control"),
        Some("notsupported" | "notimplemented") => {
            Entry::unsupported("smt", "the cores have one thread each")
        }
        Some(_) if requested.smt => Entry::write("smt", path, "on", Meets::Words(&["on"])),
        Some(_) => Entry::write("smt", path, "off", Meets::Words(&["off", "forceoff"])),
    }
}

/// The kernel's settings.
pub fn sysctls(snapshot: &Snapshot) -> Vec<Entry> {
    SYSCTLS
        .iter()
        .map(|(name, value)| {
            let id = format!("sysctl:{name}");
            let path = sysctl(name);
            match snapshot.text(&path) {
                Some(_) => Entry::write(id, path, value, Meets::Words(std::slice::from_ref(value))),
                None => Entry::unsupported(id, "this kernel has no such setting"),
            }
        })
        .collect()
}

/// CPUs that go offline.
pub fn parking(requested: &Requested, snapshot: &Snapshot) -> Vec<Entry> {
    requested
        .parked
        .iter()
        .map(|cpu| {
            let id = format!("parked:cpu{cpu}");
            let path = format!("{CPUS}/cpu{cpu}/online");
            match snapshot.text(&path) {
                Some(_) => Entry::write(id, path, "0", Meets::Words(&["0"])),
                None => Entry::unsupported(id, "this CPU cannot be taken offline"),
            }
        })
        .collect()
}

/// CPUs that are not asked to go: switching SMT on brings back those, too, that somebody took offline.
pub fn others(requested: &Requested, snapshot: &Snapshot) -> Vec<Entry> {
    snapshot
        .cpus()
        .into_iter()
        .filter(|cpu| !requested.parked.contains(*cpu))
        .map(|cpu| {
            Entry::keep(
                format!("online:cpu{cpu}"),
                format!("{CPUS}/cpu{cpu}/online"),
            )
        })
        .collect()
}
