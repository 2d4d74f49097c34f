//! What was found in the field.

use bench_profile::knob::Verdict;
use bench_profile::machine::MachineFile;
use bench_profile::profile::Profile;
use bench_profile::requested::{Options, Requested};
use bench_system::status::{self, Facts, Level};

use super::{
    applied, apply as try_to_apply, knob, machine, machine_file, requested, restored, tree,
};
use crate::kernel::{Kernel, MANAGED};

const CPU: &str = "sys/devices/system/cpu";
/// What Check says of the boot, which no Apply changes.
const OF_THE_BOOT: [&str; 3] = ["profile", "command-line", "nohz_full"];

#[test]
fn a_governor_that_resets_no_turbo_does_not_turn_boost_on_for_good() {
    // Somebody runs the machine without turbo.
    let no_turbo = format!("{CPU}/intel_pstate/no_turbo");
    for profile in Profile::ALL {
        let mut kernel = Kernel::of(tree("intel-pstate"));
        kernel.set(&no_turbo, "1");
        let before = kernel.files();
        applied(&mut kernel, &requested("intel-pstate", profile));
        let expected = if profile == Profile::MultiCore {
            "1\n"
        } else {
            "0\n"
        };
        assert_eq!(kernel.text(&no_turbo), expected, "{profile}");
        restored(&mut kernel);
        assert_eq!(kernel.files(), before, "{profile}");
    }
}

#[test]
fn boost_that_is_off_where_it_is_only_looked_at_is_said_with_the_way_out() {
    let boost = format!("{CPU}/cpufreq/boost");
    let mut kernel = Kernel::of(tree("acpi-cpufreq"));
    kernel.set(&boost, "0");
    let requested = requested("acpi-cpufreq", Profile::SingleCore);
    let knobs = try_to_apply(&mut kernel, &requested).expect("applied");
    let Verdict::Differs(why) = &knob(&knobs, "boost").verdict else {
        panic!("{knobs:?}");
    };
    assert!(why.contains("--boost=on"), "{why}");
    assert_eq!(kernel.text(&boost), "0\n");

    let options = Options {
        boost: Some(true),
        ..Options::default()
    };
    let asked = Requested::of(&machine("acpi-cpufreq"), Profile::SingleCore, options);
    applied(&mut kernel, &asked);
    assert_eq!(kernel.text(&boost), "1\n");
    restored(&mut kernel);
    assert_eq!(kernel.text(&boost), "0\n");
}

#[test]
fn a_managed_interrupt_is_a_note() {
    let mut kernel = Kernel::of(tree("intel-pstate"));
    let knobs = applied(&mut kernel, &requested("intel-pstate", Profile::SingleCore));
    let irq = knob(&knobs, "irq:30");
    assert_eq!(irq.effective.as_deref(), Some("cc"));
    let Verdict::OverriddenBy(by) = &irq.verdict else {
        panic!("{irq:?}");
    };
    assert!(by.contains("driver"), "{by}");
}

#[test]
fn a_cpu_that_somebody_took_offline_is_offline_again() {
    let mut kernel = Kernel::of(tree("amd-pstate-epp-6.11"));
    let online = format!("{CPU}/cpu3/online");
    kernel.set(&online, "0");
    kernel.set(&format!("{CPU}/online"), "0-2,4-7");
    let hidden = kernel.folder().join(format!("{CPU}/cpufreq/.policy3"));
    std::fs::rename(
        kernel.folder().join(format!("{CPU}/cpufreq/policy3")),
        hidden,
    )
    .expect("hidden");
    applied(
        &mut kernel,
        &requested("amd-pstate-epp-6.11", Profile::SingleCore),
    );
    restored(&mut kernel);
    assert_eq!(kernel.text(&online), "0\n");
    assert_eq!(kernel.text(&format!("{CPU}/online")), "0-2,4-7\n");
}

#[test]
fn what_a_suspend_loses_is_seen_and_set_again() {
    let mut kernel = Kernel::of(tree("amd-pstate-epp-6.11"));
    let requested = requested("amd-pstate-epp-6.11", Profile::MultiCore);
    let file = kernel.folder().join(bench_system::machine::FILE);
    std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
    std::fs::write(file, machine_file("amd-pstate-epp-6.11")).expect("a file");
    let before = kernel.files();
    let knobs = applied(&mut kernel, &requested);
    assert_eq!(
        knob(&knobs, "governor:cpu2").original.as_deref(),
        Some("powersave")
    );
    kernel.done.clear();
    kernel.set(&format!("{CPU}/cpufreq/boost"), "1");
    kernel.set(&format!("{CPU}/cpufreq/policy2/boost"), "1");
    kernel.set(
        &format!("{CPU}/cpufreq/policy2/scaling_governor"),
        "powersave",
    );
    let facts = Facts::gather(&kernel.root());
    let lost: Vec<&str> = status::judge(&facts, Profile::MultiCore)
        .iter()
        .filter(|finding| finding.level == Level::Differs)
        .map(|finding| finding.id)
        .filter(|id| !OF_THE_BOOT.contains(id))
        .collect();
    assert_eq!(lost, ["boost", "governor"]);

    applied(&mut kernel, &requested);
    let again: Vec<&String> = kernel
        .done
        .iter()
        .filter(|what| !what.starts_with(MANAGED))
        .collect();
    assert_eq!(again.len(), 2, "{again:?}");
    restored(&mut kernel);
    assert_eq!(kernel.files(), before);
}

#[test]
fn irqbalance_starts_when_everything_else_is_back() {
    let mut kernel = Kernel::of(tree("intel-pstate"));
    applied(&mut kernel, &requested("intel-pstate", Profile::SingleCore));
    restored(&mut kernel);
    assert_eq!(
        kernel.done.last().map(String::as_str),
        Some("start irqbalance.service")
    );

    // One that did not run stays stopped.
    kernel.units.insert("irqbalance.service".to_owned(), false);
    kernel.done.clear();
    applied(&mut kernel, &requested("intel-pstate", Profile::SingleCore));
    restored(&mut kernel);
    assert!(!kernel.done.iter().any(|what| what.contains("irqbalance")));
}

#[test]
fn options_decide_over_the_machine_file() {
    let asked = |profile, options| Requested::of(&machine("amd-pstate-epp-6.11"), profile, options);
    let cases = [
        (
            Profile::MultiCore,
            Options {
                boost: Some(true),
                ..Options::default()
            },
            "boost",
            "1\n",
        ),
        (
            Profile::Unlimited,
            Options {
                boost: Some(false),
                ..Options::default()
            },
            "boost",
            "0\n",
        ),
        (
            Profile::MultiCore,
            Options {
                keep_housekeeping: true,
                ..Options::default()
            },
            "online:cpu1",
            "1\n",
        ),
        (Profile::MultiCore, Options::default(), "online:cpu1", "0\n"),
        (
            Profile::Unlimited,
            Options {
                smt: Some(false),
                ..Options::default()
            },
            "smt",
            "off\n",
        ),
    ];
    for (profile, options, what, expected) in cases {
        let mut kernel = Kernel::of(tree("amd-pstate-epp-6.11"));
        let before = kernel.files();
        applied(&mut kernel, &asked(profile, options));
        let path = match what {
            "boost" => format!("{CPU}/cpufreq/boost"),
            "smt" => format!("{CPU}/smt/control"),
            _ => format!("{CPU}/cpu1/online"),
        };
        assert_eq!(kernel.text(&path), expected, "{profile}, {options:?}");
        restored(&mut kernel);
        assert_eq!(kernel.files(), before, "{profile}, {options:?}");
    }
}

#[test]
fn a_cpu_that_only_the_older_machine_file_parks_comes_back() {
    let mut kernel = Kernel::of(tree("acpi-cpufreq"));
    let before = kernel.files();
    let online = format!("{CPU}/cpu1/online");
    applied(&mut kernel, &requested("acpi-cpufreq", Profile::MultiCore));
    assert_eq!(kernel.text(&online), "0\n");
    let edited = machine_file("acpi-cpufreq").replace("parked = \"1\"", "parked = \"\"");
    let edited = MachineFile::parse("machine.toml", &edited).expect("it is correct");
    let anew = Requested::of(&edited.machine, Profile::MultiCore, Options::default());
    applied(&mut kernel, &anew);
    assert_eq!(kernel.text(&online), "1\n");
    restored(&mut kernel);
    assert_eq!(kernel.files(), before);
}
