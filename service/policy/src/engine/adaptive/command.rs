//! Which command a process belongs to: program and first word, such as `git:gc`.

use std::sync::Arc;

use crate::rules::program_name;

/// The longest part of a name, in characters.
const MAX_PART: usize = 32;

/// The command of a process with these arguments; `None` when it has none (a zombie).
///
/// Made of letters, digits and `._+-` alone, whatever the process calls itself.
pub(in super::super) fn command_of(argv: &[Box<str>]) -> Option<Arc<str>> {
    let mut words: Vec<&str> = argv.iter().map(AsRef::as_ref).collect();
    // What writes its title over its arguments leaves one line, and perhaps empty ones after it.
    if words.iter().skip(1).all(|word| word.is_empty()) {
        words = words.first()?.split_whitespace().collect();
    }
    let program = part(program_name(words.first()?));
    if program.is_empty() {
        return None;
    }
    // An option says how, not what.
    let first = words.get(1).filter(|word| !word.starts_with(['-', '+']));
    let first = first.map_or(String::new(), |word| part(program_name(word)));
    Some(match first.is_empty() {
        true => program.into(),
        false => format!("{program}:{first}").into(),
    })
}

/// Whether a text can be the name of a command: what comes from a file may be anything.
pub(super) fn is_command(text: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '+' | '-' | ':');
    !text.is_empty() && text.len() <= 2 * MAX_PART + 1 && text.chars().all(good)
}

fn part(text: &str) -> String {
    text.chars()
        .take(MAX_PART)
        .map(|c| match c {
            '.' | '_' | '+' | '-' => c,
            c if c.is_ascii_alphanumeric() => c,
            _ => '_',
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_program_and_first_word() {
        for (line, command) in [
            (&["/usr/bin/git", "gc", "--auto"][..], Some("git:gc")),
            (&["make", "-j8", "all"], Some("make")),
            (&["cargo", "+nightly", "build"], Some("cargo")),
            (&["python3", "/opt/x/train.py"], Some("python3:train.py")),
            (&["-bash"], Some("bash")),
            // A title.
            (&["npm run build", "", ""], Some("npm:run")),
            (&["/opt/chrome/chrome --type=renderer --x"], Some("chrome")),
            // Hostile.
            (&["a\nb:c", "d e"], Some("a_b_c:d_e")),
            (&["x", "ä\u{202e}"], Some("x:__")),
            (&["", ""], None),
            (&[], None),
        ] {
            let argv: Vec<Box<str>> = line.iter().map(|word| Box::from(*word)).collect();
            assert_eq!(command_of(&argv).as_deref(), command, "{line:?}");
        }
    }

    #[test]
    fn a_name_is_short_however_long_the_arguments_are() {
        let long: Box<str> = "x".repeat(100_000).into();
        let name = command_of(&[long.clone(), long]).expect("a name");
        assert_eq!(name.len(), 2 * MAX_PART + 1);
    }
}
