//! The kernel's list notation (`bitmap_parselist`, `%*pbl`): numbers and ranges between commas.

use std::fmt;
use std::str::FromStr;

use super::{BadCpus, CpuSet, LIMIT};

impl FromStr for CpuSet {
    type Err = BadCpus;

    /// Reads `0-7,16`, with blanks around and a line break at the end as sysfs has it. The empty text
    /// is the empty set.
    fn from_str(text: &str) -> Result<Self, BadCpus> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(CpuSet::default());
        }
        let mut set = CpuSet::default();
        for part in text.split(',') {
            let (first, last) = range(part.trim())?;
            set.cpus.extend(first..=last);
        }
        Ok(set)
    }
}

fn range(part: &str) -> Result<(u32, u32), BadCpus> {
    let bad = || BadCpus::Part {
        part: part.to_owned(),
    };
    let number = |text: &str| -> Result<u32, BadCpus> {
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(bad());
        }
        let number: u64 = text.parse().map_err(|_| bad())?;
        match u32::try_from(number) {
            Ok(cpu) if cpu < LIMIT => Ok(cpu),
            _ => Err(BadCpus::TooHigh(number)),
        }
    };
    let (first, last) = match part.split_once('-') {
        Some((first, last)) => (number(first)?, number(last)?),
        None => (number(part)?, number(part)?),
    };
    if first > last {
        return Err(bad());
    }
    Ok((first, last))
}

/// Writes ranges, never expanded numbers: a kernel command line has 2,048 bytes.
pub fn format(set: &CpuSet, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut cpus = set.iter().peekable();
    let mut comma = "";
    while let Some(first) = cpus.next() {
        let mut last = first;
        while let Some(next) = cpus.next_if_eq(&(last + 1)) {
            last = next;
        }
        if first == last {
            write!(f, "{comma}{first}")?;
        } else {
            write!(f, "{comma}{first}-{last}")?;
        }
        comma = ",";
    }
    Ok(())
}
