//! The cgroup file system. Scenarios read it; only what plays a foreign program writes it.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// The directory of a control group.
pub fn dir(cgroup: &str) -> PathBuf {
    PathBuf::from("/sys/fs/cgroup").join(cgroup.trim_start_matches('/'))
}

/// A file of a control group, trimmed.
pub fn read(cgroup: &str, file: &str) -> Result<String> {
    let path = dir(cgroup).join(file);
    fs::read_to_string(&path)
        .map(|text| text.trim().to_owned())
        .with_context(|| format!("cannot read {}", path.display()))
}

/// A value of a flat keyed file, such as `usage_usec` of `cpu.stat`.
pub fn keyed(cgroup: &str, file: &str, key: &str) -> Result<u64> {
    let text = read(cgroup, file)?;
    text.lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))
        .with_context(|| format!("{file} of {cgroup} has no {key}"))?
        .trim()
        .parse()
        .with_context(|| format!("{key} in {file} of {cgroup}"))
}

/// CPU time that a control group has used.
pub fn usage(cgroup: &str) -> Result<Duration> {
    keyed(cgroup, "cpu.stat", "usage_usec").map(Duration::from_micros)
}

/// `cpu.max` as percent of one CPU; `None` for no limit.
pub fn quota_percent(cgroup: &str) -> Result<Option<f64>> {
    let text = read(cgroup, "cpu.max")?;
    let (quota, period) = text
        .split_once(' ')
        .with_context(|| format!("cpu.max of {cgroup} is {text:?}"))?;
    if quota == "max" {
        return Ok(None);
    }
    Ok(Some(quota.parse::<f64>()? / period.parse::<f64>()? * 100.0))
}

/// Whether budgets are enforced for the user manager of `uid`: its cgroup has the cpu controller.
pub fn user_manager_has_cpu(uid: u32) -> Result<bool> {
    let controllers = read(
        &format!("/user.slice/user-{uid}.slice/user@{uid}.service"),
        "cgroup.controllers",
    )?;
    Ok(controllers.split_whitespace().any(|name| name == "cpu"))
}

/// Measures the CPU use of a control group over a stretch of the monotonic clock.
#[derive(Debug)]
pub struct Meter {
    cgroup: String,
    usage: Duration,
    since: Instant,
}

impl Meter {
    /// Begins to measure.
    pub fn start(cgroup: &str) -> Result<Meter> {
        Ok(Meter {
            cgroup: cgroup.to_owned(),
            usage: usage(cgroup)?,
            since: Instant::now(),
        })
    }

    /// CPU time since the start, and the time that passed.
    pub fn read(&self) -> Result<(Duration, Duration)> {
        let usage = usage(&self.cgroup)?;
        Ok((usage.saturating_sub(self.usage), self.since.elapsed()))
    }

    /// Percent of one CPU since the start.
    pub fn percent(&self) -> Result<f64> {
        let (used, passed) = self.read()?;
        Ok(used.as_secs_f64() / passed.as_secs_f64() * 100.0)
    }
}
