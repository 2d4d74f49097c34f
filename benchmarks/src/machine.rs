//! Where something was measured.

use std::fs;
use std::process::Command;

/// The machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// When, in UTC.
    pub date: String,
    /// The model of its CPU.
    pub cpu: String,
    /// CPUs that this process may use.
    pub cpus: usize,
    /// Release of its kernel.
    pub kernel: String,
    /// How this program was built.
    pub build: &'static str,
    /// Of one minute: what else the machine did.
    pub load: String,
}

impl Machine {
    /// This one, now.
    pub fn read() -> anyhow::Result<Machine> {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo")?;
        let model = cpuinfo
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        let date = Command::new("date")
            .args(["-u", "+%Y-%m-%dT%H:%MZ"])
            .output()?;
        let load = fs::read_to_string("/proc/loadavg")?;
        Ok(Machine {
            load: load.split(' ').next().unwrap_or_default().to_owned(),
            date: String::from_utf8_lossy(&date.stdout).trim().to_owned(),
            cpu: model.map_or("unknown", |(_, name)| name).to_owned(),
            cpus: std::thread::available_parallelism()?.get(),
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease")?
                .trim()
                .to_owned(),
            build: if cfg!(debug_assertions) {
                "debug"
            } else {
                "release"
            },
        })
    }

    /// One line about it.
    pub fn headline(&self) -> String {
        let Machine {
            date,
            cpu,
            cpus,
            kernel,
            build,
            load,
        } = self;
        format!("{date}, {cpu}, {cpus} CPUs, Linux {kernel}, {build} build, load average {load}")
    }
}
