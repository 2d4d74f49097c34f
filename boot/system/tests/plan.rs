//! The planner on whole trees: each proposal, with its reasons, as a file in `plans/`.

use bench_profile::machine::MachineFile;
use bench_profile::planner::plan;
use bench_profile::topology::Topology;
use bench_system::root::Root;
use bench_system::topology;

fn read(name: &str) -> Topology {
    let folder = tempfile::tempdir().expect("a folder");
    bench_trees::expand(bench_trees::topology(name), folder.path()).expect("a tree");
    topology::read(&Root::new(folder.path())).expect("a topology")
}

#[test]
fn each_topology_has_its_plan() {
    for (name, _) in bench_trees::TOPOLOGIES {
        let topology = read(name);
        let text = plan(&topology).expect("a plan").text();
        insta::with_settings!({snapshot_path => "plans", prepend_module_to_snapshot => false, omit_expression => true}, {
            insta::assert_snapshot!(name, text);
        });
        let file = MachineFile::parse("machine.toml", &text).expect("a plan agrees with itself");
        file.suits(&topology).expect("and suits its machine");
    }
}

#[test]
fn the_9950x_is_planned_as_the_shipped_file_has_it() {
    let planned = plan(&read("ryzen-9950x")).expect("a plan").machine;
    let shipped = include_str!("../../../config/machine.toml");
    let shipped = MachineFile::parse("machine.toml", shipped).expect("it is correct");
    assert_eq!(planned.cpus, shipped.machine.cpus);
    shipped.suits(&read("ryzen-9950x")).expect("it suits");
}

#[test]
fn one_core_cannot_be_divided() {
    let mut topology = read("vm-2-cpus");
    topology.cpus.remove(&1);
    let error = plan(&topology).expect_err("one core").to_string();
    assert!(
        error.starts_with("no plan for this machine: it has 1 core online"),
        "{error}"
    );
}

#[test]
fn a_file_that_does_not_suit_the_machine_says_why() {
    let shipped = include_str!("../../../config/machine.toml");
    for (tree, change, expected) in [
        (
            "ryzen-9950x",
            ("\"8-15\"", "\"7-14\""),
            "the CPUs span 7 (L3 of 0-7,16-23) and 8-14 (L3 of 8-15,24-31); traffic between caches would be in the results, so keep to one of them",
        ),
        (
            "ryzen-9950x",
            ("\"8-15\"", "\"8-15,24-31\""),
            "CPU 24 is on the core of CPU 8, and SMT is off in the profiles; name the first thread of each core only",
        ),
        (
            "intel-hybrid",
            ("\"8-15\"", "\"8,16\""),
            "the CPUs span 16 (E-cores) and 8 (P-cores); different cores give different results, so keep to one of them",
        ),
        (
            "two-socket",
            ("\"8-15\"", "\"8,40\""),
            "the CPUs span 8 (node 0) and 40 (node 1); the distance to memory would be in the results, so keep to one of them",
        ),
        (
            "vm-2-cpus",
            ("", ""),
            "this machine has no CPU 8-15, only 0-1; `workload-guard bench plan` proposes a file for it",
        ),
    ] {
        let (from, to) = change;
        let mut file = MachineFile::parse("machine.toml", shipped).expect("it is correct");
        if !from.is_empty() {
            let bench = to.trim_matches('"').parse().expect("a list");
            file.machine.cpus.bench = bench;
            file.machine.cpus.expected_online = file
                .machine
                .cpus
                .expected_online
                .or(&file.machine.cpus.bench);
        }
        let error = file.suits(&read(tree)).expect_err(tree).to_string();
        assert!(error.contains(expected), "{tree}: {error}");
        assert!(error.starts_with("machine.toml:"), "{error}");
    }
}
