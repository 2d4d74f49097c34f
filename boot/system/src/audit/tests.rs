use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;

use bench_profile::cpus::CpuSet;

use super::interrupts::{Interrupts, Kind};
use super::*;
use crate::root::Root;

const X86: &str = "           CPU0       CPU2       CPU3       
  0:         36          0          0   IO-APIC   2-edge      timer
 24:          1          0          7  PCI-MSI-0000:00:1f.2   0-edge      ahci[0000:00:1f.2]
 36:          0    2647601          0 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0
NMI:          0          0          0   Non-maskable interrupts
LOC:    4158322    4217871          9   Local timer interrupts
RES:        100        200        300   Rescheduling interrupts
ERR:          0
MIS:          0
";

const ARM: &str = "           CPU0       CPU1       
 11:      52315      48211     GICv3  27 Level     arch_timer
 13:          5          0     GICv3  78 Edge      virtio0
 14:          0          0     GICv3  23 Level     arm-pmu
IPI0:      2134       1987       Rescheduling interrupts
Err:          0
";

const RISCV: &str = "           CPU0       CPU1       CPU2       CPU3       
 10:       5501       4310       4410       4501  RISC-V INTC   5 Edge      riscv-timer
 12:         10          0          0          0  SiFive PLIC   8 Edge      virtio0
IPI0:       101        102        103        104  Rescheduling interrupts
";

fn parse(text: &str) -> Interrupts {
    Interrupts::parse(text).expect("interrupts")
}

fn set(text: &str) -> CpuSet {
    text.parse().expect("a CPU list")
}

fn at(interrupts: &str) -> Look {
    Look {
        interrupts: parse(interrupts),
        ..Look::default()
    }
}

#[test]
fn x86_with_a_cpu_offline() {
    let all = parse(X86);
    assert_eq!(all.cpus, [0, 2, 3]);
    assert_eq!(all.count("36", 2), Some(2_647_601));
    assert_eq!(all.count("36", 1), None);
    assert_eq!(all.rows["36"].kind, Kind::Device);
    assert_eq!(
        all.rows["24"].source,
        "PCI-MSI-0000:00:1f.2 0-edge ahci[0000:00:1f.2]"
    );
    assert_eq!(all.rows["LOC"].kind, Kind::Named);
    assert!(!all.rows.contains_key("ERR"), "it counts for no CPU");
}

#[test]
fn the_timers_of_arm_and_riscv_are_no_devices() {
    let arm = parse(ARM);
    let kinds: BTreeMap<_, _> = arm
        .rows
        .iter()
        .map(|(label, row)| (label.as_str(), row.kind))
        .collect();
    assert_eq!(
        kinds,
        BTreeMap::from([
            ("11", Kind::PerCpu),
            ("13", Kind::Device),
            ("14", Kind::PerCpu),
            ("IPI0", Kind::Named)
        ])
    );
    let riscv = parse(RISCV);
    assert_eq!(riscv.rows["10"].kind, Kind::PerCpu);
    assert_eq!(riscv.rows["12"].kind, Kind::Device);
}

#[test]
fn a_wide_machine() {
    let cpus = 512;
    let mut text: String = (0..cpus).map(|cpu| format!("CPU{cpu:<8}")).collect();
    text.push_str("\n1000:");
    text.push_str(
        &(0..cpus)
            .map(|cpu| format!("{cpu:>11}"))
            .collect::<String>(),
    );
    text.push_str("  IR-PCI-MSI 4096-edge      nvme0q1\n");
    let all = parse(&text);
    assert_eq!(all.count("1000", 511), Some(511));
    assert_eq!(all.rows["1000"].source, "IR-PCI-MSI 4096-edge nvme0q1");
}

#[test]
fn what_is_no_interrupts_file_is_refused() {
    for text in [
        "",
        "nothing\n",
        "CPU0 CPUx\n",
        "           CPU0 CPU1\n 24: 1 eth0\n",
    ] {
        assert!(Interrupts::parse(text).is_err(), "{text:?}");
    }
    // A device's name that begins with a digit is not taken for a count.
    let all = parse("CPU0 CPU1\n 7: 1 2 3-edge 8250\n");
    assert_eq!(all.rows["7"].source, "3-edge 8250");
}

#[test]
fn only_device_interrupts_on_the_measured_cpus_interfere() {
    let later = X86
        .replace("2647601", "2647613")
        .replace("4217871", "4218000")
        .replace("        36 ", "        99 ");
    let audit = compare(&at(X86), &at(&later), &set("2-3"));
    assert_eq!(
        audit.interference,
        [Hit {
            irq: 36,
            source: "PCI-MSIX-0000:00:02.0 1-edge virtio1-req.0".into(),
            cpu: 2,
            count: 12,
            managed: false,
        }]
    );
    let notes: Vec<&str> = audit.notes.iter().map(|note| note.text.as_str()).collect();
    assert_eq!(notes, ["LOC 129 (Local timer interrupts)"]);
    assert!(
        compare(&at(X86), &at(&later), &set("3"))
            .interference
            .is_empty()
    );
}

#[test]
fn a_counter_that_wraps_is_no_flood() {
    let before = "CPU0\n 5: 4294967295 IO-APIC 5-edge x\n";
    let after = "CPU0\n 5: 2 IO-APIC 5-edge x\n";
    let audit = compare(&at(before), &at(after), &set("0"));
    assert_eq!(audit.interference[0].count, 3);
}

#[test]
fn a_number_that_went_to_another_device_counts_from_zero() {
    let before = "CPU0\n 5: 1000 IO-APIC 5-edge old\n";
    let after = "CPU0\n 5: 4 IO-APIC 5-edge new\n 6: 2 IO-APIC 6-edge newer\n";
    let audit = compare(&at(before), &at(after), &set("0"));
    let counts: Vec<(u32, u32)> = audit
        .interference
        .iter()
        .map(|hit| (hit.irq, hit.count))
        .collect();
    assert_eq!(counts, [(5, 4), (6, 2)]);
}

#[test]
fn a_cpu_that_was_offline_is_told() {
    let audit = compare(&at(X86), &at(X86), &set("1-2"));
    assert_eq!(audit.notes[0].id, "offline");
    assert!(audit.notes[0].text.contains("CPUs 1 "), "{:?}", audit.notes);
}

#[test]
fn the_files_of_a_machine() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    };
    write("proc/interrupts", X86);
    write(
        "proc/stat",
        "cpu  1 2 3 4 5 6 7 8 9 10\ncpu2 1 2 3 4 5 6 7 30 0 0\nintr 1\n",
    );
    write("sys/devices/system/cpu/nohz_full", "2-3\n");
    write("proc/irq/24/smp_affinity", "f\n");
    write("proc/irq/36/smp_affinity", "f\n");
    write("proc/irq/default_smp_affinity", "f\n");
    write(
        "sys/devices/system/cpu/cpu2/thermal_throttle/core_throttle_count",
        "4\n",
    );
    std::fs::set_permissions(
        folder.path().join("proc/irq/36/smp_affinity"),
        std::fs::Permissions::from_mode(0o444),
    )
    .expect("a mode");
    let root = Root::new(folder.path());
    let before = look(&root, &set("2-3")).expect("a look");
    assert_eq!(before.managed.iter().collect::<Vec<_>>(), [&36]);
    assert_eq!(before.steal, BTreeMap::from([(2, 30)]));

    write("proc/interrupts", &X86.replace("2647601", "2647602"));
    write("proc/stat", "cpu2 1 2 3 4 5 6 7 35 0 0\n");
    write(
        "sys/devices/system/cpu/cpu2/thermal_throttle/core_throttle_count",
        "6\n",
    );
    let after = look(&root, &set("2-3")).expect("a look");
    let said = text(&compare(&before, &after, &set("2-3")));
    assert_eq!(
        said,
        "INTERFERENCE: interrupts of devices arrived on CPUs 2-3, so this measurement is invalid:\n  \
           IRQ 36 on cpu2: 1 times (PCI-MSIX-0000:00:02.0 1-edge virtio1-req.0); managed: the kernel alone places it\n  \
           note: timer ticks on nohz_full CPUs: cpu2 0, cpu3 0\n  \
           note: the hypervisor took 50 ms away from these CPUs\n  \
           note: temperature limit reached 2 times (core_throttle_count)\n"
    );

    write("sys/devices/system/cpu/nohz_full", "(null)\n");
    assert!(look(&root, &set("2")).expect("a look").nohz_full.is_empty());
    std::fs::remove_file(folder.path().join("proc/interrupts")).expect("gone");
    let error = look(&root, &set("2")).expect_err("no interrupts");
    assert!(error.to_string().contains("/proc/interrupts"), "{error}");
}

#[test]
fn this_machine_can_be_looked_at() {
    let look = look(&Root::new("/"), &set("0")).expect("a look");
    assert!(look.interrupts.cpus.contains(&0));
}
