//! Random operations on a small machine, with the rules that must hold after each.
//!
//! The machine carries out what the engine asks for, late and not always, as systemd does; processes
//! start, execute, end and burn in the meantime.

mod dice;
mod orders;
mod world;

use std::collections::BTreeMap;

use world::World;

fn run(seed: u64, steps: usize) -> BTreeMap<&'static str, u32> {
    let mut world = World::new(seed);
    for _ in 0..steps {
        world.operation();
    }
    world.counts
}

#[test]
fn a_hundred_thousand_operations_break_no_rule() {
    let mut total: BTreeMap<&str, u32> = BTreeMap::new();
    for seed in 0..50 {
        for (what, count) in run(seed, 2000) {
            *total.entry(what).or_default() += count;
        }
    }
    // The dice must have led through every part.
    for what in [
        "routed",
        "moved",
        "not moved",
        "recovered",
        "not recovered",
        "gap",
        "restart",
    ] {
        assert!(
            total.get(what).is_some_and(|count| *count >= 100),
            "{what}: {total:?}"
        );
    }
}
