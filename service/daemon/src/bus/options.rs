//! The `options` argument of `Attach` and `AttachFds`.

use std::collections::HashMap;

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
                other => {
                    return Err(GuardError::InvalidSettings(format!(
                        "there is no option {:?}; this version knows `reason` (s)",
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
    fn a_wrong_option_is_an_error_and_not_ignored() {
        assert!(matches!(
            parse("lease", true.into()),
            Err(GuardError::InvalidSettings(_))
        ));
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
