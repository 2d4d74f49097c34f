//! A user manager that keeps what it was asked and ends every job at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use workload_guard_dbus::systemd1::SYSTEMD_NAME;
use zbus::Connection;
use zbus::object_server::SignalEmitter;
use zvariant::{ObjectPath, OwnedObjectPath, OwnedValue, Value};

use super::Bus;

const MANAGER: &str = "/org/freedesktop/systemd1";
const GUARD: &str = "/org/freedesktop/systemd1/unit/guard";
const SLICE: &str = "/org/freedesktop/systemd1/unit/slice";
const JOB: &str = "/org/freedesktop/systemd1/job/1";

type Calls = Arc<Mutex<Vec<String>>>;

struct Manager {
    calls: Calls,
    job_result: &'static str,
}

#[zbus::interface(name = "org.freedesktop.systemd1.Manager")]
impl Manager {
    async fn load_unit(&self, name: String) -> OwnedObjectPath {
        let path = if name.ends_with(".slice") {
            SLICE
        } else {
            GUARD
        };
        ObjectPath::try_from(path).unwrap().into()
    }

    async fn start_unit(
        &self,
        name: String,
        mode: String,
        #[zbus(signal_emitter)] emitter: SignalEmitter<'_>,
    ) -> zbus::fdo::Result<OwnedObjectPath> {
        self.calls
            .lock()
            .unwrap()
            .push(format!("start {name} {mode}"));
        self.job(&emitter, &name).await
    }

    async fn start_transient_unit(
        &self,
        name: String,
        mode: String,
        properties: Vec<(String, OwnedValue)>,
        _aux: Vec<(String, Vec<(String, OwnedValue)>)>,
        #[zbus(signal_emitter)] emitter: SignalEmitter<'_>,
    ) -> zbus::fdo::Result<OwnedObjectPath> {
        let properties: HashMap<String, String> = properties
            .into_iter()
            .map(|(key, value)| (key, Value::from(value).to_string()))
            .collect();
        let kept = [
            "Slice",
            "Delegate",
            "CollectMode",
            "SendSIGHUP",
            "CPUWeight",
            "PIDs",
            "Description",
        ]
        .map(|key| format!("{key}={}", properties.get(key).map_or("-", String::as_str)));
        self.calls
            .lock()
            .unwrap()
            .push(format!("scope {name} {mode} {}", kept.join(" ")));
        self.job(&emitter, &name).await
    }

    #[zbus(signal)]
    async fn job_removed(
        emitter: &SignalEmitter<'_>,
        id: u32,
        job: OwnedObjectPath,
        unit: &str,
        result: &str,
    ) -> zbus::Result<()>;
}

impl Manager {
    /// The signal goes out before the reply, as systemd may do it.
    async fn job(
        &self,
        emitter: &SignalEmitter<'_>,
        unit: &str,
    ) -> zbus::fdo::Result<OwnedObjectPath> {
        let job: OwnedObjectPath = ObjectPath::try_from(JOB).unwrap().into();
        Manager::job_removed(emitter, 1, job.clone(), unit, self.job_result).await?;
        Ok(job)
    }
}

struct Unit {
    load_state: &'static str,
    fragment: &'static str,
}

#[zbus::interface(name = "org.freedesktop.systemd1.Unit")]
impl Unit {
    #[zbus(property)]
    fn load_state(&self) -> &str {
        self.load_state
    }

    #[zbus(property)]
    fn fragment_path(&self) -> &str {
        self.fragment
    }
}

/// A user manager on the bus, until dropped.
pub struct FakeSystemd {
    calls: Calls,
    _connection: Connection,
}

impl FakeSystemd {
    /// One that finds the guard's unit in this state, and whose jobs end so.
    pub fn on(bus: &Bus, guard: &'static str, job_result: &'static str) -> FakeSystemd {
        let calls = Calls::default();
        let manager = Manager {
            calls: calls.clone(),
            job_result,
        };
        let unit = |load_state| Unit {
            load_state,
            fragment: "",
        };
        let connection = async_io::block_on(async {
            bus.builder()
                .serve_at(MANAGER, manager)?
                .serve_at(GUARD, unit(guard))?
                .serve_at(SLICE, unit("loaded"))?
                .name(SYSTEMD_NAME)?
                .build()
                .await
        });
        FakeSystemd {
            calls,
            _connection: connection.unwrap(),
        }
    }

    /// What it was asked to do.
    pub fn calls(&self) -> Vec<String> {
        self.calls.lock().unwrap().clone()
    }
}
