//! Whether what the kernel shows is what was asked for, however it writes it.

use std::fmt;

use bench_profile::cpus::CpuSet;

/// What a file should show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meets {
    /// One of these words.
    Words(&'static [&'static str]),
    /// This mask, in however many words.
    Mask(CpuSet),
    /// A mask of these CPUs or some of them.
    Within(CpuSet),
    /// This list.
    List(CpuSet),
}

impl Meets {
    /// Whether `text` is that.
    pub fn met(&self, text: &str) -> bool {
        match self {
            Meets::Words(words) => words.contains(&text.trim()),
            Meets::Mask(cpus) => CpuSet::from_mask(text).is_ok_and(|mask| mask == *cpus),
            Meets::Within(cpus) => CpuSet::from_mask(text).is_ok_and(|mask| mask.is_subset(cpus)),
            Meets::List(cpus) => text.parse::<CpuSet>().is_ok_and(|list| list == *cpus),
        }
    }
}

impl fmt::Display for Meets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Meets::Words(words) => f.write_str(&words.join(" or ")),
            Meets::Mask(cpus) => write!(f, "{}", cpus.to_mask()),
            Meets::Within(cpus) => write!(f, "within {}", cpus.to_mask()),
            Meets::List(cpus) => write!(f, "{cpus}"),
        }
    }
}
