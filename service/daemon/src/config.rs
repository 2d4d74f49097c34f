//! Reads the settings and rules; what they mean is decided in `guard-policy`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use guard_policy::rules::{RuleSet, shipped_layers};
use guard_policy::settings::{self, Effective, Layer, Settings, Sources};

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
        }
    }

    /// From the files below `folders` (a later folder wins) and the environment.
    ///
    /// The error names every file, line and key that is wrong.
    pub fn load(folders: &[PathBuf]) -> Result<Config, String> {
        let mut files = Vec::new();
        let mut rules = shipped_layers();
        for folder in folders {
            files.extend(read(&folder.join("guard.toml"))?);
            for path in toml_files(&folder.join("guard.toml.d"))? {
                files.extend(read(&path)?);
            }
            for path in toml_files(&folder.join("rules.d"))? {
                rules.extend(read(&path)?);
            }
        }
        let env = std::env::vars_os()
            .filter_map(|(name, value)| {
                let name = name.into_string().ok()?;
                name.starts_with(VARIABLE_PREFIX)
                    .then(|| (name, value.to_string_lossy().into_owned()))
            })
            .collect();
        let loaded = settings::load(&Sources { files, env });
        let rules = RuleSet::parse(&rules);
        match (loaded, rules) {
            (Ok(loaded), Ok(rules)) => {
                rules
                    .check(&loaded.settings)
                    .map_err(|error| error.to_string())?;
                Ok(Config {
                    settings: Arc::new(loaded.settings),
                    rules: Arc::new(rules),
                    effective: loaded.effective,
                    warnings: loaded.warnings,
                })
            }
            (Err(one), Err(two)) => Err(format!("{one}\n{two}")),
            (Err(one), Ok(_)) => Err(one.to_string()),
            (Ok(_), Err(two)) => Err(two.to_string()),
        }
    }
}

/// A file as a layer; none when it is not there.
fn read(path: &Path) -> Result<Option<Layer>, String> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(Layer {
            origin: path.display().to_string(),
            text,
        })),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

/// The `*.toml` files of a folder in order of their names; none when there is no folder.
fn toml_files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(format!("{}: {error}", folder.display())),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry
            .map_err(|error| format!("{}: {error}", folder.display()))?
            .path();
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
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
