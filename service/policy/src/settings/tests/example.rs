//! `config/guard.toml` and the list of keys say the same.

use super::super::keys::{CLASSES, KEYS};
use super::super::kind::Kind;
use super::super::{Mistake, Settings, Sources, load, variables};
use super::{env, file, good};
use crate::budget::Amount;

const EXAMPLE: &str = include_str!("../../../../../config/guard.toml");

/// The example with its keys in force: `#key = value` without the `#`.
fn uncommented() -> String {
    let line = |line: &str| match line.strip_prefix('#') {
        Some(rest) if rest.starts_with(|c: char| c.is_ascii_lowercase()) => rest.to_owned(),
        _ => line.to_owned(),
    };
    EXAMPLE.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_example_as_it_is_changes_nothing() {
    let loaded = good(&file(EXAMPLE));
    assert_eq!(loaded.settings, Settings::default());
    assert!(
        loaded
            .effective
            .iter()
            .all(|effective| effective.origin == "default"),
        "{loaded:#?}"
    );
    assert_eq!(loaded.warnings, Vec::<String>::new());
}

#[test]
fn the_example_shows_every_key_with_its_default() {
    let loaded = good(&file(&uncommented()));
    assert_eq!(loaded.settings, Settings::default());
    let built_in = good(&Sources::default());
    for (shown, default) in loaded.effective.iter().zip(&built_in.effective) {
        assert_eq!((&shown.key, &shown.value), (&default.key, &default.value));
        assert!(
            shown.origin.starts_with("guard.toml:"),
            "{} is not in config/guard.toml",
            shown.key
        );
    }
}

#[test]
fn the_example_names_every_variable() {
    let names = KEYS.iter().map(|key| key.variable);
    for name in names.chain([variables::BROWSER_PATTERN]) {
        let name = format!("{}{name}", variables::PREFIX);
        assert!(
            EXAMPLE.contains(&name),
            "{name} is not in config/guard.toml"
        );
    }
}

/// The class of one's own that the example describes: `# ` and what stands below `[classes.inference]`.
#[test]
fn the_class_of_ones_own_in_the_example_works() {
    let start = EXAMPLE.find("# [classes.inference]").expect("it is there");
    let text: Vec<&str> = EXAMPLE[start..]
        .lines()
        .map(|line| line.strip_prefix("# ").expect("a comment"))
        .collect();
    let loaded = good(&file(&text.join("\n")));
    let class = loaded.settings.class("inference").expect("the class");
    assert_eq!(class.budget.quota_usec_per_sec, Some(3_000_000));
    assert_eq!(class.budget.memory_high, Some(Amount::Absolute(8 << 30)));
    let shown: Vec<_> = loaded
        .effective
        .iter()
        .filter_map(|row| {
            Some((
                row.key.strip_prefix("classes.inference.")?,
                row.value.as_str(),
            ))
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("io_weight", "50"),
            ("memory_high", "\"8G\""),
            ("patterns", r#"["llama-server", "python* *train*.py"]"#),
            ("quota", "300"),
            ("slice", "\"inference.slice\""),
            ("tasks_max", "\"512\""),
            ("weight", "50"),
        ]
    );
}

/// A value other than the default, as TOML and as a variable.
fn other(kind: &Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Percent { .. } => ("12.5", "12.5"),
        Kind::Seconds { .. } => ("7.25", "7.25"),
        Kind::Count { .. } => ("300", "300"),
        Kind::Milliseconds { .. } => ("6.5", "6.5"),
        Kind::Word(_) => ("\"protected\"", "protected"),
        Kind::Slices => ("[\"app.slice\"]", "app.slice"),
        Kind::Strings => ("[\"a b\", \"c\"]", "a b, c,"),
        Kind::Switch => ("true", "yes"),
        Kind::Fraction => ("0.25", "0.25"),
    }
}

#[test]
fn every_key_works_in_a_file_and_as_a_variable_alike() {
    for key in KEYS {
        let (toml, text) = other(&key.kind);
        let (section, name) = key.name.split_once('.').expect("a section");
        let by_file = good(&file(&format!("[{section}]\n{name} = {toml}\n")));
        let variable = format!("{}{}", variables::PREFIX, key.variable);
        let by_variable = good(&env(&[(&variable, text)]));
        assert_ne!(
            by_file.settings,
            Settings::default(),
            "{} does nothing",
            key.name
        );
        assert_eq!(by_file.settings, by_variable.settings, "{}", key.name);
        assert_eq!(super::origin(&by_file, key.name), (toml, "guard.toml:2"));
        assert_eq!(
            super::origin(&by_variable, key.name),
            (toml, variable.as_str())
        );
    }
}

#[test]
fn every_bound_of_every_key_is_enforced() {
    for key in KEYS {
        let (section, name) = key.name.split_once('.').expect("a section");
        let takes = |value: &str| {
            // A wrong value of the shadow is told beside the settings. Its thresholds are a pair, of which
            // this looks at one.
            // So are the quota's bounds and thresholds.
            let wrong = |mistake: &Mistake| matches!(mistake, Mistake::BadValue { .. });
            match load(&file(&format!("[{section}]\n{name} = {value}\n"))) {
                Ok(loaded) => !loaded.shadow_mistakes.iter().any(wrong),
                Err(errors) => errors
                    .mistakes()
                    .iter()
                    .all(|mistake| matches!(mistake, Mistake::Impossible { .. })),
            }
        };
        match key.kind {
            Kind::Percent { over, max } => {
                assert!(
                    takes(&format!("{max}")) && takes(&format!("{}", over + 0.001)),
                    "{}",
                    key.name
                );
                assert!(
                    !takes(&format!("{over}")) && !takes(&format!("{}", max + 1.0)),
                    "{}",
                    key.name
                );
                assert!(!takes("nan") && !takes("inf"), "{}", key.name);
            }
            Kind::Seconds { min, max } => {
                assert!(
                    takes(&format!("{min}")) && takes(&format!("{max}")),
                    "{}",
                    key.name
                );
                assert!(
                    !takes(&format!("{}", min - 0.01)) && !takes(&format!("{}", max + 0.01)),
                    "{}",
                    key.name
                );
                assert!(!takes("nan") && !takes("-inf"), "{}", key.name);
            }
            Kind::Count { min, max } => {
                assert!(
                    takes(&format!("{min}")) && takes(&format!("{max}")),
                    "{}",
                    key.name
                );
                assert!(
                    !takes(&format!("{}", i64::from(min) - 1)) && !takes(&format!("{}", max + 1)),
                    "{}",
                    key.name
                );
                assert!(!takes("2.5"), "{}", key.name);
            }
            Kind::Milliseconds { over, max } => {
                assert!(takes(&format!("{max}")) && takes("0.5"), "{}", key.name);
                assert!(
                    !takes(&format!("{over}")) && !takes(&format!("{}", max + 1.0)),
                    "{}",
                    key.name
                );
            }
            Kind::Word(words) => {
                for word in words {
                    assert!(takes(&format!("\"{word}\"")), "{word}");
                }
                assert!(!takes("\"frob\"") && !takes("\"\""), "{}", key.name);
            }
            Kind::Slices => {
                assert!(!takes("[]") && !takes("[\"app.scope\"]") && !takes("\"app.slice\""))
            }
            Kind::Strings => assert!(takes("[]") && !takes("[\"\"]") && !takes("[1]")),
            Kind::Switch => assert!(takes("false") && !takes("1") && !takes("\"on\"")),
            Kind::Fraction => {
                assert!(takes("1") && takes("0.001"), "{}", key.name);
                assert!(
                    !takes("0") && !takes("1.001") && !takes("nan"),
                    "{}",
                    key.name
                );
            }
        }
        assert!(
            takes("true") == matches!(key.kind, Kind::Switch)
                && !takes("{}")
                && !takes("1979-05-27"),
            "{}",
            key.name
        );
    }
}

#[test]
fn every_class_that_is_built_in_is_in_the_defaults() {
    let settings = Settings::default();
    for (name, slice) in CLASSES {
        assert_eq!(
            settings.class(name).map(|class| class.slice.as_str()),
            Some(*slice)
        );
    }
    assert!(settings.class("ci").is_none());
}
