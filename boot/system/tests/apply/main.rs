//! Apply and Restore on whole trees: each write in its order, as a file in `../writes/`; what is left alone; and a death
//! between any two of them.

mod crash;
mod kernel;
mod order;
mod refused;
mod traps;

use bench_profile::knob::Knob;
use bench_profile::machine::{Machine, MachineFile};
use bench_profile::profile::Profile;
use bench_profile::requested::{Options, Requested};
use bench_system::apply::{self, ApplyError};

use kernel::Kernel;

fn tree(name: &str) -> &'static str {
    let mut trees = bench_trees::KNOBS.into_iter();
    trees.find(|(known, _)| *known == name).expect("a tree").1
}

fn machine_file(tree: &str) -> &'static str {
    match tree {
        "no-cpufreq" => {
            "[cpus]\nbench = \"1\"\nhousekeeping = \"0\"\nsingle_core = 1\nparked = \"\"\nexpected_online = \"0-1\"\n"
        }
        _ => {
            "[cpus]\nbench = \"2-3\"\nhousekeeping = \"0-1\"\nsingle_core = 2\nparked = \"1\"\nexpected_online = \"0-3\"\n"
        }
    }
}

fn machine(tree: &str) -> Machine {
    let file = MachineFile::parse("machine.toml", machine_file(tree));
    file.expect("it is correct").machine
}

fn requested(tree: &str, profile: Profile) -> Requested {
    Requested::of(&machine(tree), profile, Options::default())
}

fn apply(kernel: &mut Kernel, requested: &Requested) -> Result<Vec<Knob>, ApplyError> {
    let root = kernel.root();
    apply::apply(&root, kernel, requested)
}

/// Applies, and nothing may be wrong with it.
fn applied(kernel: &mut Kernel, requested: &Requested) -> Vec<Knob> {
    let knobs = apply(kernel, requested).expect("applied");
    assert_good(&knobs);
    knobs
}

/// Restores, and nothing may be wrong with it.
fn restored(kernel: &mut Kernel) -> Vec<Knob> {
    let root = kernel.root();
    let knobs = apply::restore(&root, kernel).expect("restored");
    assert_good(&knobs);
    assert!(
        !kernel.folder().join(bench_system::originals::FILE).exists(),
        "what is restored is forgotten"
    );
    knobs
}

fn assert_good(knobs: &[Knob]) {
    for knob in knobs {
        assert!(!knob.verdict.is_failure(), "{knob:?}");
    }
}

fn knob<'a>(knobs: &'a [Knob], id: &str) -> &'a Knob {
    let mut found = knobs.iter().filter(|knob| knob.id == id);
    found
        .next()
        .unwrap_or_else(|| panic!("no knob is called {id}"))
}
