use std::path::Path;

use bench_profile::command_line;
use bench_profile::machine::MachineFile;
use bench_profile::profile::Profile;

use super::*;
use crate::root::Root;

const MACHINE: &str = include_str!("../../../../config/machine.toml");

/// A Ryzen 9 9950X that is booted into `profile` and prepared for it.
fn prepared(profile: Profile) -> (tempfile::TempDir, Root) {
    let folder = tempfile::tempdir().expect("a folder");
    bench_trees::expand(bench_trees::topology("ryzen-9950x"), folder.path()).expect("a tree");
    let machine = MachineFile::parse("machine.toml", MACHINE)
        .expect("the example")
        .machine;
    let line = command_line::parameters(&machine, profile).join(" ");
    let write = |name: &str, text: &str| put(folder.path(), name, text);
    write("etc/bench-profile/machine.toml", MACHINE);
    write("proc/cmdline", &format!("root=/dev/x {line}"));
    write("proc/swaps", "Filename Type Size Used Priority\n");
    write("proc/sys/vm/stat_interval", "120\n");
    write("proc/sys/kernel/numa_balancing", "0\n");
    if profile.isolates() {
        write("sys/devices/system/cpu/online", "0-15\n");
        write("sys/devices/system/cpu/nohz_full", "8-15\n");
        write("sys/devices/system/cpu/smt/control", "off\n");
        write("proc/irq/default_smp_affinity", "00ff\n");
        write("proc/sys/kernel/watchdog_cpumask", "0-7\n");
        for cpu in 0..16 {
            let siblings = format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
            write(&siblings, &format!("{cpu}\n"));
        }
    }
    let isolated = if profile == Profile::SingleCore {
        "8-15\n"
    } else {
        "\n"
    };
    write("sys/devices/system/cpu/isolated", isolated);
    let boost = if profile == Profile::MultiCore {
        "0\n"
    } else {
        "1\n"
    };
    write("sys/devices/system/cpu/cpufreq/boost", boost);
    for cpu in 0..32 {
        let file = format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
        write(&file, "performance\n");
    }
    let root = Root::new(folder.path());
    (folder, root)
}

fn put(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
    std::fs::write(path, text).expect("a file");
}

fn shortfalls(root: &Root, profile: Profile) -> Vec<(&'static str, String)> {
    judge(&Facts::gather(root), profile)
        .into_iter()
        .filter(|finding| finding.level == Level::Differs)
        .map(|finding| (finding.id, finding.text))
        .collect()
}

#[test]
fn a_prepared_machine_falls_short_of_nothing() {
    for profile in Profile::ALL {
        let (_folder, root) = prepared(profile);
        assert_eq!(shortfalls(&root, profile), [], "{profile}");
    }
}

#[test]
fn another_profile_is_told_with_every_reason() {
    let (_folder, root) = prepared(Profile::MultiCore);
    let reasons = shortfalls(&root, Profile::SingleCore);
    let ids: Vec<&str> = reasons.iter().map(|(id, _)| *id).collect();
    for id in ["profile", "command-line", "isolated", "boost"] {
        assert!(ids.contains(&id), "{id} is not in {reasons:?}");
    }
    assert!(
        reasons[0]
            .1
            .contains("booted into multi-core, not single-core")
    );
}

#[test]
fn each_shortfall_is_seen() {
    for (file, text, id) in [
        ("sys/devices/system/cpu/isolated", "8-15\n", "isolated"),
        ("sys/devices/system/cpu/nohz_full", "(null)\n", "nohz_full"),
        ("sys/devices/system/cpu/online", "0-14\n", "online"),
        ("sys/devices/system/cpu/smt/control", "on\n", "smt"),
        ("sys/devices/system/cpu/cpufreq/boost", "1\n", "boost"),
        (
            "sys/devices/system/cpu/cpu9/cpufreq/scaling_governor",
            "powersave\n",
            "governor",
        ),
        ("proc/irq/default_smp_affinity", "ffff\n", "mask"),
        ("proc/sys/kernel/watchdog_cpumask", "0-15\n", "mask"),
        (
            "proc/swaps",
            "Filename\n/dev/sda2 partition 1 0 -2\n",
            "swap",
        ),
        ("proc/sys/vm/stat_interval", "1\n", "sysctl"),
        ("etc/bench-profile/machine.toml", "[cpus]\n", "machine-file"),
        ("proc/cmdline", "bench_profile=multi-core\n", "command-line"),
        (
            "sys/fs/cgroup/system.slice/irqbalance.service/cgroup.procs",
            "1\n",
            "unit",
        ),
    ] {
        let (folder, root) = prepared(Profile::MultiCore);
        put(folder.path(), file, text);
        let reasons = shortfalls(&root, Profile::MultiCore);
        assert!(
            reasons.iter().any(|(found, _)| *found == id),
            "{file}: {id} is not in {reasons:?}"
        );
    }
}

#[test]
fn parked_cpus_may_be_offline_or_not() {
    let (folder, root) = prepared(Profile::MultiCore);
    put(folder.path(), "sys/devices/system/cpu/online", "0,8-15\n");
    assert_eq!(shortfalls(&root, Profile::MultiCore), []);
    let single = shortfalls(&root, Profile::SingleCore);
    assert!(single.iter().any(|(id, _)| *id == "online"), "{single:?}");
}

#[test]
fn an_empty_tree_is_reported_and_no_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = Root::new(folder.path());
    let facts = Facts::gather(&root);
    for profile in Profile::ALL {
        assert!(!judge(&facts, profile).is_empty());
    }
    let environment = Environment::read(&root, &facts);
    assert!(environment.0.iter().any(|item| item.value == "unknown"));
}

#[test]
fn the_environment_has_what_tells_results_comparable() {
    let (folder, root) = prepared(Profile::MultiCore);
    put(
        folder.path(),
        "sys/devices/system/cpu/vulnerabilities/spectre_v2",
        "Mitigation: X\n",
    );
    put(folder.path(), "proc/sys/kernel/hostname", "bench\n");
    let environment = Environment::read(&root, &Facts::gather(&root));
    let value = |name: &str| {
        let item = environment.0.iter().find(|item| item.name == name);
        item.map(|item| item.value.as_str())
            .unwrap_or_else(|| panic!("no {name}"))
    };
    assert_eq!(value("host"), "bench");
    assert_eq!(value("online"), "0-15");
    assert_eq!(value("isolated"), "none");
    assert_eq!(value("smt"), "off");
    assert_eq!(value("governors"), "performance");
    assert_eq!(value("mitigations"), "spectre_v2: Mitigation: X");
    assert!(value("command line").contains("bench_profile=multi-core"));
    assert_eq!(value("machine file").len(), 16);
}
