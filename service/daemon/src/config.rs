//! The settings and rules in force; what they mean is decided in `guard-policy`.

use std::path::PathBuf;
use std::sync::Arc;

use guard_policy::rules::{RuleSet, shipped_layers};
use guard_policy::settings::{self, Effective, Settings, Sources};

/// What every setting's environment variable starts with.
const VARIABLE_PREFIX: &str = "WORKLOAD_GUARD_";

/// Settings and rules in force.
#[derive(Clone)]
pub struct Config {
    /// The values.
    pub settings: Arc<Settings>,
    /// The known-heavy rules.
    pub rules: Arc<RuleSet>,
    /// Each value with its origin.
    pub effective: Vec<Effective>,
    /// What is odd, but no error.
    pub warnings: Vec<String>,
    /// What is wrong in `[shadow]`, which is off then.
    pub shadow_mistakes: Vec<String>,
}

impl Config {
    /// What is in force where no file can be used.
    pub fn builtin() -> Config {
        let loaded = settings::load(&Sources::default()).expect("the built-in defaults are valid");
        Config {
            settings: Arc::new(loaded.settings),
            rules: Arc::new(RuleSet::shipped()),
            effective: loaded.effective,
            warnings: loaded.warnings,
            shadow_mistakes: Vec::new(),
        }
    }

    /// From the files below `folders` (a later folder wins) and the environment.
    ///
    /// The error names every file, line and key that is wrong.
    pub fn load(folders: &[PathBuf]) -> Result<Config, String> {
        let texts = guard_files::installed(folders).map_err(|error| error.to_string())?;
        let mut rules = shipped_layers();
        rules.extend(texts.rules);
        let loaded = settings::load(&Sources {
            files: texts.settings,
            env: variables(),
        });
        let rules = RuleSet::parse(&rules);
        match (loaded, rules) {
            (Ok(loaded), Ok(rules)) => {
                rules
                    .check(&loaded.settings)
                    .map_err(|error| error.to_string())?;
                let rules = rules.with_classes(&loaded.settings);
                Ok(Config {
                    settings: Arc::new(loaded.settings),
                    rules: Arc::new(rules),
                    effective: loaded.effective,
                    warnings: loaded.warnings,
                    shadow_mistakes: loaded
                        .shadow_mistakes
                        .iter()
                        .map(ToString::to_string)
                        .collect(),
                })
            }
            (Err(one), Err(two)) => Err(format!("{one}\n{two}")),
            (Err(one), Ok(_)) => Err(one.to_string()),
            (Ok(_), Err(two)) => Err(two.to_string()),
        }
    }
}

/// The settings below `folders` and in the environment, as they are now.
///
/// The error names the file that cannot be read.
pub fn sources(folders: &[PathBuf]) -> Result<Sources, String> {
    let texts = guard_files::installed(folders).map_err(|error| error.to_string())?;
    Ok(Sources {
        files: texts.settings,
        env: variables(),
    })
}

fn variables() -> Vec<(String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| {
            let name = name.into_string().ok()?;
            name.starts_with(VARIABLE_PREFIX)
                .then(|| (name, value.to_string_lossy().into_owned()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_folder_and_a_drop_in_win() {
        let etc = tempfile::tempdir().expect("a folder");
        let home = tempfile::tempdir().expect("a folder");
        std::fs::write(
            etc.path().join("guard.toml"),
            "[routing]\ncpu_threshold = 50\nsustained_samples = 7\n",
        )
        .expect("written");
        std::fs::write(
            home.path().join("guard.toml"),
            "[routing]\ncpu_threshold = 60\n",
        )
        .expect("written");
        std::fs::create_dir(home.path().join("guard.toml.d")).expect("made");
        std::fs::write(
            home.path().join("guard.toml.d/10-mine.toml"),
            "[recovery]\nsamples = 3\n",
        )
        .expect("written");
        let folders = [
            etc.path().to_owned(),
            home.path().to_owned(),
            PathBuf::from("/nonexistent"),
        ];
        let config = Config::load(&folders).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(config.settings.routing.cpu_threshold, 60.0);
        assert_eq!(config.settings.routing.sustained_samples, 7);
        assert_eq!(config.settings.recovery.samples, 3);
    }

    #[test]
    fn an_unknown_key_names_its_file_and_line() {
        let home = tempfile::tempdir().expect("a folder");
        std::fs::write(
            home.path().join("guard.toml"),
            "[routing]\ncpu_treshold = 60\n",
        )
        .expect("written");
        let Err(error) = Config::load(&[home.path().to_owned()]) else {
            panic!("accepted")
        };
        assert!(error.contains("guard.toml:2"), "{error}");
        assert!(error.contains("cpu_threshold"), "{error}");
    }
}
