//! The variables of the environment, which the Python original had.

use super::class_keys::{PATTERNS, patterns_of_variable};
use super::keys::{BROWSER, KEYS};
use super::layers::Values;
use crate::source::{Mistake, nearest};

/// What each of them starts with.
pub const PREFIX: &str = "WORKLOAD_GUARD_";

/// The variable of `classes.browser.patterns`, several with commas in between.
pub const BROWSER_PATTERN: &str = "BROWSER_PROCESS_PATTERN";

/// Lays the variables over `values`; the last of several with one name wins.
pub fn read(
    env: &[(String, String)],
    values: &mut Values,
    mistakes: &mut Vec<Mistake>,
    warnings: &mut Vec<String>,
) {
    for (variable, text) in env {
        let Some(name) = variable.strip_prefix(PREFIX) else {
            continue;
        };
        if name == BROWSER_PATTERN {
            browser(variable, text, values, warnings);
            continue;
        }
        let Some(at) = KEYS.iter().position(|key| key.variable == name) else {
            warnings.push(ignored(variable, name));
            continue;
        };
        let key = &KEYS[at];
        match key.kind.read_text(text) {
            Some(value) => values.keys[at] = (value, variable.clone()),
            // `NAME=` in an environment file is how one takes a value away.
            None if text.trim().is_empty() => {
                warnings.push(format!("{variable} is empty, ignored"))
            }
            None => mistakes.push(Mistake::BadValue {
                origin: variable.clone(),
                key: key.name.to_owned(),
                expected: key.kind.expected(),
                found: format!("{text:?}"),
            }),
        }
    }
}

/// An empty one takes the patterns of the files away: detection of browsers is off then.
fn browser(variable: &str, text: &str, values: &mut Values, warnings: &mut Vec<String>) {
    match values.classes.get_mut(BROWSER) {
        Some(class) => {
            let found = patterns_of_variable(text);
            class.insert(PATTERNS, (found, variable.to_owned()));
        }
        None => warnings.push(format!(
            "{variable} is ignored: there is no class `{BROWSER}`"
        )),
    }
}

fn ignored(variable: &str, name: &str) -> String {
    let known = KEYS.iter().map(|key| key.variable).chain([BROWSER_PATTERN]);
    match nearest(name, known) {
        Some(meant) => format!("{variable} is unknown, ignored; did you mean {PREFIX}{meant}?"),
        None => format!("{variable} is unknown, ignored"),
    }
}
