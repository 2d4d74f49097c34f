//! What is asked about what happened, and why.

use std::path::PathBuf;
use std::time::Duration;

use crate::args::InsightCommand;

/// What is asked of the guard.
#[derive(Debug, PartialEq)]
pub enum InsightCall {
    /// The last day.
    History {
        /// As JSON.
        json: bool,
    },
    /// What the last hour and the machine tell.
    Diagnose {
        /// As JSON.
        json: bool,
    },
    /// The last day as a page.
    Report {
        /// Where to.
        html: PathBuf,
    },
    /// A look of some seconds.
    Profile {
        /// How long.
        duration: Duration,
        /// How many wakeups are timed.
        samples: u32,
        /// As JSON.
        json: bool,
    },
    /// The text for a monitoring system.
    Metrics {
        /// Where to; none for stdout.
        output: Option<PathBuf>,
    },
}

impl InsightCall {
    /// Whether the answer is to be printed as JSON.
    pub fn json(&self) -> bool {
        matches!(
            self,
            InsightCall::History { json: true }
                | InsightCall::Diagnose { json: true }
                | InsightCall::Profile { json: true, .. }
        )
    }
}

/// Fills in the defaults.
pub fn plan(command: InsightCommand) -> InsightCall {
    match command {
        InsightCommand::History { json } => InsightCall::History { json },
        InsightCommand::Diagnose { json } => InsightCall::Diagnose { json },
        InsightCommand::Report { html } => InsightCall::Report { html },
        InsightCommand::Profile {
            duration,
            samples,
            json,
        } => InsightCall::Profile {
            // The guard says what it takes; nothing longer than a day comes that far.
            duration: Duration::try_from_secs_f64(duration.min(86_400.0)).unwrap_or_default(),
            samples,
            json,
        },
        InsightCommand::Metrics { output } => InsightCall::Metrics { output },
    }
}
