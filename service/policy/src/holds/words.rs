//! Holds in words.

use std::time::Duration;

use super::{Terms, timespan};

impl Terms {
    /// For how long, by whom and why, to go after what is held: ` for 30 min by make (process 77): a reason`.
    pub fn told(&self) -> String {
        let owner = match (&self.owner.command, self.owner.pid) {
            (command, 0) if command.is_empty() => "a caller that the bus does not name".to_owned(),
            (command, pid) if command.is_empty() => format!("process {pid}"),
            (command, pid) => format!("{command} (process {pid})"),
        };
        let reason = match self.reason.as_str() {
            "" => String::new(),
            reason => format!(": {reason}"),
        };
        let span = match self.until {
            Some(until) => {
                let span = Duration::from_micros(until.wall.saturating_sub(self.since));
                format!(" for {}", timespan::words(span))
            }
            None => String::new(),
        };
        format!("{span} by {owner}{reason}")
    }
}
