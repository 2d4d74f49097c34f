//! A program's output cut into lines, of which the last are kept for an error.

use std::collections::VecDeque;

/// How many lines are kept.
const KEPT: usize = 40;

/// The end of an output that comes in pieces.
#[derive(Debug, Default)]
pub struct Tail {
    pending: Vec<u8>,
    last: VecDeque<String>,
}

impl Tail {
    /// Takes the next piece and gives each line that it completes to `each`, trimmed; empty ones are dropped.
    pub fn feed(&mut self, bytes: &[u8], each: &mut dyn FnMut(&str)) {
        for &byte in bytes {
            // Progress bars are redrawn with carriage returns.
            if byte != b'\n' && byte != b'\r' {
                self.pending.push(byte);
                continue;
            }
            let line = String::from_utf8_lossy(&self.pending).trim().to_owned();
            self.pending.clear();
            if line.is_empty() {
                continue;
            }
            each(&line);
            if self.last.len() == KEPT {
                self.last.pop_front();
            }
            self.last.push_back(line);
        }
    }

    /// The last lines, an unfinished one included.
    pub fn text(&self) -> String {
        let pending = String::from_utf8_lossy(&self.pending);
        let lines: Vec<&str> = self
            .last
            .iter()
            .map(String::as_str)
            .chain([pending.trim()])
            .collect();
        lines.join("\n").trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_given_on_and_the_last_ones_kept() {
        let mut tail = Tail::default();
        let mut seen = 0;
        for number in 0..100 {
            tail.feed(format!(" line {number}\r\n\n").as_bytes(), &mut |_| {
                seen += 1
            });
        }
        tail.feed(b"no newline", &mut |_| seen += 1);
        assert_eq!(seen, 100);
        let text = tail.text();
        assert!(!text.contains("line 59\n"), "{text}");
        assert!(
            text.starts_with("line 60\n") && text.ends_with("line 99\nno newline"),
            "{text}"
        );
    }

    #[test]
    fn a_character_split_between_pieces_stays_whole() {
        let mut tail = Tail::default();
        let mut seen = Vec::new();
        for piece in [
            "ü".as_bytes().split_at(1).0,
            "ü".as_bytes().split_at(1).1,
            b"\n",
        ] {
            tail.feed(piece, &mut |line| seen.push(line.to_owned()));
        }
        assert_eq!(seen, ["ü"]);
    }
}
