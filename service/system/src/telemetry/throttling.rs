//! `cpu.stat` of a slice.

use std::fs;

use crate::cgroup::CgroupFs;

/// Counters of a group with all below it, which only grow while the group lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CpuStat {
    /// CPU time used, in microseconds.
    pub usage_usec: u64,
    /// Periods of its quota in which it ran.
    pub periods: u64,
    /// Those of them in which it was throttled.
    pub throttled: u64,
}

/// Reads it; an error in words.
pub(super) fn read(cgroups: &CgroupFs, group: Option<&str>) -> Result<CpuStat, String> {
    let group = group.ok_or("systemd gives the slice no control group")?;
    let file = cgroups
        .file(group, "cpu.stat")
        .map_err(|error| error.to_string())?;
    let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let field = |name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
            .and_then(|value| value.trim().parse().ok())
            .ok_or_else(|| format!("{} has no {name}", file.display()))
    };
    Ok(CpuStat {
        usage_usec: field("usage_usec")?,
        // Only there where the cpu controller is enabled for the group.
        periods: field("nr_periods")
            .map_err(|why| format!("{why}: the cpu controller is not enabled there"))?,
        throttled: field("nr_throttled")?,
    })
}
