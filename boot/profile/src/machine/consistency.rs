//! What the CPU sets of a machine file must be to each other, on any machine.

use super::{Cpus, Machine, keys};
use crate::profile::Profile;

/// Each key that is wrong, and why.
pub fn of(machine: &Machine) -> Vec<(&'static str, String)> {
    let mut wrong = sets(&machine.cpus);
    let smt = |profile| machine.switches(profile).smt;
    if smt(Profile::SingleCore) != smt(Profile::MultiCore) {
        wrong.push((
            keys::MULTI_CORE_SMT,
            format!(
                "single-core has {} here; both boot into `{}`, so give them the same",
                smt(Profile::SingleCore),
                keys::EXPECTED_ONLINE
            ),
        ));
    }
    wrong
}

fn sets(cpus: &Cpus) -> Vec<(&'static str, String)> {
    let mut wrong = Vec::new();
    if cpus.bench.is_empty() {
        wrong.push((
            keys::BENCH,
            "no CPU is left to measure on; name at least one".to_owned(),
        ));
    }
    let both = cpus.bench.and(&cpus.housekeeping);
    if !both.is_empty() {
        wrong.push((
            keys::HOUSEKEEPING,
            format!(
                "CPU {both} is in `{}` too; take it out of one of the two",
                keys::BENCH
            ),
        ));
    }
    if !cpus.bench.is_empty() && !cpus.bench.contains(cpus.single_core) {
        wrong.push((
            keys::SINGLE_CORE,
            format!(
                "CPU {} is not in `{}` ({}); choose one of those",
                cpus.single_core,
                keys::BENCH,
                cpus.bench
            ),
        ));
    }
    if cpus.parked.contains(0) {
        wrong.push((
            keys::PARKED,
            "CPU 0 cannot be taken offline; leave it out".to_owned(),
        ));
    }
    let stray = cpus.parked.without(&cpus.housekeeping);
    if !stray.is_empty() {
        wrong.push((
            keys::PARKED,
            format!(
                "CPU {stray} is not in `{}` ({}); park housekeeping CPUs only",
                keys::HOUSEKEEPING,
                cpus.housekeeping
            ),
        ));
    }
    if cpus.kept().is_empty() {
        wrong.push((
            keys::HOUSEKEEPING,
            format!(
                "no housekeeping CPU is left beside `{}`; keep at least one, cpu0 as a rule",
                keys::PARKED
            ),
        ));
    }
    wrong.extend(online(cpus));
    wrong
}

/// Every CPU that is online is in one of the two sets, and none other.
fn online(cpus: &Cpus) -> Vec<(&'static str, String)> {
    let named = cpus.bench.or(&cpus.housekeeping);
    let offline = named.without(&cpus.expected_online);
    let unnamed = cpus.expected_online.without(&named);
    let mut wrong = Vec::new();
    if !offline.is_empty() {
        wrong.push((
            keys::EXPECTED_ONLINE,
            format!(
                "it lacks CPU {offline}, which `{}` or `{}` names; add it, or take it out there",
                keys::BENCH,
                keys::HOUSEKEEPING
            ),
        ));
    }
    if !unnamed.is_empty() {
        wrong.push((
            keys::EXPECTED_ONLINE,
            format!(
                "CPU {unnamed} is in neither `{}` nor `{}`; give it to housekeeping",
                keys::BENCH,
                keys::HOUSEKEEPING
            ),
        ));
    }
    wrong
}
