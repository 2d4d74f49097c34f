//! What the machine tells the history.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use guard_insight::diagnose::{Competing, Environment};
use guard_insight::snapshot::{Consumer, SCHEMA_VERSION, Snapshot, TOP};
use guard_insight::throttling::Throttled;
use guard_policy::quota::Signal;
use guard_system::cgroup::{CgroupFs, Layout};
use guard_system::host::{self, Census, Group};
use guard_system::proc::ProcFs;
use guard_system::telemetry::{Groups, Sensor};

/// The control groups that are looked at.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// The classes' slices.
    pub classes: Vec<Group>,
    /// The same for the quota's signals.
    pub groups: Groups,
}

/// What the loop alone knows.
#[derive(Clone, Debug, Default)]
pub struct Moment {
    /// Where to look.
    pub places: Places,
    /// What it counted.
    pub counters: Counters,
    /// Workloads whose budgets held them up further than was told before.
    pub throttled: Vec<Throttled>,
}

/// What the loop counted since it started.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// Workloads that are routed now.
    pub routed: u64,
    /// Routes.
    pub route_events: u64,
    /// Recoveries.
    pub recovery_events: u64,
    /// Changes of the quota.
    pub quota_changes: u64,
    /// The quota, in percent of one logical CPU.
    pub quota: Option<f64>,
}

/// What a question brings along.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// systemd's version, as it tells it.
    pub systemd: String,
    /// Whether the user manager has the cpu controller.
    pub cpu_controller: bool,
    /// The control group of a workload, if there is one.
    pub workload: Option<String>,
}

/// A class's slice, counted since it was made. None for what the kernel does not tell.
#[derive(Clone, Debug, Default)]
pub struct ClassCpu {
    /// The class.
    pub class: String,
    /// CPU time, in seconds.
    pub usage_sec: Option<f64>,
    /// Time that its quota held it up, in seconds.
    pub throttled_sec: Option<f64>,
    /// Periods with work.
    pub periods: Option<f64>,
    /// Those in which the quota held it up.
    pub throttled_periods: Option<f64>,
}

/// What is measured for a monitoring system.
#[derive(Clone, Debug, Default)]
pub struct Measures {
    /// The classes.
    pub classes: Vec<ClassCpu>,
    /// CPU pressure, 0 to 1.
    pub psi: Option<f64>,
    /// CPU time of this process so far, in seconds.
    pub cpu_sec: Option<f64>,
    /// Memory that it holds, in bytes.
    pub resident: Option<u64>,
}

/// Looks, and remembers what a growth is counted from.
pub struct Looker {
    proc: ProcFs,
    cgroups: Option<CgroupFs>,
    census: Option<Census>,
    sensor: Option<Sensor>,
    places: Places,
    started: Instant,
}

impl Looker {
    /// At this machine.
    pub fn new() -> Looker {
        let proc = ProcFs::default();
        let cgroups = CgroupFs::detect().ok();
        Looker {
            census: cgroups
                .clone()
                .map(|cgroups| Census::new(proc.clone(), cgroups)),
            sensor: cgroups
                .clone()
                .map(|cgroups| Sensor::new(proc.root(), cgroups)),
            proc,
            cgroups,
            places: Places::default(),
            started: Instant::now(),
        }
    }

    /// Counts from now on.
    pub fn begin(&mut self, places: &Places) {
        self.places = places.clone();
        let now = self.started.elapsed();
        if let Some(census) = &mut self.census {
            census.look(&places.classes, 0, now);
        }
        if let Some(sensor) = &mut self.sensor {
            sensor.look(&places.groups, now);
        }
    }

    /// A snapshot; none without control groups, or where nothing was counted before.
    pub fn snapshot(&mut self, moment: &Moment, ts: u64) -> Option<Snapshot> {
        self.places = moment.places.clone();
        let now = self.started.elapsed();
        let sensed = self.sensor.as_mut()?.look(&moment.places.groups, now);
        let seen = self
            .census
            .as_mut()?
            .look(&moment.places.classes, TOP, now)?;
        let Counters {
            routed,
            route_events,
            recovery_events,
            quota_changes,
            quota,
        } = moment.counters;
        Some(Snapshot {
            schema_version: SCHEMA_VERSION,
            ts,
            routed,
            route_events,
            recovery_events,
            quota_changes,
            quota,
            cpu_psi_some_avg10: part(&sensed.telemetry.pressure),
            router_runqueue_delay_ms: sensed.telemetry.delay_ms.value(),
            heavy_cpu_pct: seen.classes.get("heavy").copied(),
            heavy_throttle_ratio: part(&sensed.telemetry.throttled),
            guarded_cpu_pct: Some(seen.guarded()),
            unmanaged_cpu_pct: seen.busy.map(|busy| (busy - seen.guarded()).max(0.0)),
            top_cpu: seen.top.into_iter().map(consumer).collect(),
        })
    }

    /// The machine as it is now.
    pub fn environment(&self, machine: &Machine) -> Environment {
        let stat_local =
            |cgroup: &String| Some(self.cgroups.as_ref()?.throttled_usec(cgroup).is_some());
        Environment {
            psi: self.pressure(),
            unified: self
                .cgroups
                .as_ref()
                .is_some_and(|cgroups| cgroups.layout() == Layout::Unified),
            cpu_controller: Some(machine.cpu_controller),
            systemd: leading_number(&machine.systemd),
            kernel: host::kernel_release(self.proc.root()),
            sched_ext: guard_system::sched_ext::loaded(Path::new("/sys")),
            competing: host::competing(&self.proc)
                .into_iter()
                .map(|tool| Competing {
                    program: tool.program,
                    pid: tool.pid,
                })
                .collect(),
            // Without the controller there is no such file on any kernel.
            stat_local: machine
                .workload
                .as_ref()
                .filter(|_| machine.cpu_controller)
                .and_then(stat_local),
            uid: nix::unistd::Uid::effective().as_raw(),
        }
    }

    /// For a monitoring system.
    pub fn measure(&self) -> Measures {
        let own = std::process::id();
        let statm = std::fs::read_to_string(self.own_file("statm")).ok();
        let pages =
            statm.and_then(|text| text.split_ascii_whitespace().nth(1)?.parse::<u64>().ok());
        let stat = self.proc.stat(own).ok().flatten();
        Measures {
            classes: self
                .places
                .classes
                .iter()
                .map(|group| self.class(group))
                .collect(),
            psi: self.pressure(),
            cpu_sec: stat.map(|stat| stat.cpu_usec() as f64 / 1e6),
            resident: pages.map(|pages| pages * page_size()),
        }
    }

    fn class(&self, group: &Group) -> ClassCpu {
        let stat = self
            .cgroups
            .as_ref()
            .and_then(|cgroups| cgroups.cpu_stat(&group.cgroup));
        let of = |key: &str| stat.as_ref()?.get(key).map(|count| *count as f64);
        ClassCpu {
            class: group.class.clone(),
            usage_sec: of("usage_usec").map(|usec| usec / 1e6),
            throttled_sec: of("throttled_usec").map(|usec| usec / 1e6),
            periods: of("nr_periods"),
            throttled_periods: of("nr_throttled"),
        }
    }

    fn pressure(&self) -> Option<f64> {
        pressure(self.proc.root(), self.cgroups.as_ref()?)
    }

    fn own_file(&self, name: &str) -> PathBuf {
        self.proc.root().join("self").join(name)
    }
}

/// CPU pressure now, 0 to 1: a reading of its own, since what a kept [`Sensor`] tells is counted from its last look.
pub fn pressure(proc: &Path, cgroups: &CgroupFs) -> Option<f64> {
    let look = Sensor::new(proc, cgroups.clone()).look(&Groups::default(), Duration::ZERO);
    part(&look.telemetry.pressure)
}

/// From 0 to 1, or unknown.
fn part(signal: &Signal) -> Option<f64> {
    signal.value().filter(|value| (0.0..=1.0).contains(value))
}

fn consumer(row: host::Consumer) -> Consumer {
    // The schema has three classes: those with a budget of their own are heavy to it.
    let class = match row.class.as_deref() {
        Some("protected") => "protected",
        Some(_) => "heavy",
        None => "unmanaged",
    };
    Consumer {
        pid: row.pid,
        command: row.command,
        cpu_pct: row.cpu,
        class: class.to_owned(),
        cgroup: row.cgroup,
    }
}

/// `257` of `257.9-1~deb13u1`.
fn leading_number(text: &str) -> Option<u32> {
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text[..digits].parse().ok()
}

fn page_size() -> u64 {
    nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE)
        .ok()
        .flatten()
        .and_then(|size| u64::try_from(size).ok())
        .unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_its_leading_number() {
        assert_eq!(leading_number("257.9-1~deb13u1"), Some(257));
        assert_eq!(leading_number("252"), Some(252));
        assert_eq!(leading_number("v259"), None);
    }

    #[test]
    fn a_class_of_ones_own_is_heavy_to_the_schema() {
        let of = |class: Option<&str>| {
            consumer(host::Consumer {
                pid: 1,
                command: String::new(),
                cpu: 1.0,
                class: class.map(str::to_owned),
                cgroup: String::new(),
            })
            .class
        };
        assert_eq!(
            [of(Some("protected")), of(Some("browser")), of(None)],
            ["protected", "heavy", "unmanaged"]
        );
    }
}
