//! `/proc`, as far as scenarios look at it.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

/// The control group of a process, relative to the cgroup mount.
pub fn cgroup_of(pid: u32) -> Result<String> {
    let path = format!("/proc/{pid}/cgroup");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    text.lines()
        .find_map(|line| line.strip_prefix("0::"))
        .map(str::to_owned)
        .with_context(|| format!("{path} has no line of the unified hierarchy: {text:?}"))
}

/// The fields of `/proc/PID/stat` after the program's name: state is 0, ppid 1, starttime 19 (proc_pid_stat(5)).
fn stat(pid: u32) -> Result<Vec<String>> {
    let path = format!("/proc/{pid}/stat");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    // The name may hold spaces and parentheses; the last one ends it.
    let (_, rest) = text
        .rsplit_once(')')
        .with_context(|| format!("{path} is not as expected: {text:?}"))?;
    Ok(rest.split_whitespace().map(str::to_owned).collect())
}

/// State letter, such as `S` or `Z`.
pub fn state(pid: u32) -> Result<char> {
    stat(pid)?
        .first()
        .and_then(|field| field.chars().next())
        .with_context(|| format!("process {pid} has no state"))
}

/// The parent's PID.
pub fn parent(pid: u32) -> Result<u32> {
    Ok(stat(pid)?
        .get(1)
        .with_context(|| format!("process {pid} has no parent"))?
        .parse()?)
}

/// CPU time that all of its threads used, user and system.
pub fn cpu_time(pid: u32) -> Result<Duration> {
    let fields = stat(pid)?;
    let ticks: u64 = fields
        .get(11..13)
        .with_context(|| format!("process {pid} has no times"))?
        .iter()
        .map(|field| field.parse::<u64>().unwrap_or_default())
        .sum();
    // USER_HZ is 100 on every architecture that we run on.
    Ok(Duration::from_millis(ticks * 10))
}

/// Whether it exists and is not a zombie.
pub fn alive(pid: u32) -> bool {
    state(pid).is_ok_and(|state| state != 'Z' && state != 'X')
}

/// Every PID there is.
pub fn all() -> Result<Vec<u32>> {
    let mut pids = Vec::new();
    for entry in fs::read_dir("/proc")? {
        if let Some(pid) = entry?
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        {
            pids.push(pid);
        }
    }
    Ok(pids)
}

/// The children of a process, in no order.
pub fn children(pid: u32) -> Result<Vec<u32>> {
    Ok(all()?
        .into_iter()
        .filter(|child| parent(*child).is_ok_and(|ppid| ppid == pid))
        .collect())
}

/// A process and all its descendants, itself first.
pub fn tree(pid: u32) -> Result<Vec<u32>> {
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(children(parent)?);
        next += 1;
    }
    Ok(found)
}

/// The user manager of this process's user: the process in its `init.scope`.
pub fn user_manager() -> Result<u32> {
    all()?
        .into_iter()
        .find(|pid| {
            cgroup_of(*pid).is_ok_and(|cgroup| {
                cgroup.ends_with("/user@1000.service/init.scope")
                    && comm(*pid).is_ok_and(|comm| comm == "systemd")
            })
        })
        .context("no user manager runs")
}

/// The program's name in `/proc/PID/comm`.
pub fn comm(pid: u32) -> Result<String> {
    Ok(fs::read_to_string(format!("/proc/{pid}/comm"))?
        .trim()
        .to_owned())
}

/// Resident memory in kB (`VmRSS` of `/proc/PID/status`).
pub fn resident_kb(pid: u32) -> Result<u64> {
    let path = format!("/proc/{pid}/status");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    text.lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.trim().strip_suffix("kB"))
        .with_context(|| format!("{path} has no VmRSS"))?
        .trim()
        .parse()
        .with_context(|| format!("VmRSS of {path}"))
}

/// CPUs that this process may run on.
pub fn cpus() -> Result<usize> {
    let count = std::thread::available_parallelism()?.get();
    ensure!(count > 0, "no CPU");
    Ok(count)
}
