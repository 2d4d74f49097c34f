//! The user's systemd: the guard's service, scopes of our own, and the two slices' quotas. What is changed is
//! remembered, and put back.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, bail, ensure};
use futures_lite::future::block_on;
use guard_system::bus::{self, Connection};
use guard_system::cgroup::CgroupFs;
use guard_system::slices::{self, SliceQuota};
use workload_guard_dbus::names::GUARD_UNIT;

/// The class of heavy work's.
pub const HEAVY: &str = "heavy-workload.slice";
/// The protected side's.
pub const PROTECTED: &str = "protected-workload.slice";

/// The session, with what was changed in it.
pub struct Session {
    bus: Connection,
    cgroups: CgroupFs,
    runtime: PathBuf,
    /// Whether the guard ran.
    guard_ran: bool,
    /// What each slice had, in microseconds of CPU per second.
    quotas: Vec<(&'static str, Option<u64>)>,
    drop_in: Option<PathBuf>,
}

impl Session {
    /// Connects; changes nothing yet.
    pub fn open() -> anyhow::Result<Session> {
        let bus = block_on(bus::connect())
            .context("the user bus cannot be reached; experiments run in a login session")?;
        let loaded = show(GUARD_UNIT, "LoadState")?;
        ensure!(
            loaded == "loaded",
            "{GUARD_UNIT} is {loaded}: install the product first (cargo xtask install)"
        );
        let state = show(GUARD_UNIT, "ActiveState")?;
        let runtime = std::env::var_os("XDG_RUNTIME_DIR")
            .context("XDG_RUNTIME_DIR is not set; experiments run in a login session")?;
        Ok(Session {
            bus,
            cgroups: CgroupFs::detect()?,
            runtime: PathBuf::from(runtime),
            guard_ran: matches!(
                state.as_str(),
                "active" | "activating" | "reloading" | "refreshing"
            ),
            quotas: Vec::new(),
            drop_in: None,
        })
    }

    /// Whether the guard ran when this began.
    pub fn guard_ran(&self) -> bool {
        self.guard_ran
    }

    /// The slice's quota now.
    pub fn quota(&self, slice: &str) -> anyhow::Result<SliceQuota> {
        block_on(slices::quota(&self.bus, &self.cgroups, slice))
            .with_context(|| format!("the quota of {slice} cannot be read"))
    }

    /// Sets a slice's quota for this login, and answers what the kernel then enforces.
    pub fn set_quota(&mut self, slice: &'static str, percent: u32) -> anyhow::Result<f64> {
        if !self.quotas.iter().any(|(changed, _)| *changed == slice) {
            let before = self.quota(slice)?.usec_per_sec;
            self.quotas.push((slice, before));
        }
        systemctl(&["start", slice])?;
        let found = block_on(slices::set_quota(
            &self.bus,
            &self.cgroups,
            slice,
            Some(u64::from(percent) * 10_000),
        ))?;
        found
            .kernel
            .and_then(|max| max.quota_percent())
            .with_context(|| {
                format!("the kernel enforces no quota on {slice}: `workload-guard status` says why")
            })
    }

    /// The guard's service: runs, or does not.
    pub fn guard(&self, runs: bool) -> anyhow::Result<()> {
        let verb = if runs { "start" } else { "stop" };
        systemctl(&[verb, GUARD_UNIT])
    }

    /// Has the guard's service start with this variable until it is put back; the user's files stay as
    /// they are. A later EnvironmentFile= wins over an earlier one.
    pub fn variable(&mut self, name: &str, value: &str) -> anyhow::Result<()> {
        let folder = self.runtime.join(format!("systemd/user/{GUARD_UNIT}.d"));
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let drop_in = folder.join("zz-experiment.conf");
        let variables = folder.join("zz-experiment.env");
        self.drop_in = Some(drop_in.clone());
        fs::write(&variables, format!("{name}={value}\n"))?;
        let text = format!("[Service]\nEnvironmentFile={}\n", variables.display());
        fs::write(&drop_in, text)?;
        systemctl(&["daemon-reload"])
    }

    /// `cpu.stat` of a slice.
    pub fn cpu_stat(&self, slice: &str) -> anyhow::Result<CpuStat> {
        let group = self
            .quota(slice)?
            .cgroup
            .with_context(|| format!("{slice} has no control group"))?;
        let file = self.cgroups.file(&group, "cpu.stat")?;
        let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        CpuStat::parse(&text).with_context(|| file.display().to_string())
    }

    /// Puts everything back. Goes on after a failure; the error has all of them.
    pub fn put_back(&mut self) -> anyhow::Result<()> {
        let mut failed = Vec::new();
        let mut done = |what: String, outcome: anyhow::Result<()>| match outcome {
            Ok(()) => eprintln!("put back: {what}"),
            Err(error) => failed.push(format!("{what}: {error:#}")),
        };
        if let Some(drop_in) = self.drop_in.take() {
            done(drop_in.display().to_string(), forget(&drop_in));
        }
        // While the guard runs it would take a changed quota for somebody else's word.
        done(format!("{GUARD_UNIT} stopped"), self.guard(false));
        for (slice, before) in self.quotas.drain(..) {
            let outcome = block_on(slices::set_quota(&self.bus, &self.cgroups, slice, before));
            let outcome = outcome.map_err(anyhow::Error::from).and_then(|found| {
                ensure!(found.usec_per_sec == before, "systemd says otherwise");
                Ok(())
            });
            done(format!("{slice} has {}", percent(before)), outcome);
        }
        if self.guard_ran {
            done(format!("{GUARD_UNIT} started"), self.guard(true));
        }
        ensure!(
            failed.is_empty(),
            "not put back: {}; a quota that was set ends when you log out",
            failed.join("; ")
        );
        Ok(())
    }
}

/// Removes what [`Session::variable`] wrote.
fn forget(drop_in: &Path) -> anyhow::Result<()> {
    for path in [drop_in.to_owned(), drop_in.with_extension("env")] {
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(error).with_context(|| path.display().to_string());
            }
            _ => {}
        }
    }
    // Somebody else's drop-ins keep the folder.
    let _ = drop_in.parent().map(fs::remove_dir);
    systemctl(&["daemon-reload"])
}

/// A quota in words.
pub fn percent(usec_per_sec: Option<u64>) -> String {
    usec_per_sec.map_or("no quota".to_owned(), |usec| {
        format!("a quota of {} %", usec as f64 / 1e4)
    })
}

/// Counters of a control group with all below it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuStat {
    /// Microseconds of CPU.
    pub usage_usec: u64,
    /// Periods in which it ran,
    pub periods: u64,
    /// those in which it was throttled,
    pub throttled: u64,
    /// and for how many microseconds, over its CPUs.
    pub throttled_usec: u64,
}

impl CpuStat {
    fn parse(text: &str) -> anyhow::Result<CpuStat> {
        let field = |name: &str| -> anyhow::Result<u64> {
            let found = text
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            Ok(found
                .with_context(|| format!("no {name}"))?
                .trim()
                .parse()?)
        };
        Ok(CpuStat {
            usage_usec: field("usage_usec")?,
            periods: field("nr_periods")?,
            throttled: field("nr_throttled")?,
            throttled_usec: field("throttled_usec")?,
        })
    }

    /// What was added since.
    pub fn since(self, before: CpuStat) -> CpuStat {
        CpuStat {
            usage_usec: self.usage_usec.saturating_sub(before.usage_usec),
            periods: self.periods.saturating_sub(before.periods),
            throttled: self.throttled.saturating_sub(before.throttled),
            throttled_usec: self.throttled_usec.saturating_sub(before.throttled_usec),
        }
    }
}

/// `some avg10` and `avg60` of the host's CPU pressure in percent; none where the kernel has none.
pub fn pressure() -> Option<(f64, f64)> {
    let text = fs::read_to_string("/proc/pressure/cpu").ok()?;
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let field = |name: &str| {
        some.split(' ')
            .find_map(|field| field.strip_prefix(name)?.strip_prefix('='))?
            .parse()
            .ok()
    };
    Some((field("avg10")?, field("avg60")?))
}

/// A process of ours in a scope of its own. Dropping it ends all that is in the scope.
pub struct Job {
    child: Child,
    unit: String,
}

impl Job {
    /// Starts `experiment work WORDS` of this program in a slice.
    pub fn start(slice: &str, words: &[&str]) -> anyhow::Result<Job> {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let unit = format!(
            "guard-experiment-{}-{}.scope",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let child = Command::new("systemd-run")
            .args(["--user", "--scope", "--quiet", "--collect"])
            .arg(format!("--slice={slice}"))
            .arg(format!("--unit={unit}"))
            .arg("--description=an experiment of Linux Workload Guard")
            .arg("--")
            .arg(std::env::current_exe()?)
            .args(["experiment", "work"])
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("systemd-run cannot be started")?;
        Ok(Job { child, unit })
    }

    /// Its process: systemd-run becomes the program.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its first line, once it has ended; none while it runs.
    pub fn ended(&mut self) -> anyhow::Result<Option<String>> {
        let Some(status) = self.child.try_wait()? else {
            return Ok(None);
        };
        ensure!(status.success(), "{} ended with {status}", self.unit);
        let mut line = String::new();
        if let Some(stdout) = self.child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        Ok(Some(line.trim().to_owned()))
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            // The guard may have moved some of it to a scope of its own, which has to go as well.
            let _ = self.child.kill();
            let _ = Command::new("systemctl")
                .args(["--user", "kill", "--signal=KILL", &self.unit])
                .stdin(Stdio::null())
                .stderr(Stdio::null())
                .status();
            let _ = self.child.wait();
        }
    }
}

fn systemctl(args: &[&str]) -> anyhow::Result<()> {
    run("systemctl", args).map(drop)
}

fn show(unit: &str, property: &str) -> anyhow::Result<String> {
    run(
        "systemctl",
        &["show", unit, "--property", property, "--value"],
    )
}

fn run(program: &str, args: &[&str]) -> anyhow::Result<String> {
    let output = Command::new(program)
        .arg("--user")
        .args(args)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("{program} cannot be started"))?;
    if !output.status.success() {
        bail!(
            "{program} --user {} failed: {}",
            args.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_the_kernel_are_read_and_a_group_without_the_controller_has_none() {
        let text = "usage_usec 700\nuser_usec 600\nsystem_usec 100\nnr_periods 10\nnr_throttled 4\nthrottled_usec 300\n";
        let stat = CpuStat::parse(text).expect("counters");
        let later = CpuStat {
            usage_usec: 1000,
            periods: 12,
            throttled: 6,
            throttled_usec: 350,
        };
        assert_eq!(
            later.since(stat),
            CpuStat {
                usage_usec: 300,
                periods: 2,
                throttled: 2,
                throttled_usec: 50
            }
        );
        let without = CpuStat::parse("usage_usec 700\n").expect_err("no controller");
        assert!(without.to_string().contains("nr_periods"));
    }
}
