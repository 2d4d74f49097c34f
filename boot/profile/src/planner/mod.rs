//! Proposes a machine file for a machine, and says why.

mod choose;
mod groups;

use crate::cpus::CpuSet;
use crate::machine::{Cpus, Machine, Reasons, Switches, keys, render};
use crate::profile::Profile;
use crate::topology::Topology;

/// A proposal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The machine.
    pub machine: Machine,
    /// Why each key has its value.
    pub reasons: Reasons,
    /// What this machine cannot do, or what should be looked at before the plan is used.
    pub notes: Vec<String>,
}

impl Plan {
    /// The machine file, with the reasons and notes as comments.
    pub fn text(&self) -> String {
        let mut reasons = self.reasons.clone();
        let head = reasons.entry(String::new()).or_default();
        head.extend(self.notes.iter().map(|note| format!("NOTE: {note}")));
        render(&self.machine, &reasons)
    }
}

/// Why there is no proposal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no plan for this machine: {0}")]
pub struct Unplannable(pub String);

/// Units that disturb on most machines. Masking one that does not exist does no harm.
const MASKED: [&str; 11] = [
    "irqbalance.service",
    "packagekit.service",
    "unattended-upgrades.service",
    "apt-daily.timer",
    "apt-daily-upgrade.timer",
    "dnf-makecache.timer",
    "fstrim.timer",
    "fwupd-refresh.timer",
    "logrotate.timer",
    "man-db.timer",
    "plocate-updatedb.timer",
];

/// Units that are worth a word when they run.
const NOISY: [&str; 6] = [
    "irqbalance.service",
    "packagekit.service",
    "unattended-upgrades.service",
    "bluetooth.service",
    "cups.service",
    "docker.service",
];

/// Proposes which CPUs do what.
///
/// # Errors
///
/// There is nothing to separate: fewer than two cores.
pub fn plan(topology: &Topology) -> Result<Plan, Unplannable> {
    let primaries = topology.primaries();
    if primaries.len() < 2 {
        return Err(Unplannable(format!(
            "it has {} core online, and measuring needs one for itself beside one for everything else",
            primaries.len()
        )));
    }
    let mut reasons = Reasons::new();
    let mut notes = doubts(topology);
    let choice = choose::bench(topology, &primaries);
    let housekeeping = primaries.without(&choice.bench);
    let single = choose::single_core(topology, &choice.bench);
    // CPU 0 stays where it is housekeeping's; else the lowest, which is as good as any other.
    let kept: CpuSet = housekeeping.first().into_iter().collect();
    let parked = housekeeping.without(&kept);
    if choice.bench.len() < 2 {
        notes.push("multi-core cannot be measured here: one CPU is left to measure on, so its canary fails; single-core and unlimited work".to_owned());
    }
    let name = match topology.model.as_str() {
        "" => "a CPU that does not tell its name",
        model => model,
    };
    let mut because = |key: &str, why: Vec<String>| reasons.insert(key.to_owned(), why);
    because(
        "",
        vec![format!(
            "The machine that measures: {name}. Proposed by `workload-guard bench plan`; review it."
        )],
    );
    because(keys::BENCH, choice.why);
    because(keys::HOUSEKEEPING, vec!["All other cores.".to_owned()]);
    because(keys::SINGLE_CORE, vec![single.1]);
    because(
        keys::PARKED,
        vec![format!(
            "All housekeeping CPUs but {kept}: idle cores that are offline leave power and heat to those that measure."
        )],
    );
    because(keys::EXPECTED_ONLINE, vec![online(topology)]);
    because(
        keys::KERNEL_ENTRY_MATCH,
        vec!["Every kernel of this machine gets an entry for each profile.".to_owned()],
    );
    because(keys::MASKED, vec!["Not started in a profile. Add your display manager and, on a machine that you sit at, networking;\n`systemd-analyze blame` and `systemctl list-units --state=running` show what else there is.".to_owned()]);
    because(
        keys::NOISY,
        vec!["Reported by `bench status` when they run.".to_owned()],
    );
    because(keys::DIVISOR, vec!["Work must run on at least the available CPUs divided by this; 2 finds work that piles up on one core.".to_owned()]);
    because(&keys::boost(Profile::MultiCore), vec!["All-core boost follows the temperature: cells measured minutes apart would differ by that alone.".to_owned()]);
    let cpus = Cpus {
        bench: choice.bench,
        housekeeping,
        single_core: single.0,
        parked,
        expected_online: primaries,
    };
    Ok(Plan {
        machine: machine(cpus),
        reasons,
        notes,
    })
}

fn machine(cpus: Cpus) -> Machine {
    let owned = |units: &[&str]| units.iter().map(|unit| (*unit).to_owned()).collect();
    Machine {
        cpus,
        kernel_entry_match: String::new(),
        masked_units: owned(&MASKED),
        noisy_units: owned(&NOISY),
        canary_divisor: 2,
        profiles: Profile::ALL
            .into_iter()
            .map(|profile| (profile, Switches::default_of(profile)))
            .collect(),
    }
}

/// What makes a plan of this boot worth less.
fn doubts(topology: &Topology) -> Vec<String> {
    let mut doubts = Vec::new();
    let offline = topology.present.without(&topology.online);
    let smt_off = matches!(topology.smt_control.as_deref(), Some("off" | "forceoff"));
    if !offline.is_empty() && smt_off {
        doubts.push(format!(
            "SMT is off in this boot, and CPU {offline} is offline: taken for second threads"
        ));
    } else if !offline.is_empty() {
        doubts.push(format!(
            "CPU {offline} is offline in this boot and left out; plan on a boot where all run"
        ));
    }
    if !topology.isolated.is_empty() {
        doubts.push(format!(
            "CPU {} is isolated in this boot; its counts of interrupts say little",
            topology.isolated
        ));
    }
    if topology.cpus.values().any(|cpu| cpu.l3.is_none()) {
        doubts.push("the machine does not tell which CPUs share an L3, as virtual ones often do not; the plan cannot keep to one".to_owned());
    }
    doubts
}

fn online(topology: &Topology) -> String {
    if topology.has_siblings() {
        "The first thread of each core: what `nosmt` leaves online.".to_owned()
    } else {
        "Each CPU that is online; no second threads are.".to_owned()
    }
}
