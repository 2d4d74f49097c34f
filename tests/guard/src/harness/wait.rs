//! Waiting with a deadline, and watching that something does not happen.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// Between two looks. Short against every interval of the guard that a scenario measures.
const LOOK: Duration = Duration::from_millis(10);

/// The usual patience with a step that takes milliseconds on an idle machine and seconds under emulation.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Looks until `look` answers something; fails when `patience` is over, with what was last missing.
///
/// An error of `look` counts as "not yet": what is looked at may not exist yet. It is told when time is up.
pub fn until<T>(
    what: &str,
    patience: Duration,
    mut look: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let begin = Instant::now();
    loop {
        let last = match look() {
            Ok(Some(found)) => return Ok(found),
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        if begin.elapsed() >= patience {
            last.with_context(|| format!("waited {patience:?} for this: {what}"))?;
            bail!("waited {patience:?} in vain for this: {what}");
        }
        std::thread::sleep(LOOK);
    }
}

/// As [`until`] for a plain condition.
pub fn until_true(
    what: &str,
    patience: Duration,
    mut look: impl FnMut() -> Result<bool>,
) -> Result<()> {
    until(what, patience, || Ok(look()?.then_some(())))
}

/// Watches for the whole of `window` that `holds` stays free of errors: the proof that something does not happen.
pub fn hold(what: &str, window: Duration, mut holds: impl FnMut() -> Result<()>) -> Result<()> {
    let begin = Instant::now();
    loop {
        holds().with_context(|| {
            format!(
                "did not hold after {:.2} s: {what}",
                begin.elapsed().as_secs_f64()
            )
        })?;
        if begin.elapsed() >= window {
            return Ok(());
        }
        std::thread::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_missing_is_told() {
        let error = until::<()>("a miracle", Duration::from_millis(20), || {
            bail!("nothing there")
        })
        .expect_err("it never comes");
        let text = format!("{error:#}");
        assert!(
            text.contains("a miracle") && text.contains("nothing there"),
            "{text}"
        );
    }

    #[test]
    fn a_breach_inside_the_window_fails() {
        let mut left = 3;
        let result = hold("counting down", Duration::from_secs(5), || {
            left -= 1;
            anyhow::ensure!(left > 0, "it reached zero");
            Ok(())
        });
        assert!(format!("{:#}", result.expect_err("breach")).contains("it reached zero"));
    }
}
