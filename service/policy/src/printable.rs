//! Text from a process, made safe to show and to hand to systemd.

/// The longest description or command that is kept, in characters.
pub const MAX_CHARS: usize = 200;

/// `text` without control characters, with blanks folded, cut at [`MAX_CHARS`] characters, and without
/// a trailing backslash or blank.
///
/// systemd writes a Description raw into a unit file: there a newline would become unit settings at
/// the next daemon-reload, and a trailing backslash would swallow the next line.
pub fn printable(text: &str) -> String {
    let mut out = String::new();
    let mut chars = 0;
    let mut blank = false;
    for c in text.chars() {
        if c.is_control() || c.is_whitespace() || is_invisible(c) {
            blank = !out.is_empty();
            continue;
        }
        if chars + usize::from(blank) >= MAX_CHARS {
            out.push('…');
            return out;
        }
        if blank {
            out.push(' ');
            chars += 1;
            blank = false;
        }
        out.push(c);
        chars += 1;
    }
    let kept = out.trim_end_matches(['\\', ' ']).len();
    out.truncate(kept);
    out
}

/// Characters that change how the rest of a line is shown: bidirectional controls, zero-width ones.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// The arguments of a process as one printable line.
pub fn command_line<S: AsRef<str>>(argv: &[S]) -> String {
    let mut line = String::new();
    for arg in argv {
        if line.len() > 4 * MAX_CHARS {
            break;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        // Hostile arguments may be large: only what can be shown is copied.
        line.extend(arg.as_ref().chars().take(MAX_CHARS + 1));
    }
    printable(&line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newline_cannot_become_a_unit_setting() {
        assert_eq!(
            printable("a\n[Scope]\nKillMode=none"),
            "a [Scope] KillMode=none"
        );
    }

    #[test]
    fn a_trailing_backslash_cannot_swallow_the_next_line() {
        assert_eq!(printable("a\\"), "a");
        assert_eq!(printable("a\\ \\\\ "), "a");
        assert_eq!(printable("\\"), "");
    }

    #[test]
    fn a_huge_argument_is_cut() {
        let line = command_line(&["sh", "-c", &"x".repeat(65_536)]);
        assert_eq!(line.chars().count(), MAX_CHARS + 1);
        assert!(line.ends_with('…'));
    }
}
