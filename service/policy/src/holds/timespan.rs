//! Lengths of time as people write them: `90s`, `30m`, `1h 30min`, in systemd's spelling (systemd.time(7)).

use std::time::Duration;

/// The longest: holds that are meant to stay need no end.
pub const LONGEST: Duration = Duration::from_secs(366 * 24 * 60 * 60);

const UNITS: &[(&[&str], u64)] = &[
    (&["us", "usec", "µs", "μs"], 1),
    (&["ms", "msec"], 1_000),
    (&["s", "sec", "second", "seconds"], 1_000_000),
    (&["m", "min", "minute", "minutes"], 60_000_000),
    (&["h", "hr", "hour", "hours"], 3_600_000_000),
    (&["d", "day", "days"], 24 * 3_600_000_000),
    (&["w", "week", "weeks"], 7 * 24 * 3_600_000_000),
];

/// Reads a length of time. A number without a unit is seconds.
///
/// # Errors
///
/// Says what was wrong and what is right.
pub fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || {
        format!(
            "{:?} is no length of time: write 90s, 30m, 2h, or `1h 30min`",
            crate::printable::printable(text)
        )
    };
    let mut rest = text.trim();
    let mut usec: u64 = 0;
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        let number: u64 = rest[..digits].parse().map_err(|_| wrong())?;
        rest = rest[digits..].trim_start();
        let letters = rest
            .find(|c: char| c.is_ascii_digit() || c.is_whitespace())
            .unwrap_or(rest.len());
        let unit = &rest[..letters];
        rest = rest[letters..].trim_start();
        let scale = match unit {
            "" => 1_000_000,
            unit => UNITS
                .iter()
                .find(|(names, _)| names.contains(&unit))
                .map(|(_, scale)| *scale)
                .ok_or_else(wrong)?,
        };
        usec = number
            .checked_mul(scale)
            .and_then(|part| usec.checked_add(part))
            .ok_or_else(wrong)?;
    }
    let span = Duration::from_micros(usec);
    if span.is_zero() || span > LONGEST {
        return Err(format!("{text:?}: from 1 s to 366 d"));
    }
    Ok(span)
}

/// A length of time for people, in its two largest units: `1 h 30 min`.
pub fn words(span: Duration) -> String {
    let seconds = span.as_secs() + u64::from(span.subsec_nanos() > 0);
    let parts = [
        (seconds / 86_400, "d"),
        (seconds / 3_600 % 24, "h"),
        (seconds / 60 % 60, "min"),
        (seconds % 60, "s"),
    ];
    let shown: Vec<String> = parts
        .iter()
        .skip_while(|(count, _)| *count == 0)
        .take(2)
        .filter(|(count, _)| *count > 0)
        .map(|(count, unit)| format!("{count} {unit}"))
        .collect();
    if shown.is_empty() {
        "0 s".to_owned()
    } else {
        shown.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systemds_spelling_is_read() {
        for (text, seconds) in [
            ("90", 90),
            ("90s", 90),
            ("30m", 1_800),
            ("2h", 7_200),
            ("1h 30min", 5_400),
            ("1h30m", 5_400),
            (" 2 days ", 172_800),
            ("1w", 604_800),
            ("5000ms", 5),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
    }

    #[test]
    fn what_is_no_length_of_time_is_refused() {
        for text in [
            "",
            " ",
            "m",
            "-5s",
            "1.5h",
            "5 parsecs",
            "0",
            "0s",
            "400d",
            "99999999999999999999",
            "18446744073709551615w",
            "5s5",
        ] {
            let read = parse(text);
            // A number behind a unit is seconds again, as systemd reads it.
            if text == "5s5" {
                assert_eq!(read, Ok(Duration::from_secs(10)));
            } else {
                assert!(read.is_err(), "{text}: {read:?}");
            }
        }
    }

    #[test]
    fn two_units_are_enough_for_people() {
        for (seconds, text) in [
            (0, "0 s"),
            (59, "59 s"),
            (1_800, "30 min"),
            (5_400, "1 h 30 min"),
            (3_605, "1 h"),
            (176_461, "2 d 1 h"),
        ] {
            assert_eq!(words(Duration::from_secs(seconds)), text);
        }
        assert_eq!(words(Duration::from_millis(1)), "1 s");
    }
}
