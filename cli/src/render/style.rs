//! What the output may look like.

use std::io::IsTerminal;
use std::time::{SystemTime, UNIX_EPOCH};

/// How to print.
#[derive(Clone, Debug)]
pub struct Style {
    /// Columns of the terminal; none when stdout is not one, where nothing is cut.
    pub width: Option<usize>,
    /// Whether colour is welcome.
    pub colour: bool,
    /// The time of day, in microseconds since 1970.
    pub now_usec: u64,
}

/// What a piece of text is, for its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// A heading.
    Head,
    /// All is well.
    Good,
    /// Look here.
    Warn,
    /// Secondary.
    Dim,
}

impl Style {
    /// For this process's stdout, now.
    pub fn of_stdout() -> Style {
        let terminal = std::io::stdout().is_terminal();
        let set = |name| {
            std::env::var_os(name).is_some_and(|value: std::ffi::OsString| !value.is_empty())
        };
        Style {
            width: terminal.then(terminal_width),
            colour: terminal
                && !set("NO_COLOR")
                && std::env::var_os("TERM").is_none_or(|term| term != "dumb"),
            now_usec: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| since.as_micros().try_into().unwrap_or(u64::MAX)),
        }
    }

    /// `text` in the colour of `tone`, where colour is welcome.
    pub fn paint(&self, tone: Tone, text: &str) -> String {
        if !self.colour {
            return text.to_owned();
        }
        let code = match tone {
            Tone::Head => "1",
            Tone::Good => "32",
            Tone::Warn => "33",
            Tone::Dim => "2",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// What the terminal says, else `$COLUMNS`, else the usual 80: a serial console has no size.
fn terminal_width() -> usize {
    let columns = || {
        std::env::var("COLUMNS")
            .ok()?
            .parse()
            .ok()
            .filter(|&columns| columns > 0)
    };
    terminal_size::terminal_size()
        .map(|(width, _)| width.0.into())
        .or_else(columns)
        .unwrap_or(80)
}

/// How long ago, roughly: `12 s`, `3 min`, `2 h`, `4 d`. A time ahead of now is `0 s`: clocks get set.
pub fn ago(then_usec: u64, now_usec: u64) -> String {
    let seconds = now_usec.saturating_sub(then_usec) / 1_000_000;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// A control group as people know it: below the user manager where it is there (`app.slice/…`).
pub fn short_cgroup(path: &str) -> &str {
    match path.split_once("/user@") {
        Some((_, rest)) => rest.split_once('/').map_or(path, |(_, below)| below),
        None => path,
    }
}

/// `text` without characters that a terminal would obey, and cut to `width` columns with an ellipsis at the end.
pub fn fit(text: &str, width: Option<usize>) -> String {
    let clean = text
        .chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c });
    match width {
        Some(width) if text.chars().count() > width => clean
            .take(width.saturating_sub(1))
            .chain(std::iter::once('…'))
            .collect(),
        _ => clean.collect(),
    }
}

/// As [`fit`], with the ellipsis at the start: the end of a path tells most.
pub fn fit_end(text: &str, width: Option<usize>) -> String {
    let clean = fit(text, None);
    let excess = width.map_or(0, |width| clean.chars().count().saturating_sub(width));
    if excess == 0 {
        return clean;
    }
    std::iter::once('…')
        .chain(clean.chars().skip(excess + 1))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn since_is_told_roughly() {
        let ago = |seconds: u64| ago(1_000_000, (1 + seconds) * 1_000_000);
        assert_eq!(
            [ago(0), ago(59), ago(60), ago(7199), ago(86_400)],
            ["0 s", "59 s", "1 min", "1 h", "1 d"]
        );
        assert_eq!(super::ago(5_000_000, 1_000_000), "0 s");
    }

    #[test]
    fn a_control_group_is_shown_below_the_user_manager() {
        assert_eq!(
            short_cgroup("/user.slice/user-1000.slice/user@1000.service/app.slice/a.scope"),
            "app.slice/a.scope"
        );
        assert_eq!(
            short_cgroup("/system.slice/docker.service"),
            "/system.slice/docker.service"
        );
        assert_eq!(
            short_cgroup("/user.slice/user-1000.slice/user@1000.service"),
            "/user.slice/user-1000.slice/user@1000.service"
        );
    }

    #[test]
    fn a_command_cannot_steer_the_terminal() {
        assert_eq!(fit("a\x1b[2Jb", None), "a\u{fffd}[2Jb");
        assert_eq!(fit("abcdef", Some(4)), "abc…");
        assert_eq!(fit("abcd", Some(4)), "abcd");
        assert_eq!(fit_end("abcdef", Some(4)), "…def");
        assert_eq!(fit_end("abcd", Some(4)), "abcd");
    }
}
