//! Outcomes and their sums.

/// How one test ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It saw what it was to see.
    Passed,
    /// It did not; why.
    Failed(String),
    /// It could not run here; why. A reason that begins with [`HARDWARE`] is accepted everywhere.
    Skipped(String),
}

/// How the reason of a skip begins that no set-up of the machine could avoid.
pub const HARDWARE: &str = "hardware:";

impl Outcome {
    /// In a continuous integration run (`CI=true`) everything has to run that the hardware allows.
    pub fn strict(self, ci: bool) -> Self {
        match self {
            Self::Skipped(reason) if ci && !reason.starts_with(HARDWARE) => {
                Self::Failed(format!("skipped although CI=true: {reason}"))
            }
            other => other,
        }
    }
}

/// Counts of outcomes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// Tests that passed.
    pub passed: usize,
    /// Tests that failed.
    pub failed: usize,
    /// Tests that could not run, and tiers that could not.
    pub skipped: usize,
    /// Whether a skip is to count as a failure.
    ci: bool,
}

impl Tally {
    /// All zero; `ci` as [`crate::host::is_ci`] says.
    pub fn new(ci: bool) -> Self {
        Self {
            ci,
            ..Self::default()
        }
    }

    /// Counts one outcome.
    pub fn add(&mut self, outcome: &Outcome) {
        match outcome.clone().strict(self.ci) {
            Outcome::Passed => self.passed += 1,
            Outcome::Failed(_) => self.failed += 1,
            Outcome::Skipped(_) => self.skipped += 1,
        }
    }

    /// The last line of a run.
    pub fn line(&self) -> String {
        format!(
            "{} passed, {} failed, {} skipped",
            self.passed, self.failed, self.skipped
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(ci: bool) -> String {
        let mut tally = Tally::new(ci);
        tally.add(&Outcome::Passed);
        tally.add(&Outcome::Failed("x".into()));
        tally.add(&Outcome::Skipped("needs root".into()));
        tally.add(&Outcome::Skipped("hardware: no cpu controller".into()));
        tally.line()
    }

    #[test]
    fn the_last_line_has_its_exact_form() {
        assert_eq!(counted(false), "1 passed, 1 failed, 2 skipped");
    }

    #[test]
    fn in_ci_only_hardware_excuses_a_skip() {
        assert_eq!(counted(true), "1 passed, 2 failed, 1 skipped");
    }
}
