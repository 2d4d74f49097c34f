//! What the machine does not let happen, and what is not believed.

use std::os::unix::fs::symlink;

use bench_profile::knob::Verdict;
use bench_profile::profile::Profile;
use bench_system::apply::{self, ApplyError};
use bench_system::hands::{Live, NoUnits};
use bench_system::originals;

use super::{applied, apply as try_to_apply, assert_good, knob, requested, restored, tree};
use crate::kernel::Kernel;

const TWO_AREAS: &str = "Filename Type Size Used Priority\n/dev/zram0 partition 8388604 2048 100\n/swapfile file 1048572 1024 -2";

#[test]
fn swap_that_does_not_fit_into_memory_is_an_error_with_nothing_done() {
    let mut kernel = Kernel::of(tree("intel-pstate"));
    kernel.set("proc/meminfo", "MemAvailable: 1024 kB");
    let before = kernel.files();
    let requested = requested("intel-pstate", Profile::MultiCore);
    let error = try_to_apply(&mut kernel, &requested).expect_err("too full");
    assert!(matches!(error, ApplyError::Swap(_)), "{error}");
    assert!(error.to_string().contains("nothing was changed"), "{error}");
    assert!(kernel.done.is_empty());
    assert_eq!(kernel.files(), before);
    assert!(restored(&mut kernel).is_empty());
}

#[test]
fn an_area_that_does_not_go_off_brings_back_the_others() {
    let mut kernel = Kernel::of(tree("intel-pstate"));
    kernel.set("proc/swaps", TWO_AREAS);
    kernel.stuck.insert("/swapfile".to_owned());
    let requested = requested("intel-pstate", Profile::MultiCore);
    let error = try_to_apply(&mut kernel, &requested).expect_err("it is stuck");
    assert!(error.to_string().contains("/swapfile"), "{error}");
    assert_eq!(
        kernel.done,
        [
            "swapoff /dev/zram0",
            "swapoff /swapfile",
            "swapon /dev/zram0 priority 100"
        ]
    );
    assert!(
        restored(&mut kernel).is_empty(),
        "nothing is left to restore"
    );

    kernel.stuck.clear();
    applied(&mut kernel, &requested);
    restored(&mut kernel);
    for line in TWO_AREAS.lines() {
        assert!(kernel.text("proc/swaps").contains(line), "{line}");
    }
}

#[test]
fn swap_areas_without_a_priority_of_their_own_go_on_in_the_order_that_keeps_it() {
    let mut kernel = Kernel::of(tree("intel-pstate"));
    let areas = "Filename Type Size Used Priority\n/second file 1024 0 -3\n/first file 1024 0 -2\n/third file 1024 0 -4\n/dev/zram0 partition 1024 0 100";
    kernel.set("proc/swaps", areas);
    applied(&mut kernel, &requested("intel-pstate", Profile::SingleCore));
    kernel.done.clear();
    restored(&mut kernel);
    let on: Vec<&String> = kernel
        .done
        .iter()
        .filter(|done| done.starts_with("swapon"))
        .collect();
    assert_eq!(
        on,
        [
            "swapon /dev/zram0 priority 100",
            "swapon /first priority -2",
            "swapon /second priority -3",
            "swapon /third priority -4",
        ]
    );
}

#[test]
fn originals_that_name_another_file_are_not_believed() {
    let mut kernel = Kernel::of(tree("intel-pstate"));
    applied(&mut kernel, &requested("intel-pstate", Profile::SingleCore));
    kernel.done.clear();
    let file = kernel.folder().join(originals::FILE);
    let text = std::fs::read_to_string(&file).expect("a file");
    for foreign in [
        "proc/sys/kernel/core_pattern",
        "proc/irq/1/../../../etc/passwd",
        "/etc/passwd",
    ] {
        std::fs::write(&file, text.replace("proc/sys/vm/stat_interval", foreign)).expect("a file");
        let root = kernel.root();
        let error = apply::restore(&root, &mut kernel)
            .expect_err(foreign)
            .to_string();
        assert!(
            error.contains(foreign) && error.contains("originals.json"),
            "{error}"
        );
    }
    std::fs::write(&file, "{").expect("a file");
    let root = kernel.root();
    let error = apply::restore(&root, &mut kernel)
        .expect_err("no JSON")
        .to_string();
    assert!(error.contains("A reboot"), "{error}");
    assert!(kernel.done.is_empty(), "{:?}", kernel.done);
}

#[test]
fn real_hands_on_a_tree_change_the_tree_alone() {
    let kernel = Kernel::of(tree("no-cpufreq"));
    let root = kernel.root();
    let elsewhere = tempfile::tempdir().expect("a folder");
    let outside = elsewhere.path().join("stat_interval");
    std::fs::write(&outside, "1\n").expect("a file");
    let knob_file = kernel.folder().join("proc/sys/kernel/kptr_restrict");
    std::fs::write(&knob_file, "1\n").expect("a file");
    let mut hands = Live::new(root.clone(), NoUnits);
    let requested = requested("no-cpufreq", Profile::SingleCore);
    let before = kernel.files();
    let knobs = apply::apply(&root, &mut hands, &requested).expect("applied");
    assert_good(&knobs);
    assert_eq!(kernel.text("proc/sys/vm/stat_interval"), "120");
    assert_eq!(kernel.text("proc/irq/24/smp_affinity"), "1");
    assert!(matches!(
        knob(&knobs, "unit:irqbalance.service").verdict,
        Verdict::Unsupported(_)
    ));
    assert_good(&apply::restore(&root, &mut hands).expect("restored"));
    assert_eq!(kernel.files(), before);

    // A link in a knob's place is refused, wherever it leads.
    let link = kernel.folder().join("proc/sys/vm/stat_interval");
    std::fs::remove_file(&link).expect("a file");
    std::fs::write(kernel.folder().join("inside"), "1\n").expect("a file");
    symlink("/inside", &link).expect("a link");
    let knobs = apply::apply(&root, &mut hands, &requested).expect("applied");
    let verdict = &knob(&knobs, "sysctl:vm.stat_interval").verdict;
    assert!(verdict.is_failure(), "{verdict:?}");
    assert_eq!(kernel.text("inside"), "1\n");
    std::fs::remove_file(&link).expect("a link");
    symlink(&outside, &link).expect("a link");
    apply::apply(&root, &mut hands, &requested).expect("applied");
    assert_eq!(std::fs::read_to_string(&outside).expect("a file"), "1\n");
}

#[test]
fn swap_of_the_machine_is_out_of_reach_of_a_tree() {
    let kernel = Kernel::of(tree("intel-pstate"));
    let root = kernel.root();
    let before = kernel.files();
    let mut hands = Live::new(root.clone(), NoUnits);
    let requested = requested("intel-pstate", Profile::SingleCore);
    let error = apply::apply(&root, &mut hands, &requested).expect_err("a tree has no swap");
    assert!(error.to_string().contains("recorded tree"), "{error}");
    assert_eq!(kernel.files(), before);
}
