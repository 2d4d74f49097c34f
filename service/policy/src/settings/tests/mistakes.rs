//! Every mistake is told, with file, line, key and the way out.

use super::super::{Sources, load};
use super::{env, errors, file, layer};

#[test]
fn every_mistake_of_every_source_is_told_at_once() {
    let sources = Sources {
        files: vec![
            layer(
                "/etc/guard.toml",
                "\
[routing]
cpu_treshold = 70
sustained_samples = 0
cooldown_sec = \"20\"

[sampling]
interval_sec = 0.01

[sampler]
x = 1

[recovery]
threshold = 3
samples = [4]
",
            ),
            layer(
                "~/guard.toml",
                "routing = 4\n\n[watch]\nparent_units = [\"app.slice\",\n  \"terminal.scope\"]\n",
            ),
        ],
        env: vec![("WORKLOAD_GUARD_CPU_THRESHOLD".into(), "seventy".into())],
    };
    insta::assert_snapshot!(errors(&sources), @r#"
    /etc/guard.toml:2: unknown key `routing.cpu_treshold`, did you mean `routing.cpu_threshold`?
    /etc/guard.toml:3: `routing.sustained_samples` must be a whole number from 1 to 1000, not the number 0
    /etc/guard.toml:4: `routing.cooldown_sec` must be a number of seconds from 0 to 86400, not the string "20"
    /etc/guard.toml:7: `sampling.interval_sec` must be a number of seconds from 0.05 to 3600, not the number 0.01
    /etc/guard.toml:9: unknown key `sampler`, did you mean `sampling`?
    /etc/guard.toml:13: unknown key `recovery.threshold`, did you mean `recovery.cpu_threshold`?
    /etc/guard.toml:14: `recovery.samples` must be a whole number from 1 to 1000, not a list
    ~/guard.toml:1: `routing` must be a table, not the number 4
    ~/guard.toml:5: `watch.parent_units` must be a list of 1 to 64 slices, each the name of a slice unit, such as "app.slice", not the string "terminal.scope"
    WORKLOAD_GUARD_CPU_THRESHOLD: `routing.cpu_threshold` must be a number above 0 and at most 102400 (percent of one logical CPU), not "seventy"
    "#);
}

#[test]
fn classes_are_checked() {
    let text = "\
[classes.ci]
[classes.Heavy]
slice = \"a.slice\"
[classes.x]
slice = \"b.scope\"
quotas = 100
[classes.heavy]
slice = \"\"
[classes.root]
slice = \"-.slice\"
";
    insta::assert_snapshot!(errors(&file(text)), @r#"
    guard.toml:1: the class `ci` lacks `slice`: the name of a slice unit, such as "app.slice"
    guard.toml:2: `classes.Heavy` must be named with lower-case letters, digits and `_`, at most 32 of them, not "Heavy"
    guard.toml:5: `classes.x.slice` must be the name of a slice unit, such as "app.slice", not the string "b.scope"
    guard.toml:6: unknown key `classes.x.quotas`, did you mean `classes.x.quota`?
    guard.toml:8: `classes.heavy.slice` must be a slice, since this class cannot be taken away, not empty
    guard.toml:10: `classes.root.slice` must be a slice other than the root of all slices, not "-.slice"
    "#);
}

#[test]
fn budgets_of_classes_are_checked() {
    let text = "\
[classes.x]
slice = \"x.slice\"
quota = 0
weight = 0
io_weight = 10001
memory_high = \"4GB\"
tasks_max = \"1K\"
patterns = [\"make\", \" \"]
CPUQuota = 3
[classes.heavy]
quota = 300
[classes.protected]
patterns = [\"vim\"]
weight = \"none\"
";
    insta::assert_snapshot!(errors(&file(text)), @r#"
    guard.toml:3: `classes.x.quota` must be a number above 0 and at most 102400 (percent of one logical CPU), or "none", not the number 0
    guard.toml:4: `classes.x.weight` must be a whole number from 1 to 10000, or "none", not the number 0
    guard.toml:5: `classes.x.io_weight` must be a whole number from 1 to 10000, or "none", not the number 10001
    guard.toml:6: `classes.x.memory_high` must be bytes, such as 4294967296 or "4G" (K, M, G, T), or "50%", "infinity" or "none", not the string "4GB"
    guard.toml:7: `classes.x.tasks_max` must be a whole number from 1, or "10%", "infinity" or "none", not the string "1K"
    guard.toml:8: `classes.x.patterns` must be a list of strings, each a program's name and perhaps arguments, with `*` for any characters, not the string " "
    guard.toml:9: unknown key `classes.x.CPUQuota`, did you mean `classes.x.quota`?
    guard.toml:11: `classes.heavy.quota` must be left out, since the budget of heavy-workload.slice is in its unit file (`systemctl --user edit heavy-workload.slice`), not 300
    guard.toml:13: `classes.protected.patterns` must be left out, since who is protected is the person's word (`workload-guard protect`), not a list
    "#);
}

#[test]
fn what_cannot_be_together_names_both_origins() {
    let text = "\
[watch]
parent_units = [\"heavy.slice\", \"browser-automation-x.slice\"]
[classes.one]
slice = \"same.slice\"
[classes.two]
slice = \"same.slice\"
[classes.three]
slice = \"protected-workload-three.slice\"
";
    insta::assert_snapshot!(errors(&file(text)), @r#"
    `classes.one.slice = "same.slice"` (guard.toml:4) and `classes.two.slice = "same.slice"` (guard.toml:6) cannot both be: two classes with one slice share one budget; give each its own
    `classes.protected.slice = "protected-workload.slice"` (default) and `classes.three.slice = "protected-workload-three.slice"` (guard.toml:8) cannot both be: protected work and other work would be inside one budget; a dash in a slice's name nests it
    `classes.heavy.slice = "heavy-workload.slice"` (default) and `watch.parent_units = ["heavy.slice"]` (guard.toml:2) cannot both be: routed work would be watched, and routed again; watch a slice that does not hold a class's slice
    `classes.browser.slice = "browser-automation.slice"` (default) and `watch.parent_units = ["browser-automation-x.slice"]` (guard.toml:2) cannot both be: what is watched would have this class's budget already; watch a slice outside of it
    "#);
}

#[test]
fn a_parent_that_is_no_slice_says_so_also_as_a_variable() {
    assert_eq!(
        errors(&env(&[("WORKLOAD_GUARD_PARENT_UNIT", "ssh.service")])),
        "WORKLOAD_GUARD_PARENT_UNIT: `watch.parent_units` must be a list of 1 to 64 slices, each the name of a slice unit, \
         such as \"app.slice\", not \"ssh.service\""
    );
}

#[test]
fn thousands_of_parents_would_keep_the_guard_from_its_work() {
    let slices = |count: usize| {
        let names: Vec<String> = (0..count).map(|n| format!("\"a{n}.slice\"")).collect();
        format!("[watch]\nparent_units = [{}]\n", names.join(", "))
    };
    assert_eq!(
        errors(&file(&slices(65))),
        "guard.toml:2: `watch.parent_units` must be a list of 1 to 64 slices, each the name of a slice unit, \
         such as \"app.slice\", not a list of 65"
    );
    assert!(load(&file(&slices(64))).is_ok());
}

#[test]
fn broken_toml_is_told_with_its_line() {
    for (text, line) in [
        ("[routing\n", 1),
        ("\n\n= 3\n", 3),
        ("[routing]\ncpu_threshold = 7 7\n", 2),
        ("[routing]\nb = \"", 2),
    ] {
        let told = errors(&file(text));
        assert!(
            told.starts_with(&format!("guard.toml:{line}: ")),
            "{text:?}: {told}"
        );
    }
}

#[test]
fn a_key_twice_is_a_mistake() {
    let told = errors(&file("[routing]\ncpu_threshold = 7\ncpu_threshold = 8\n"));
    assert!(told.starts_with("guard.toml:3: "), "{told}");
}

#[test]
fn everything_watched_is_too_much() {
    let told = errors(&file("[watch]\nparent_units = [\"-.slice\"]\n"));
    assert!(
        told.contains("watch a slice that does not hold a class's slice"),
        "{told}"
    );
    assert!(load(&file("[watch]\nparent_units = [\"app.slice\"]\n")).is_ok());
}

#[test]
fn bounds_and_thresholds_of_the_quota_that_cross_are_mistakes() {
    for (text, pair) in [
        (
            "min = 300\nmax = 299",
            "`quota.min = 300` (guard.toml:2) and `quota.max = 299` (guard.toml:3)",
        ),
        (
            "min = 401",
            "`quota.min = 401` (guard.toml:2) and `quota.max = 400` (default)",
        ),
        (
            "pressure_low = 0.4",
            "`quota.pressure_low = 0.4` (guard.toml:2) and `quota.pressure_high = 0.4` (default)",
        ),
        (
            "sched_delay_high_ms = 5",
            "`quota.sched_delay_low_ms = 5` (default) and `quota.sched_delay_high_ms = 5` (guard.toml:2)",
        ),
    ] {
        let told = errors(&file(&format!("[quota]\n{text}\n")));
        assert!(told.contains(pair), "{told}");
    }
    assert!(load(&file("[quota]\nmin = 300\nmax = 300\n")).is_ok());
}

#[test]
fn a_policy_that_does_not_exist_is_told_with_those_that_do() {
    let told = errors(&file("[quota]\npolicy = \"aimd\"\n"));
    assert!(
        told.starts_with("guard.toml:2: `quota.policy` must be one of \"step\", \"protected\""),
        "{told}"
    );
}

#[test]
fn a_large_value_was_told_whole_and_many_mistakes_took_minutes() {
    let long = "x".repeat(100_000);
    let mut texts = vec![
        format!("[routing]\ncpu_threshold = \"{long}\"\n"),
        format!("[routing]\n{long} = 1\n"),
        format!("[{long}]\n"),
        format!("[routing]\ncpu_threshold = {}\n", "9".repeat(100_000)),
        format!("[classes.{long}]\nslice = \"a.slice\"\n"),
        format!("[classes.ci]\nslice = \"{long}\"\n"),
        format!("[watch]\nparent_units = [\"{long}\"]\n"),
        format!("x = {long}\n"),
    ];
    texts.push((0..20_000).fold("[routing]\n".to_owned(), |text, n| {
        text + &format!("a{n}=1\n")
    }));
    for text in texts {
        let told = load(&file(&text)).expect_err("wrong").to_string();
        assert!(told.lines().all(|line| line.len() < 1000), "{}", text.len());
        assert!(told.lines().count() <= 52, "{told}");
        assert!(told.contains("guard.toml:"), "{told}");
    }
    let told = load(&env(&[("WORKLOAD_GUARD_SAMPLE_SEC", &long)]))
        .expect_err("wrong")
        .to_string();
    assert!(told.contains("xx… (cut: 100002 bytes)"), "{told}");
}
