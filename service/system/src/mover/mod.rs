//! Moves of process trees between units, all of them by systemd's own calls.
//!
//! [`Mover::route`] puts a tree into a transient scope in a class's slice; [`Mover::recover`] brings it
//! back. What systemd reports is not believed until it is read back from `/proc` and the control
//! groups. Nothing here writes to a control group, and nothing waits without a deadline ([`call`]).

mod attach;
mod call;
mod hold;
mod judge;
mod live;
mod place;
mod plan;
mod record;
mod recover;
mod route;
mod scope;
mod settings;
mod source;
mod ties;
mod tree;
mod why;

use std::sync::atomic::{AtomicBool, Ordering};

use workload_guard_dbus::systemd1::ManagerProxy;
use zbus::Connection;
use zbus::proxy::CacheProperties;
use zvariant::{Fd, Value};

use crate::cgroup::CgroupFs;
use crate::clock;
use crate::facts::Guard;
use crate::proc::ProcFs;
use crate::watch::{ManagerEvents, Signals};

pub use judge::Found;
pub use live::{Emptied, LiveScope};
pub use record::{Arrival, Left, MAX_LEFT, Route, Source, SourceKind};
pub use settings::{SavedSettings, Setting, SettingValue};
pub use ties::Ties;

/// Moves process trees, over one connection to the user's systemd.
#[derive(Debug)]
pub struct Mover {
    conn: Connection,
    manager: ManagerProxy<'static>,
    signals: Signals,
    proc: ProcFs,
    cgroups: CgroupFs,
    /// The manager's own control group.
    root: String,
    guard: Guard,
    systemd: String,
    pidfds: AtomicBool,
}

impl Mover {
    /// Asks the manager what it is, and subscribes to its signals.
    ///
    /// When the bus ends the connection, the [`ManagerEvents`] end: make a new one.
    pub async fn new(conn: &Connection, proc: ProcFs, cgroups: CgroupFs) -> zbus::Result<Mover> {
        let manager = ManagerProxy::builder(conn)
            .cache_properties(CacheProperties::No)
            .build()
            .await?;
        let signals = Signals::listen(conn).await?;
        let root = call::call("ControlGroup", manager.control_group()).await?;
        let mover = Mover {
            guard: Guard {
                pid: std::process::id(),
                uid: nix::unistd::getuid().as_raw(),
                manager_cgroup: root.clone(),
            },
            root,
            systemd: call::call("Version", manager.version()).await?,
            pidfds: AtomicBool::new(takes_pidfds(&manager).await?),
            conn: conn.clone(),
            manager,
            signals,
            proc,
            cgroups,
        };
        Ok(mover)
    }

    /// What this systemd can do beyond what every supported one can: `pidfds`, when it makes a scope
    /// around a pidfd (systemd 255), so that no other process of the same PID can be moved.
    pub fn capabilities(&self) -> Vec<String> {
        self.pidfds()
            .then(|| "pidfds".to_owned())
            .into_iter()
            .collect()
    }

    /// The manager's version, such as `257.13-1~deb13u1`.
    pub fn systemd_version(&self) -> &str {
        &self.systemd
    }

    /// The manager's own control group, relative to the cgroup mount: what is outside cannot be put back.
    pub fn manager_cgroup(&self) -> &str {
        &self.root
    }

    /// Events of the manager from now on.
    pub fn events(&self) -> ManagerEvents {
        self.signals.events()
    }

    fn pidfds(&self) -> bool {
        self.pidfds.load(Ordering::Relaxed)
    }

    /// The manager refused them after all: it was replaced by an older one.
    fn forget_pidfds(&self) {
        self.pidfds.store(false, Ordering::Relaxed);
    }
}

/// Learns from a refusal whether the manager knows `PIDFDs`. The list is empty, which no version takes,
/// so that no scope is made either way; versions differ by the error's name alone.
async fn takes_pidfds(manager: &ManagerProxy<'_>) -> zbus::Result<bool> {
    let properties = [("PIDFDs", Value::from(Vec::<Fd<'_>>::new()))];
    let probe = manager.start_transient_unit("lwg-probe.scope", "fail", &properties, &[]);
    match call::call("StartTransientUnit", probe).await {
        Ok(_) => Ok(true),
        Err(error) => match call::meaning(&error) {
            call::Meaning::Unsupported => Ok(false),
            call::Meaning::Away => Err(error),
            _ => Ok(true),
        },
    }
}

/// Now, in microseconds of `CLOCK_MONOTONIC`, which systemd's `…TimestampMonotonic` properties count in.
fn monotonic_usec() -> u64 {
    u64::try_from(clock::awake().as_micros()).unwrap_or(u64::MAX)
}
