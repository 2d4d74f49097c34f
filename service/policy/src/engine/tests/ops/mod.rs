//! Random operations on a small machine, with the rules that must hold after each.
//!
//! The machine carries out what the engine asks for, late and not always, as systemd does; processes
//! start, execute, end and burn in the meantime.

mod callers;
mod dice;
mod execs;
mod explained;
mod holds;
mod learning;
mod life;
mod orders;
mod pruned;
mod time;
mod world;

use std::collections::BTreeMap;

use world::World;

/// Everything that the machine does is told to two engines: one sees each process at each sample, the other
/// only those of groups that used CPU. They must ask for the same at every step.
fn run(seed: u64, steps: usize) -> BTreeMap<&'static str, u32> {
    let mut world = World::new(seed);
    for _ in 0..steps {
        world.operation();
    }
    world.counts
}

/// How many operations there are to be; by default as many as an ordinary run has time for. For a long run:
/// `GUARD_OPERATIONS=1000000 cargo test --release -p guard-policy operations -- --nocapture`.
const OPERATIONS: &str = "GUARD_OPERATIONS";
const LONG: usize = 2000;

#[test]
fn a_hundred_thousand_operations_break_no_rule() {
    let wanted = std::env::var(OPERATIONS).map_or(100_000, |text| text.parse().expect(OPERATIONS));
    let mut total: BTreeMap<&str, u32> = BTreeMap::new();
    // Thousands of short histories, and some long ones.
    let short = (0..2000).map(|seed| (seed, 20));
    let long = (2000..2000 + (wanted / LONG).max(40) as u64).map(|seed| (seed, LONG));
    let mut done = 0;
    for (seed, steps) in short.chain(long) {
        done += steps;
        for (what, count) in run(seed, steps) {
            *total.entry(what).or_default() += count;
        }
    }
    println!("{done} operations: {total:?}");
    // The dice must have led through every part.
    for what in [
        "routed",
        "moved",
        "not moved",
        "recovered",
        "not recovered",
        "released",
        "gap",
        "restart",
        "tree",
        "heard",
        "routed by event",
        "heard while an ancestor was on its way",
        "adaptive",
        "shadow route",
        "shadow recover",
        "told routed",
        "told placed",
        "told moving",
        "told counting",
        "told calm",
        "told resting",
        "told held",
        "told excluded",
        "told never moved",
        "held",
        "unheld",
        "owner left",
        "leased",
        "lease ended",
        "refused to heavy work",
        "exempt tree brought back",
        "withheld",
    ] {
        assert!(
            total.get(what).is_some_and(|count| *count >= 100),
            "{what}: {total:?}"
        );
    }
    // A recovery waits for a moment only.
    assert!(
        total.get("kept").is_some_and(|count| *count >= 20),
        "{total:?}"
    );
}
