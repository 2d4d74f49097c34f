//! Governors, energy preferences and boost.

use bench_profile::requested::{Fast, Requested};

use super::{Action, Entry, Meets};
use crate::snapshot::{CPUFREQ, CPUS, Snapshot};

const PERFORMANCE: &str = "performance";
const FAST: Meets = Meets::Words(&[PERFORMANCE]);

/// All of them, in order.
pub fn entries(requested: &Requested, snapshot: &Snapshot) -> Vec<Entry> {
    let policies = snapshot.policies();
    if policies.is_empty() {
        let none =
            "no cpufreq driver: the host of a virtual machine, or the firmware, sets the clocks";
        return ["epp", "governor", "boost"]
            .map(|id| Entry::unsupported(id, none))
            .into();
    }
    let chosen: Vec<u32> = policies
        .iter()
        .filter(|(_, cpus)| match &requested.fast {
            Fast::Cpus(fast) => !cpus.and(fast).is_empty(),
            Fast::Online => true,
        })
        .map(|(policy, _)| *policy)
        .collect();
    let preferences = chosen.iter().map(|policy| preference(*policy, snapshot));
    let governors = chosen.iter().map(|policy| governor(*policy, snapshot));
    let mut entries: Vec<Entry> = preferences.chain(governors).collect();
    entries.extend(boost(requested, snapshot));
    // A CPU that goes offline may come back with its driver's defaults.
    for policy in policies.keys().filter(|policy| !chosen.contains(policy)) {
        for (id, file) in [
            ("epp", "energy_performance_preference"),
            ("governor", "scaling_governor"),
        ] {
            let path = format!("{CPUFREQ}/policy{policy}/{file}");
            if snapshot.text(&path).is_some() {
                entries.push(Entry::keep(format!("{id}:cpu{policy}"), path));
            }
        }
    }
    entries
}

/// Before the governor: while that is `performance`, intel_pstate and amd_pstate answer EBUSY to any
/// other preference, and Restore, which goes backwards, must find the governor back first.
fn preference(policy: u32, snapshot: &Snapshot) -> Entry {
    let id = format!("epp:cpu{policy}");
    let path = format!("{CPUFREQ}/policy{policy}/energy_performance_preference");
    if snapshot.text(&path).is_none() {
        return Entry::unsupported(id, "this driver has no energy preference");
    }
    Entry::write(id, path, PERFORMANCE, FAST)
}

fn governor(policy: u32, snapshot: &Snapshot) -> Entry {
    let id = format!("governor:cpu{policy}");
    let folder = format!("{CPUFREQ}/policy{policy}");
    let offered = snapshot
        .word(&format!("{folder}/scaling_available_governors"))
        .unwrap_or_default();
    if !offered.split_whitespace().any(|name| name == PERFORMANCE) {
        let why = format!("this kernel has no governor `{PERFORMANCE}`, only: {offered}");
        return Entry::unsupported(id, why);
    }
    Entry::write(id, format!("{folder}/scaling_governor"), PERFORMANCE, FAST)
}

/// Three backends: intel_pstate's switch; cpufreq's, for the whole machine and then for each policy; and
/// none, as with amd_pstate's active mode before Linux 6.11.
fn boost(requested: &Requested, snapshot: &Snapshot) -> Vec<Entry> {
    let boost = requested.boost;
    let switch = |id: String, path: String, on: bool| {
        let (value, meets) = match on {
            true => ("1", Meets::Words(&["1"])),
            false => ("0", Meets::Words(&["0"])),
        };
        if boost.written {
            Entry::write(id, path, value, meets)
        } else {
            let action = Action::Look { path, meets };
            Entry { id, action }
        }
    };
    let no_turbo = format!("{CPUS}/intel_pstate/no_turbo");
    if snapshot.text(&no_turbo).is_some() {
        return vec![switch("boost".to_owned(), no_turbo, !boost.on)];
    }
    let whole = format!("{CPUFREQ}/boost");
    if snapshot.text(&whole).is_none() {
        let driver = snapshot
            .policies()
            .keys()
            .find_map(|policy| snapshot.word(&format!("{CPUFREQ}/policy{policy}/scaling_driver")))
            .unwrap_or("this driver");
        let why = match driver {
            "amd-pstate-epp" => {
                "amd-pstate-epp has no boost switch in this kernel; Linux 6.11 and later have one"
                    .to_owned()
            }
            driver => format!("{driver} has no boost switch"),
        };
        return vec![Entry::unsupported("boost", why)];
    }
    let mut entries = vec![switch("boost".to_owned(), whole, boost.on)];
    for policy in snapshot.policies().into_keys() {
        let path = format!("{CPUFREQ}/policy{policy}/boost");
        if snapshot.text(&path).is_none() {
            continue;
        }
        let id = format!("boost:cpu{policy}");
        entries.push(match (boost.written, boost.on) {
            // The machine's 0 holds for each policy, and a write to one answers EINVAL from then on.
            (true, false) => Entry::keep(id, path),
            (_, on) => switch(id, path, on),
        });
    }
    entries
}
