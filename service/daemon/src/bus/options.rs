//! The `options` argument of `Attach` and its like, and of holds.

use std::collections::HashMap;
use std::time::Duration;

use guard_policy::holds::timespan;
use guard_policy::printable::printable;
use workload_guard_dbus::GuardError;
use zvariant::OwnedValue;

/// The longest reason, in bytes.
const MAX_REASON: usize = 200;

/// Every option that a caller can give.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Why, printable; empty when the caller said nothing.
    pub reason: String,
    /// How long, from now; none: until somebody ends it.
    pub duration: Option<Duration>,
    /// It ends when the caller leaves the bus.
    pub lease: bool,
}

impl Options {
    /// Whether it ends by itself.
    pub fn ends(&self) -> bool {
        self.lease || self.duration.is_some()
    }
}

impl TryFrom<HashMap<String, OwnedValue>> for Options {
    type Error = GuardError;

    fn try_from(raw: HashMap<String, OwnedValue>) -> Result<Options, GuardError> {
        let mut options = Options::default();
        for (name, value) in raw {
            match name.as_str() {
                "reason" => {
                    let reason = String::try_from(value).map_err(|_| {
                        GuardError::InvalidSettings("the option `reason` takes a string (s)".into())
                    })?;
                    if reason.len() > MAX_REASON {
                        return Err(GuardError::LimitExceeded(format!(
                            "the option `reason` takes at most {MAX_REASON} bytes, not {}",
                            reason.len()
                        )));
                    }
                    options.reason = printable(&reason);
                }
                "duration" => {
                    let seconds = u32::try_from(value).map_err(|_| {
                        GuardError::InvalidSettings(
                            "the option `duration` takes a number of seconds (u)".into(),
                        )
                    })?;
                    let duration = Duration::from_secs(seconds.into());
                    if duration.is_zero() || duration > timespan::LONGEST {
                        return Err(GuardError::InvalidSettings(format!(
                            "the option `duration` takes 1 to {} seconds, not {seconds}; \
                             without it there is no end",
                            timespan::LONGEST.as_secs()
                        )));
                    }
                    options.duration = Some(duration);
                }
                "lease" => {
                    options.lease = bool::try_from(value).map_err(|_| {
                        GuardError::InvalidSettings("the option `lease` takes a boolean (b)".into())
                    })?;
                }
                other => {
                    return Err(GuardError::InvalidSettings(format!(
                        "there is no option {:?}; this version knows `reason` (s), `duration` (u) and `lease` (b)",
                        printable(other)
                    )));
                }
            }
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zvariant::Value;

    fn parse(name: &str, value: Value<'_>) -> Result<Options, GuardError> {
        let value = OwnedValue::try_from(value).expect("no descriptor in it");
        Options::try_from(HashMap::from([(name.to_owned(), value)]))
    }

    #[test]
    fn a_reason_is_made_printable() {
        assert_eq!(
            parse("reason", "a\nb".into()).map(|o| o.reason),
            Ok("a b".into())
        );
    }

    #[test]
    fn an_end_is_a_time_or_the_callers_leave() {
        assert_eq!(
            parse("lease", true.into()).map(|o| (o.lease, o.ends())),
            Ok((true, true))
        );
        assert_eq!(
            parse("duration", 90u32.into()).map(|o| (o.duration, o.ends())),
            Ok((Some(Duration::from_secs(90)), true))
        );
        assert_eq!(parse("reason", "x".into()).map(|o| o.ends()), Ok(false));
    }

    #[test]
    fn a_wrong_option_is_an_error_and_not_ignored() {
        assert!(matches!(
            parse("Lease", true.into()),
            Err(GuardError::InvalidSettings(_))
        ));
        for (name, value) in [
            ("lease", Value::from(1u32)),
            ("duration", Value::from(0u32)),
            ("duration", Value::from(u32::MAX)),
            ("duration", Value::from("1h")),
            ("duration", Value::from(30u64)),
        ] {
            assert!(
                matches!(parse(name, value), Err(GuardError::InvalidSettings(_))),
                "{name}"
            );
        }
        assert!(matches!(
            parse("reason", 3u32.into()),
            Err(GuardError::InvalidSettings(_))
        ));
        let long = "x".repeat(MAX_REASON + 1);
        assert!(matches!(
            parse("reason", long.into()),
            Err(GuardError::LimitExceeded(_))
        ));
    }
}
