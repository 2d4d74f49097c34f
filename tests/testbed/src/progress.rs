//! Progress for people, on stderr: what is being done, with the time since the start.

use std::io::{IsTerminal, Write};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Starts the clock; the first line of a command counts from here.
pub fn start() {
    LazyLock::force(&START);
}

/// One line, with the seconds since the start.
pub fn say(text: &str) {
    // Nobody reads any more: no reason to stop the work.
    let _ = writeln!(
        std::io::stderr(),
        "[{:6.1} s] {text}",
        START.elapsed().as_secs_f64()
    );
}

/// A line that the next one replaces, on a terminal only.
pub fn hint(text: &str) {
    let mut stderr = std::io::stderr();
    if stderr.is_terminal() {
        let _ = write!(
            stderr,
            "\r\x1b[K[{:6.1} s] {text}",
            START.elapsed().as_secs_f64()
        );
    }
}

/// Removes the line of [`hint`].
pub fn clear_hint() {
    let mut stderr = std::io::stderr();
    if stderr.is_terminal() {
        let _ = write!(stderr, "\r\x1b[K");
    }
}

/// A duration with one decimal: `12.3 s`.
pub fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}
