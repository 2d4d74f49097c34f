//! Where log lines go: the journal with their fields, else plain standard error.

use log::{LevelFilter, Log, Metadata, Record};

/// Starts logging. The level comes from `BENCH_PREP_LOG` (error, warn, info, debug), `info` by default.
pub fn start() {
    let level = std::env::var("BENCH_PREP_LOG")
        .ok()
        .and_then(|level| level.parse().ok())
        .unwrap_or(LevelFilter::Info);
    let journal = systemd_journal_logger::connected_to_journal()
        .then(systemd_journal_logger::JournalLog::new)
        .and_then(Result::ok)
        .and_then(|journal| journal.install().ok());
    if journal.is_none() {
        // Fails only if a logger is there already, which is as good.
        let _ = log::set_logger(&Plain);
    }
    log::set_max_level(level);
}

/// Standard error, a line each.
struct Plain;

impl Log for Plain {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= log::max_level()
    }

    fn log(&self, record: &Record<'_>) {
        // The libraries below speak only of trouble.
        if self.enabled(record.metadata()) {
            eprintln!(
                "{}: {}",
                record.level().as_str().to_ascii_lowercase(),
                record.args()
            );
        }
    }

    fn flush(&self) {}
}
