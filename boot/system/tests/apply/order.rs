//! The ordered list of writes, and what is never written.

use std::fmt::Write;

use bench_profile::knob::Verdict;
use bench_profile::profile::Profile;

use super::{applied, requested, restored, tree};
use crate::kernel::{Kernel, MANAGED};

/// Whether the profiles leave a file alone.
fn is_left_alone(path: &str, profile: Profile) -> bool {
    let boost = path.ends_with("/boost") || path.ends_with("/no_turbo");
    let always = [
        "transparent_hugepage",
        "randomize_va_space",
        "vulnerabilities",
        "cpuidle",
        "max_perf_pct",
        "scaling_max_freq",
        "_pstate/status",
        "meminfo",
        "cmdline",
        "topology",
    ];
    boost && profile != Profile::MultiCore || always.iter().any(|part| path.contains(part))
}

#[test]
fn each_profile_writes_this_in_this_order_and_restores_it() {
    for (name, text) in bench_trees::KNOBS {
        for profile in Profile::ALL {
            let mut kernel = Kernel::of(text);
            let before = kernel.files();
            let requested = requested(name, profile);

            let knobs = applied(&mut kernel, &requested);
            let mut story = "Apply\n".to_owned();
            for what in std::mem::take(&mut kernel.done) {
                writeln!(story, "  {what}").expect("a text");
            }
            story.push_str("Not as requested\n");
            for knob in knobs.iter().filter(|knob| knob.verdict != Verdict::Ok) {
                writeln!(story, "  {}: {}", knob.id, knob.verdict).expect("a text");
            }
            let during = kernel.files();
            for (path, text) in &before {
                if is_left_alone(path, profile) {
                    let now = during
                        .get(path)
                        .or_else(|| during.get(&path.replace("/policy", "/.policy")));
                    assert_eq!(now, Some(text), "{name}, {profile}: {path} is left alone");
                    assert!(
                        !story.contains(&format!("{path} = ")),
                        "{name}, {profile}: {path}"
                    );
                }
            }

            applied(&mut kernel, &requested);
            let again = std::mem::take(&mut kernel.done);
            let managed = |what: &String| what.starts_with(MANAGED) && name != "no-cpufreq";
            assert!(again.iter().all(managed), "a second time: {again:?}");

            restored(&mut kernel);
            story.push_str("Restore\n");
            for what in std::mem::take(&mut kernel.done) {
                writeln!(story, "  {what}").expect("a text");
            }
            assert_eq!(kernel.files(), before, "{name}, {profile}");
            assert!(kernel.units["irqbalance.service"], "{name}, {profile}");
            assert!(restored(&mut kernel).is_empty() && kernel.done.is_empty());

            insta::with_settings!({snapshot_path => "../writes", prepend_module_to_snapshot => false, omit_expression => true}, {
                insta::assert_snapshot!(format!("{name}.{profile}"), story);
            });
        }
    }
}

#[test]
fn another_profile_restores_the_first_before_it_changes_anything() {
    let mut kernel = Kernel::of(tree("intel-pstate"));
    let before = kernel.files();
    applied(&mut kernel, &requested("intel-pstate", Profile::MultiCore));
    kernel.done.clear();
    restored(&mut kernel);
    let restore = std::mem::take(&mut kernel.done);
    applied(&mut kernel, &requested("intel-pstate", Profile::Unlimited));
    let unlimited = std::mem::take(&mut kernel.done);
    restored(&mut kernel);

    applied(&mut kernel, &requested("intel-pstate", Profile::MultiCore));
    kernel.done.clear();
    applied(&mut kernel, &requested("intel-pstate", Profile::Unlimited));
    assert_eq!(kernel.done, [restore, unlimited].concat());
    restored(&mut kernel);
    assert_eq!(kernel.files(), before);
}
