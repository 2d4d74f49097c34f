//! The options of `Apply`, read strictly: a typing error must not prepare a machine otherwise than was meant.

use std::collections::HashMap;

use bench_profile::requested::Options;
use workload_guard_dbus::BenchError;
use zvariant::OwnedValue;

/// Reads them.
pub fn parse(options: HashMap<String, OwnedValue>) -> Result<Options, BenchError> {
    let mut parsed = Options::default();
    for (name, value) in options {
        match name.as_str() {
            "boost" => parsed.boost = Some(switch(&name, value)?),
            "smt" => parsed.smt = Some(switch(&name, value)?),
            "keep-housekeeping-cores" => {
                parsed.keep_housekeeping = bool::try_from(value).map_err(|_| {
                    BenchError::InvalidSettings(format!("option {name} is a boolean"))
                })?;
            }
            _ => {
                return Err(BenchError::InvalidSettings(format!(
                    "there is no option {name:?}: there are boost, smt and keep-housekeeping-cores"
                )));
            }
        }
    }
    Ok(parsed)
}

fn switch(name: &str, value: OwnedValue) -> Result<bool, BenchError> {
    match String::try_from(value).as_deref() {
        Ok("on") => Ok(true),
        Ok("off") => Ok(false),
        _ => Err(BenchError::InvalidSettings(format!(
            "option {name} is the text \"on\" or \"off\""
        ))),
    }
}

#[cfg(test)]
mod tests {
    use zvariant::Value;

    use super::*;

    fn one(name: &str, value: Value<'_>) -> Result<Options, BenchError> {
        let value = value.try_into().expect("no descriptor");
        parse(HashMap::from([(name.to_owned(), value)]))
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        assert_eq!(one("boost", "on".into()).expect("on").boost, Some(true));
        assert_eq!(one("smt", "off".into()).expect("off").smt, Some(false));
        let kept = one("keep-housekeeping-cores", true.into()).expect("kept");
        assert!(kept.keep_housekeeping);
        for (name, value) in [
            ("boost", Value::from("On")),
            ("boost", Value::from(true)),
            ("keep-housekeeping-cores", Value::from("yes")),
            ("bost", Value::from("on")),
        ] {
            let error = one(name, value).expect_err("refused").text();
            assert!(error.contains(name), "{error}");
        }
    }
}
