//! Where interrupts, unbound workqueues and the watchdog run.

use bench_profile::requested::Requested;

use super::{Entry, Meets};
use crate::snapshot::Snapshot;

/// All of them; none is changed where the profile lets everything run everywhere.
pub fn entries(requested: &Requested, snapshot: &Snapshot) -> Vec<Entry> {
    let interrupts = snapshot.interrupts().into_iter();
    let of = |irq: u32| (format!("irq:{irq}"), format!("proc/irq/{irq}/smp_affinity"));
    let Some(cpus) = &requested.housekeeping else {
        // The kernel moves an interrupt whose CPUs all go offline.
        return interrupts
            .map(of)
            .map(|(id, path)| Entry::keep(id, path))
            .collect();
    };
    let mask = cpus.to_mask();
    let whole = |id: &str, path: &str, value: &str, meets: Meets, absent: &str| {
        if snapshot.text(path).is_some() {
            Entry::write(id, path, value, meets)
        } else {
            Entry::unsupported(id, absent)
        }
    };
    let mut entries = vec![
        whole(
            "workqueue",
            "sys/devices/virtual/workqueue/cpumask",
            &mask,
            Meets::Mask(cpus.clone()),
            "no mask of unbound workqueues in sysfs",
        ),
        whole(
            "irq:default",
            "proc/irq/default_smp_affinity",
            &mask,
            Meets::Mask(cpus.clone()),
            "no mask for new interrupts in /proc/irq",
        ),
    ];
    entries.extend(interrupts.map(|irq| {
        let (id, path) = of(irq);
        Entry::write(id, path, &mask, Meets::Within(cpus.clone()))
    }));
    entries.push(whole(
        "watchdog",
        "proc/sys/kernel/watchdog_cpumask",
        &cpus.to_string(),
        Meets::List(cpus.clone()),
        "this kernel has no lockup detector",
    ));
    entries
}
