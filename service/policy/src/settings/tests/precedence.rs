//! Which source wins, and what is warned of.

use std::time::Duration;

use crate::budget::{Amount, Budget};

use super::super::{Settings, Sources, load};
use super::{env, file, good, layer, origin};

#[test]
fn the_last_source_wins_key_by_key() {
    let sources = Sources {
        files: vec![
            layer(
                "/etc/guard.toml",
                "[routing]\ncpu_threshold = 80\nsustained_samples = 5\ncooldown_sec = 5\n",
            ),
            layer(
                "~/guard.toml",
                "[routing]\n\nsustained_samples = 6\ncooldown_sec = 6\n",
            ),
        ],
        env: vec![
            ("WORKLOAD_GUARD_COOLDOWN_SEC".into(), "7".into()),
            ("PATH".into(), "/bin".into()),
            ("WORKLOAD_GUARD_COOLDOWN_SEC".into(), "8".into()),
        ],
    };
    let loaded = good(&sources);
    assert_eq!(
        origin(&loaded, "routing.cpu_threshold"),
        ("80", "/etc/guard.toml:2")
    );
    assert_eq!(
        origin(&loaded, "routing.sustained_samples"),
        ("6", "~/guard.toml:3")
    );
    assert_eq!(
        origin(&loaded, "routing.cooldown_sec"),
        ("8", "WORKLOAD_GUARD_COOLDOWN_SEC")
    );
    assert_eq!(origin(&loaded, "recovery.samples"), ("10", "default"));
    assert_eq!(loaded.settings.routing.cooldown, Duration::from_secs(8));
    assert_eq!(loaded.warnings, Vec::<String>::new());
}

#[test]
fn the_accelerated_settings_of_the_measurements_only_warn() {
    let loaded = good(&env(&[
        ("WORKLOAD_GUARD_SAMPLE_SEC", "0.25"),
        ("WORKLOAD_GUARD_CPU_THRESHOLD", "10"),
        ("WORKLOAD_GUARD_SUSTAINED_SAMPLES", "3"),
        ("WORKLOAD_GUARD_RECOVERY_SAMPLES", "2"),
        ("WORKLOAD_GUARD_RECOVERY_DWELL_SEC", "1"),
    ]));
    assert_eq!(
        loaded.settings.sampling.interval,
        Duration::from_millis(250)
    );
    assert_eq!(loaded.warnings.len(), 1);
    assert!(
        loaded.warnings[0].contains("recovery.cpu_threshold (35)"),
        "{:?}",
        loaded.warnings
    );
}

#[test]
fn an_unknown_or_empty_variable_is_ignored_with_a_warning() {
    let loaded = good(&env(&[
        ("WORKLOAD_GUARD_CPU_TRESHOLD", "1"),
        ("WORKLOAD_GUARD_ZZZZZZZZZZ", "1"),
        ("WORKLOAD_GUARD_SAMPLE_SEC", " "),
        ("WORKLOAD_GUARD_EXCLUDE_PATTERNS", ""),
    ]));
    assert_eq!(
        loaded.warnings,
        [
            "WORKLOAD_GUARD_CPU_TRESHOLD is unknown, ignored; did you mean WORKLOAD_GUARD_CPU_THRESHOLD?",
            "WORKLOAD_GUARD_ZZZZZZZZZZ is unknown, ignored",
            "WORKLOAD_GUARD_SAMPLE_SEC is empty, ignored",
        ]
    );
    assert_eq!(loaded.settings, Settings::default());
}

#[test]
fn a_class_can_be_added_moved_and_taken_away() {
    let loaded = good(&file(
        "[classes.ci]\nslice = \"ci-jobs.slice\"\n[classes.browser]\nslice = \"\"\n[classes.heavy]\nslice = \"builds.slice\"\n",
    ));
    let classes: Vec<_> = loaded
        .settings
        .classes
        .iter()
        .map(|class| (class.name.as_str(), class.slice.as_str()))
        .collect();
    assert_eq!(
        classes,
        [
            ("ci", "ci-jobs.slice"),
            ("heavy", "builds.slice"),
            ("protected", "protected-workload.slice")
        ]
    );
    assert_eq!(
        origin(&loaded, "classes.ci.slice"),
        ("\"ci-jobs.slice\"", "guard.toml:2")
    );
    // A class can be inside another one's budget.
    assert!(
        load(&file(
            "[classes.big]\nslice = \"heavy-workload-big.slice\"\n"
        ))
        .is_ok()
    );
}

#[test]
fn a_budget_is_laid_over_key_by_key_and_none_undoes_it() {
    let sources = Sources {
        files: vec![
            layer(
                "/etc/guard.toml",
                "[classes.ci]\nslice = \"ci.slice\"\nquota = 150\nmemory_high = \"50%\"\ntasks_max = 0x10\n",
            ),
            layer(
                "~/guard.toml",
                "[classes.ci]\nquota = \"none\"\nweight = 20\n",
            ),
        ],
        env: Vec::new(),
    };
    let loaded = good(&sources);
    let budget = &loaded.settings.class("ci").expect("the class").budget;
    assert_eq!(
        *budget,
        Budget {
            weight: Some(20),
            memory_high: Some(Amount::Permyriad(5000)),
            tasks_max: Some(Amount::Absolute(16)),
            ..Budget::default()
        }
    );
    assert_eq!(
        origin(&loaded, "classes.ci.quota"),
        ("\"none\"", "~/guard.toml:2")
    );
    assert_eq!(
        origin(&loaded, "classes.ci.memory_high"),
        ("\"50%\"", "/etc/guard.toml:4")
    );
}

#[test]
fn browsers_are_looked_for_when_a_pattern_says_how() {
    assert_eq!(
        good(&file(""))
            .settings
            .class("browser")
            .expect("built in")
            .patterns,
        [""; 0]
    );
    let loaded = good(&env(&[(
        "WORKLOAD_GUARD_BROWSER_PROCESS_PATTERN",
        "chrome --headless*, chrome-headless-shell,",
    )]));
    assert_eq!(
        loaded.settings.class("browser").expect("built in").patterns,
        ["chrome --headless*", "chrome-headless-shell"]
    );
    assert_eq!(
        origin(&loaded, "classes.browser.patterns"),
        (
            r#"["chrome --headless*", "chrome-headless-shell"]"#,
            "WORKLOAD_GUARD_BROWSER_PROCESS_PATTERN"
        )
    );
    assert_eq!(loaded.warnings, [""; 0]);
}

#[test]
fn a_parent_inside_another_is_watched_once() {
    let loaded = good(&file(
        "[watch]\nparent_units = [\"app.slice\", \"app-x.slice\", \"app.slice\", \"protected.slice\"]\n",
    ));
    assert_eq!(
        loaded.settings.watch.parent_units,
        ["app.slice", "protected.slice"]
    );
    assert_eq!(loaded.warnings.len(), 2, "{:?}", loaded.warnings);
}
