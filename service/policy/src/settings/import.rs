//! The environment file of the Python original as a settings file of ours.

use super::variables::PREFIX;
use super::{Errors, Mistake, Sources, load};

/// What an import answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The text of a settings file that says the same.
    pub text: String,
    /// What of the old file is not in it, a sentence each.
    pub notes: Vec<String>,
}

/// Reads `text`, a file as systemd's `EnvironmentFile=` takes it; `origin` is its name.
///
/// # Errors
///
/// Each line that is no plain assignment, and each variable whose value is none of its key.
pub fn import(origin: &str, text: &str) -> Result<Imported, Errors> {
    let mut env = Vec::new();
    let mut notes = Vec::new();
    let mut mistakes = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        match assignment(line) {
            Some((name, value)) if name.starts_with(PREFIX) => env.push((name.to_owned(), value)),
            Some((name, _)) => notes.push(format!(
                "{origin}:{}: {name} is no setting of the guard and is left out",
                at + 1
            )),
            None => mistakes.push(Mistake::BadValue {
                origin: format!("{origin}:{}", at + 1),
                key: line.split('=').next().unwrap_or_default().trim().to_owned(),
                expected: "NAME=VALUE on one line, without backslashes".to_owned(),
                found: format!("{line:?}"),
            }),
        }
    }
    Errors::none_or(mistakes, || ())?;
    let loaded = load(&Sources {
        files: Vec::new(),
        env,
    })?;
    notes.extend(loaded.warnings);
    if let Some(mistake) = loaded.shadow_mistakes.first() {
        return Err(Errors::none_or(vec![mistake.clone()], || ()).unwrap_err());
    }
    let mut out = format!("# Taken over from {origin}.\n");
    for row in loaded.effective {
        if row.origin.starts_with(PREFIX) {
            out.push_str(&format!("{} = {}\n", row.key, row.value));
        }
    }
    Ok(Imported { text: out, notes })
}

/// One line, with one pair of quotes around the value at most.
fn assignment(line: &str) -> Option<(&str, String)> {
    let (name, value) = line.split_once('=')?;
    let name = name.trim_end();
    let value = value.trim();
    let plain = ['"', '\''].iter().find_map(|quote| {
        value
            .strip_prefix(*quote)
            .and_then(|value| value.strip_suffix(*quote))
    });
    let value = plain.unwrap_or(value);
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    (!name.is_empty() && name.chars().all(is_name) && !value.contains(['\\', '"', '\'']))
        .then(|| (name, value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::super::Layer;
    use super::*;

    #[test]
    fn what_was_set_says_the_same_in_toml() {
        let text = "# mine\n\nWORKLOAD_GUARD_SAMPLE_SEC=5\n; old\n\
                    WORKLOAD_GUARD_PARENT_UNIT=\"app.slice\"\n\
                    WORKLOAD_GUARD_ADAPTIVE=true\nWORKLOAD_GUARD_EXCLUDE_PATTERNS='vim ,make docs'\n\
                    WORKLOAD_GUARD_BROWSER_PROCESS_PATTERN=chrome --headless\n\
                    WORKLOAD_GUARD_CPU_THRESHOLD=\nPATH=/bin\n";
        let imported = import("old.env", text).unwrap();
        assert_eq!(imported.notes.len(), 2, "{:?}", imported.notes);
        assert!(imported.notes[0].contains("old.env:10") && imported.notes[0].contains("PATH"));
        let variables = [
            ("SAMPLE_SEC", "5"),
            ("PARENT_UNIT", "app.slice"),
            ("ADAPTIVE", "true"),
            ("EXCLUDE_PATTERNS", "vim ,make docs"),
            ("BROWSER_PROCESS_PATTERN", "chrome --headless"),
        ];
        let env = variables.map(|(name, value)| (format!("{PREFIX}{name}"), value.to_owned()));
        let by_variable = load(&Sources {
            files: vec![],
            env: env.into(),
        })
        .unwrap();
        let mut by_file = load(&Sources {
            files: vec![Layer {
                origin: "new".into(),
                text: imported.text,
            }],
            env: vec![],
        })
        .unwrap();
        // Only where they came from differs.
        for (one, other) in by_file
            .settings
            .classes
            .iter_mut()
            .zip(&by_variable.settings.classes)
        {
            one.patterns_origin.clone_from(&other.patterns_origin);
        }
        assert_eq!(by_file.settings, by_variable.settings);
    }

    #[test]
    fn what_cannot_be_read_is_named_by_its_line() {
        for line in [
            "WORKLOAD_GUARD_SAMPLE_SEC",
            "WORKLOAD_GUARD_SAMPLE_SEC=2\\",
            "export WORKLOAD_GUARD_SAMPLE_SEC=2",
            "WORKLOAD_GUARD_SAMPLE_SEC=\"2",
        ] {
            let error = import("old.env", &format!("\n{line}\n"))
                .unwrap_err()
                .to_string();
            assert!(error.contains("old.env:2"), "{line}: {error}");
        }
        let error = import("old.env", "WORKLOAD_GUARD_SAMPLE_SEC=often\n")
            .unwrap_err()
            .to_string();
        assert!(error.contains("SAMPLE_SEC"), "{error}");
    }
}
