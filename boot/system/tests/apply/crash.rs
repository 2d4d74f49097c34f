//! A process that is killed between any two things it does.

use bench_profile::profile::Profile;

use super::{applied, apply, requested, restored};
use crate::kernel::Kernel;

/// How often a profile may do something, far above what any does.
const ENDLESS: usize = 1000;

#[test]
fn killed_between_two_writes_of_apply_everything_is_restored() {
    for (name, text) in bench_trees::KNOBS {
        for profile in Profile::ALL {
            let requested = requested(name, profile);
            let mut undisturbed = Kernel::of(text);
            applied(&mut undisturbed, &requested);
            let ends = undisturbed.files();

            let whole = (0..ENDLESS).find(|things| {
                let mut kernel = Kernel::of(text);
                let before = kernel.files();
                let lived = kernel.until_killed(*things, |kernel| {
                    applied(kernel, &requested);
                });
                restored(&mut kernel);
                assert_eq!(
                    kernel.files(),
                    before,
                    "{name}, {profile}, killed after {things}"
                );
                assert!(kernel.units["irqbalance.service"]);

                // Or begun anew: it ends in the same state, and still knows what was there first.
                kernel.until_killed(*things, |kernel| {
                    applied(kernel, &requested);
                });
                applied(&mut kernel, &requested);
                assert_eq!(
                    kernel.files(),
                    ends,
                    "{name}, {profile}, anew after {things}"
                );
                restored(&mut kernel);
                assert_eq!(
                    kernel.files(),
                    before,
                    "{name}, {profile}, anew after {things}"
                );
                lived
            });
            assert!(whole.is_some_and(|things| things > 2), "{name}, {profile}");
        }
    }
}

#[test]
fn killed_between_two_writes_of_restore_the_next_one_ends_it() {
    for (name, text) in bench_trees::KNOBS {
        for profile in Profile::ALL {
            let whole = (0..ENDLESS).find(|things| {
                let mut kernel = Kernel::of(text);
                let before = kernel.files();
                applied(&mut kernel, &requested(name, profile));
                let lived = kernel.until_killed(*things, |kernel| {
                    restored(kernel);
                });
                restored(&mut kernel);
                assert_eq!(
                    kernel.files(),
                    before,
                    "{name}, {profile}, killed after {things}"
                );
                assert!(kernel.units["irqbalance.service"]);
                lived
            });
            assert!(whole.is_some_and(|things| things > 2), "{name}, {profile}");
        }
    }
}

#[test]
fn a_save_that_was_cut_off_is_no_obstacle() {
    let mut kernel = Kernel::of(super::tree("acpi-cpufreq"));
    let folder = kernel.folder().join("run/bench-profile");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("originals.json.new"), "{\"profile\":").expect("a file");
    let before = kernel.files();
    applied(&mut kernel, &requested("acpi-cpufreq", Profile::SingleCore));
    restored(&mut kernel);
    assert_eq!(kernel.files(), before);
}

#[test]
fn where_nothing_can_be_saved_nothing_is_changed() {
    let mut kernel = Kernel::of(super::tree("acpi-cpufreq"));
    let elsewhere = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(kernel.folder().join("run")).expect("a folder");
    let link = kernel.folder().join("run/bench-profile");
    std::os::unix::fs::symlink(elsewhere.path(), link).expect("a link");
    let before = kernel.files();
    apply(&mut kernel, &requested("acpi-cpufreq", Profile::SingleCore)).expect_err("a link");
    assert!(kernel.done.is_empty(), "{:?}", kernel.done);
    assert_eq!(kernel.files(), before);
    assert_eq!(
        std::fs::read_dir(elsewhere.path())
            .expect("a folder")
            .count(),
        0
    );
}
