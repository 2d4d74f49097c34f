//! What is wrong in a machine file.

use std::fmt;

/// One thing that is wrong: where, which key, why, and the way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// `FILE:LINE`, or the file alone.
    pub origin: String,
    /// The key, dotted; empty where the file as a whole is meant.
    pub key: String,
    /// What is wrong with it and what to do.
    pub reason: String,
}

impl Mistake {
    /// One at a line, 0 for the file as a whole.
    pub(super) fn new(origin: &str, line: usize, key: &str, reason: String) -> Self {
        Mistake {
            origin: match line {
                0 => origin.to_owned(),
                _ => format!("{origin}:{line}"),
            },
            key: key.to_owned(),
            reason,
        }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() {
            write!(f, "{}: {}", self.origin, self.reason)
        } else {
            write!(f, "{}: `{}`: {}", self.origin, self.key, self.reason)
        }
    }
}

/// Everything that is wrong, never empty, in the order of the file's lines; shown one to a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistakes(Vec<Mistake>);

impl Mistakes {
    /// `Ok` when there is none.
    pub(super) fn none(mut mistakes: Vec<(usize, Mistake)>) -> Result<(), Mistakes> {
        if mistakes.is_empty() {
            return Ok(());
        }
        mistakes.sort_by_key(|(line, _)| *line);
        Err(Mistakes(
            mistakes.into_iter().map(|(_, mistake)| mistake).collect(),
        ))
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &Mistake> {
        self.0.iter()
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, mistake) in self.0.iter().enumerate() {
            if n > 0 {
                f.write_str("\n")?;
            }
            mistake.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Mistakes {}
