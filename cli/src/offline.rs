//! What needs no bus.

use std::path::{Path, PathBuf};

use guard_files::Texts;
use guard_policy::rules::{RuleSet, shipped_layers};
use guard_policy::settings::{self, Sources};

use crate::error::CliError;
use crate::plan::Offline;
use crate::{complete, manual};

/// Carries out `what` and answers what goes to stdout.
pub fn run(what: &Offline) -> Result<String, CliError> {
    match what {
        Offline::Version => Ok(format!("workload-guard {}\n", env!("CARGO_PKG_VERSION"))),
        Offline::Completions(shell) => complete::script(shell.name())
            .map_err(|error| CliError::Failed(format!("no script could be made: {error}")))
            .and_then(as_text),
        Offline::Man(page) => manual::page(page).ok_or_else(|| {
            CliError::Failed(format!(
                "the manual has no page {page:?}; `workload-guard man --list` has their names"
            ))
        }),
        Offline::ManPages => Ok(manual::names().map(|name| name + "\n").collect()),
        Offline::CheckConfig(paths) => check(&texts(paths)?),
        Offline::ImportConfig(path) => import(path),
        Offline::TestRule(argv) => test_rule(&texts(&[])?, argv),
    }
}

fn as_text(bytes: Vec<u8>) -> Result<String, CliError> {
    String::from_utf8(bytes)
        .map_err(|error| CliError::Failed(format!("generated text is not UTF-8: {error}")))
}

fn texts(paths: &[PathBuf]) -> Result<Texts, CliError> {
    let texts = if paths.is_empty() {
        guard_files::installed(&guard_files::folders(|name| std::env::var_os(name)))
    } else {
        guard_files::named(paths)
    };
    texts.map_err(|unreadable| CliError::Failed(unreadable.to_string()))
}

/// Every mistake at once, a line each, or what was read and found good.
///
/// The variables of the environment are left out: those that count are the service's, not the shell's.
fn check(texts: &Texts) -> Result<String, CliError> {
    let sources = Sources {
        files: texts.settings.clone(),
        env: Vec::new(),
    };
    let mut mistakes = Vec::new();
    let loaded = settings::load(&sources)
        .map_err(|errors| mistakes.push(errors.to_string()))
        .ok();
    if let Some(loaded) = &loaded {
        // The guard would go on without its shadow; who checks wants to know.
        mistakes.extend(loaded.shadow_mistakes.iter().map(ToString::to_string));
    }
    let rules = rules(texts).map_err(|errors| mistakes.push(errors)).ok();
    if let (Some(loaded), Some(rules)) = (&loaded, &rules) {
        let _ = rules
            .check(&loaded.settings)
            .map_err(|errors| mistakes.push(errors.to_string()));
    }
    let Some(loaded) = loaded.filter(|_| mistakes.is_empty()) else {
        return Err(CliError::Failed(format!(
            "settings are wrong\n{}",
            mistakes.join("\n")
        )));
    };
    let read = texts
        .settings
        .iter()
        .chain(&texts.rules)
        .map(|layer| format!("{}: good\n", layer.origin));
    let mut text: String = read.collect();
    if text.is_empty() {
        text.push_str("no settings file: the built-in defaults are in force\n");
    }
    text.extend(
        loaded
            .warnings
            .iter()
            .map(|warning| format!("warning: {warning}\n")),
    );
    Ok(text)
}

/// The text goes to stdout, where a file is made of it; what is left out is told beside.
fn import(path: &Path) -> Result<String, CliError> {
    let origin = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| CliError::Failed(format!("cannot read {origin}: {error}")))?;
    let imported = settings::import::import(&origin, &text)
        .map_err(|errors| CliError::Failed(errors.to_string()))?;
    for note in &imported.notes {
        eprintln!("note: {note}");
    }
    Ok(imported.text)
}

fn test_rule(texts: &Texts, argv: &[String]) -> Result<String, CliError> {
    let sources = Sources {
        files: texts.settings.clone(),
        env: Vec::new(),
    };
    let loaded = settings::load(&sources).map_err(|errors| CliError::Failed(errors.to_string()))?;
    let rules = rules(texts)
        .map_err(CliError::Failed)?
        .with_classes(&loaded.settings);
    match rules.matches(argv) {
        Some(found) => Ok(format!(
            "{}: {} [{}]\n",
            found.class, found.reason, found.rule
        )),
        None => Err(CliError::Failed(format!(
            "no rule of {} matches; such a command is routed only when it uses CPU for long",
            rules.len()
        ))),
    }
}

/// The user's rules over the shipped ones.
fn rules(texts: &Texts) -> Result<RuleSet, String> {
    let mut layers = shipped_layers();
    layers.extend(texts.rules.iter().cloned());
    RuleSet::parse(&layers).map_err(|errors| errors.to_string())
}

#[cfg(test)]
mod tests {
    use guard_policy::settings::Layer;

    use super::*;

    fn settings(text: &str) -> Texts {
        Texts {
            settings: vec![Layer {
                origin: "guard.toml".into(),
                text: text.into(),
            }],
            rules: vec![],
        }
    }

    #[test]
    fn a_good_file_is_called_good() {
        assert_eq!(
            check(&settings("[routing]\ncpu_threshold = 60\n")).unwrap(),
            "guard.toml: good\n"
        );
        assert!(
            check(&Texts::default())
                .unwrap()
                .contains("built-in defaults")
        );
    }

    #[test]
    fn a_mistake_names_file_line_and_the_nearest_key() {
        let error = check(&settings("[routing]\ncpu_treshold = 60\n")).unwrap_err();
        assert_eq!(error.exit_code(), 1);
        let text = error.to_string();
        assert!(
            text.contains("guard.toml:2") && text.contains("cpu_threshold"),
            "{text}"
        );
    }

    #[test]
    fn a_rule_is_named_with_its_file() {
        let argv = ["env", "A=b", "cargo", "build"].map(str::to_owned);
        let text = test_rule(&Texts::default(), &argv).unwrap();
        assert!(
            text.starts_with("heavy: ") && text.contains("50-rust.toml:"),
            "{text}"
        );
    }

    #[test]
    fn a_command_that_no_rule_names_is_an_exit_status_for_scripts() {
        let argv = ["vim", "make", "notes"].map(str::to_owned);
        assert_eq!(
            test_rule(&Texts::default(), &argv).unwrap_err().exit_code(),
            1
        );
    }
}
