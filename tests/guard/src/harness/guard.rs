//! The product in the session: install it, set it, call it.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use workload_guard_dbus::names::GUARD_UNIT;
use workload_guard_dbus::types::{HoldRow, WorkloadRow};
use workload_guard_dbus::{Guard1Proxy, GuardError, Workload1Proxy};
use zbus::block_on;
use zvariant::{OwnedObjectPath, OwnedValue, Value};

use super::command;
use super::home;
use super::load;
use super::outcome::step;
use super::proc;
use super::session::{PAYLOAD, Session, payload};
use super::signals::{Recovered, Routed, Signals};
use super::units;
use super::wait::{self, PATIENCE};

/// The slice that is watched by default.
pub const PROTECTED: &str = "protected-workload.slice";
/// The slice of class `heavy`.
pub const HEAVY: &str = "heavy-workload.slice";

/// Settings as the variables of `workload-guard.env`.
pub type Settings<'a> = &'a [(&'a str, &'a str)];

/// Settings that decide in a second what the defaults decide in ten. The thresholds are low so that a load counts
/// as busy also where several guests share two CPUs.
pub const FAST: Settings<'static> = &[
    ("WORKLOAD_GUARD_SAMPLE_SEC", "0.25"),
    ("WORKLOAD_GUARD_CPU_THRESHOLD", "5"),
    ("WORKLOAD_GUARD_SUSTAINED_SAMPLES", "3"),
    ("WORKLOAD_GUARD_RECOVERY_CPU_THRESHOLD", "3"),
    ("WORKLOAD_GUARD_RECOVERY_SAMPLES", "2"),
    ("WORKLOAD_GUARD_RECOVERY_DWELL_SEC", "0.5"),
    ("WORKLOAD_GUARD_COOLDOWN_SEC", "1"),
];

/// The settings of the original's measurements, and no wait between two routes of one process. What is hot may be
/// below the recovery threshold, on a crowded machine: see [`KEPT`].
pub const ACCELERATED: Settings<'static> = &[
    ("WORKLOAD_GUARD_SAMPLE_SEC", "0.25"),
    ("WORKLOAD_GUARD_CPU_THRESHOLD", "10"),
    ("WORKLOAD_GUARD_SUSTAINED_SAMPLES", "3"),
    ("WORKLOAD_GUARD_RECOVERY_CPU_THRESHOLD", "35"),
    ("WORKLOAD_GUARD_RECOVERY_SAMPLES", "2"),
    ("WORKLOAD_GUARD_RECOVERY_DWELL_SEC", "1"),
    ("WORKLOAD_GUARD_COOLDOWN_SEC", "0"),
];

/// On top of [`ACCELERATED`]: what is hot stays routed also where it gets a tenth of a CPU.
pub const KEPT: Settings<'static> = &[("WORKLOAD_GUARD_RECOVERY_CPU_THRESHOLD", "5")];

/// [`FAST`] sampling in which nothing is ever detected by its CPU use: for what is placed by hand.
pub const QUIET: Settings<'static> = &[
    ("WORKLOAD_GUARD_SAMPLE_SEC", "0.25"),
    ("WORKLOAD_GUARD_SUSTAINED_SAMPLES", "1000"),
    ("WORKLOAD_GUARD_RECOVERY_SAMPLES", "1000"),
];

/// The guard of the session.
#[derive(Debug)]
pub struct Guard {
    session: Session,
    proxy: Guard1Proxy<'static>,
    /// Its signals since before it was started.
    pub signals: Signals,
}

/// Writes settings where the unit reads them. The product reads them at its next start.
pub fn write_settings(settings: Settings<'_>) -> Result<()> {
    let text: String = settings
        .iter()
        .map(|(name, value)| format!("{name}={value}\n"))
        .collect();
    home::write(&home::config_dir().join("workload-guard.env"), &text)
}

/// Installs the product as a user does.
pub fn install_product() -> Result<String> {
    let xtask = payload("xtask");
    command::ok(&[
        xtask.as_os_str(),
        "install".as_ref(),
        "--dist".as_ref(),
        PAYLOAD.as_ref(),
    ])
}

/// Removes the product as a user does.
pub fn uninstall_product(options: &[&str]) -> Result<String> {
    let xtask = payload("xtask");
    let mut argv = vec![xtask.as_os_str(), "uninstall".as_ref()];
    argv.extend(options.iter().map(OsStr::new));
    command::ok(&argv)
}

impl Guard {
    /// Installs the product with these settings, starts it and waits until it answers.
    pub fn install(session: &Session, settings: Settings<'_>) -> Result<Guard> {
        write_settings(settings)?;
        install_product()?;
        let guard = Guard::connect(session)?;
        guard.start()?;
        let reasons = guard.reasons()?;
        ensure!(
            !reasons
                .iter()
                .any(|reason| reason.contains("WORKLOAD_GUARD_")),
            "the scenario's settings are not in force: {reasons:?}"
        );
        Ok(guard)
    }

    /// The guard, running or not.
    pub fn connect(session: &Session) -> Result<Guard> {
        let signals = Signals::listen(session)?;
        let proxy = block_on(
            Guard1Proxy::builder(session.bus())
                .cache_properties(zbus::proxy::CacheProperties::No)
                .build(),
        )?;
        Ok(Guard {
            session: session.clone(),
            proxy,
            signals,
        })
    }

    /// Starts it and waits until it answers.
    pub fn start(&self) -> Result<()> {
        units::systemctl(&["start", GUARD_UNIT]).with_context(|| {
            let log = super::journal::of_guard(&[]).unwrap_or_default();
            let lines: Vec<_> = log
                .iter()
                .filter_map(|entry| entry.get("MESSAGE").cloned())
                .collect();
            format!("the guard does not start; it said: {lines:#?}")
        })?;
        self.answers()
    }

    /// Waits until it answers.
    pub fn answers(&self) -> Result<()> {
        wait::until("the guard answers", PATIENCE, || Ok(Some(self.state()?))).map(|_| ())
    }

    /// The proxy, for what has no shorter word here.
    pub fn proxy(&self) -> &Guard1Proxy<'static> {
        &self.proxy
    }

    /// Whether new programs are told by the kernel, checked against `ExecEvents`.
    pub fn has_exec_events(&self) -> Result<bool> {
        let active = block_on(self.proxy.exec_events())? == "active";
        let capable = block_on(self.proxy.capabilities())?
            .iter()
            .any(|name| name == "exec-events");
        ensure!(active == capable, "ExecEvents and Capabilities disagree");
        Ok(active)
    }

    /// Main PID of its unit.
    pub fn pid(&self) -> Result<u32> {
        let pid = units::property(GUARD_UNIT, "MainPID")?.parse()?;
        ensure!(pid != 0, "the guard does not run");
        Ok(pid)
    }

    /// `State`.
    pub fn state(&self) -> Result<String> {
        Ok(block_on(self.proxy.state())?)
    }

    /// `StateReasons`.
    pub fn reasons(&self) -> Result<Vec<String>> {
        Ok(block_on(self.proxy.state_reasons())?)
    }

    /// `ListWorkloads`.
    pub fn workloads(&self) -> Result<Vec<WorkloadRow>> {
        Ok(block_on(self.proxy.list_workloads())?)
    }

    /// `ListHolds`.
    pub fn holds(&self) -> Result<Vec<HoldRow>> {
        Ok(block_on(self.proxy.list_holds())?)
    }

    /// The workload whose root is `pid`.
    pub fn workload_of(&self, pid: u32) -> Result<Option<WorkloadRow>> {
        Ok(self.workloads()?.into_iter().find(|row| row.pid == pid))
    }

    /// The object of a workload.
    pub fn workload(&self, path: &OwnedObjectPath) -> Result<Workload1Proxy<'static>> {
        Ok(block_on(
            Workload1Proxy::builder(self.session.bus())
                .path(path.clone())?
                .cache_properties(zbus::proxy::CacheProperties::No)
                .build(),
        )?)
    }

    /// `RoutedTotal`.
    pub fn routed_total(&self) -> Result<u64> {
        Ok(block_on(self.proxy.routed_total())?)
    }

    /// `Attach` with a reason.
    pub fn attach(
        &self,
        pids: &[u32],
        class: &str,
        reason: &str,
    ) -> Result<OwnedObjectPath, GuardError> {
        block_on(
            self.proxy
                .attach(pids.to_vec(), class.to_owned(), options(reason)),
        )
    }

    /// `AttachFds` with a reason.
    pub fn attach_fds(
        &self,
        pidfds: Vec<zvariant::OwnedFd>,
        class: &str,
        reason: &str,
    ) -> Result<OwnedObjectPath, GuardError> {
        block_on(
            self.proxy
                .attach_fds(pidfds, class.to_owned(), options(reason)),
        )
    }

    /// `Route`.
    pub fn route(&self, pid: u32, class: &str) -> Result<OwnedObjectPath, GuardError> {
        block_on(self.proxy.route(pid, class.to_owned()))
    }

    /// `Release`: where the processes are now.
    pub fn release(&self, pid: u32) -> Result<String, GuardError> {
        block_on(self.proxy.release(pid))
    }

    /// `Reload`.
    pub fn reload(&self) -> Result<(), GuardError> {
        block_on(self.proxy.reload())
    }

    /// Makes a load busy and waits until it is routed and is where the signal says.
    pub fn routed_by_load(&self, pid: u32) -> Result<Routed> {
        let mark = self.signals.mark();
        load::busy(pid)?;
        let (_, routed) = self.signals.routed_after(mark, pid, PATIENCE)?;
        let now = proc::cgroup_of(pid)?;
        ensure!(
            now == routed.destination && now.contains(HEAVY),
            "{pid} is in {now}, and this was told: {routed:?}"
        );
        step(format_args!("{pid} routed, {}: {now}", routed.reason));
        Ok(routed)
    }

    /// Makes a load idle and waits until it is brought back and is where the signal says.
    pub fn recovered_when_idle(&self, pid: u32) -> Result<Recovered> {
        let mark = self.signals.mark();
        load::idle(pid)?;
        let (_, recovered) = self.signals.recovered_after(mark, pid, PATIENCE)?;
        let now = proc::cgroup_of(pid)?;
        ensure!(
            now == recovered.destination && !now.contains(HEAVY),
            "{pid} is in {now}, and this was told: {recovered:?}"
        );
        step(format_args!("{pid} back: {now} {}", recovered.note));
        Ok(recovered)
    }

    /// Kills it with SIGKILL, waits until another one answers, and tells how long that took.
    pub fn kill_and_wait_for_the_next(&self) -> Result<Duration> {
        let old = self.pid()?;
        let begin = Instant::now();
        units::systemctl(&["kill", "--signal=KILL", GUARD_UNIT])?;
        wait::until_true("systemd starts the guard again", PATIENCE, || {
            let now = self.pid()?;
            ensure!(now != old, "still {old}");
            Ok(true)
        })?;
        self.answers()?;
        Ok(begin.elapsed())
    }
}

/// Options of a call, with a reason unless it is empty.
pub fn options(reason: &str) -> HashMap<String, OwnedValue> {
    let mut options = HashMap::new();
    if !reason.is_empty() {
        let value = Value::from(reason.to_owned())
            .try_into()
            .expect("a string holds no descriptor");
        options.insert("reason".to_owned(), value);
    }
    options
}
