//! Copies of what is replaced, by the time of the replacement.

use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use super::{Change, Disk};
use crate::root::Root;

/// Where they are, below the root.
const FOLDER: &str = "var/backups/bench-profile";
/// Root's alone: a loader's files may hold hashes of passwords.
const MODE: u32 = 0o600;

/// Keeps what each file holds. Answers the folder; none where there is nothing to keep.
///
/// # Errors
///
/// What the kernel answered.
pub fn keep(
    root: &Root,
    disk: &mut impl Disk,
    changes: &[Change],
    now: SystemTime,
) -> io::Result<Option<String>> {
    let kept: Vec<(&str, &str)> = changes
        .iter()
        .filter_map(|change| Some((change.path.as_str(), change.before.as_deref()?)))
        .collect();
    if kept.is_empty() {
        return Ok(None);
    }
    let base = format!("{FOLDER}/{}", stamp(now));
    let folder = (0..)
        .map(|n| match n {
            0 => base.clone(),
            n => format!("{base}-{n}"),
        })
        .find(|folder| !root.exists(folder))
        .expect("numbers do not end");
    for (path, text) in kept {
        let (below, name) = path.rsplit_once('/').unwrap_or(("", path));
        let place = root.folder(&format!("{folder}/{below}"))?;
        disk.create(&place, name, text.as_bytes(), MODE)?;
        disk.settle(&place)?;
    }
    Ok(Some(folder))
}

/// Where they are, in a sentence.
pub fn kept_in(folder: &str) -> String {
    format!("what was there before is kept in /{folder}")
}

/// Such as `20261201T033000Z`.
pub fn stamp(now: SystemTime) -> String {
    let seconds = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    format!(
        "{year:04}{month:02}{day:02}T{:02}{:02}{:02}Z",
        rest / 3600,
        rest / 60 % 60,
        rest % 60
    )
}

/// The date of a day since 1970, with years that begin in March, so that leap days come last.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let of_month = day - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    (era * 400 + year + carry, month, of_month)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_time_is_a_name_that_sorts() {
        let at = |seconds| stamp(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "19700101T000000Z");
        assert_eq!(at(951_782_399), "20000228T235959Z");
        assert_eq!(at(951_782_400), "20000229T000000Z");
        assert_eq!(at(1_796_095_800), "20261201T033000Z");
        assert_eq!(at(4_107_542_400), "21000301T000000Z");
    }
}
