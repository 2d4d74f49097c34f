//! A guard that keeps what it was asked.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use workload_guard_dbus::names::{GUARD_NAME, GUARD_PATH, workload_path};
use workload_guard_dbus::types::{
    ClassRow, Explained, HoldRow, SettingRow, StatisticsRow, WatchedRow, WorkloadRow,
};
use workload_guard_dbus::{Guard1, Guard1Backend, GuardError, History1};
use zbus::Connection;
use zbus::names::OwnedUniqueName;
use zvariant::{OwnedFd, OwnedObjectPath, OwnedValue};

use super::Bus;
use super::history::FakeHistory;

/// What every request is answered with.
pub type Refusal = Option<GuardError>;

struct Backend {
    calls: Mutex<Vec<String>>,
    refusal: Refusal,
}

impl Backend {
    fn note(&self, call: String) -> Result<OwnedObjectPath, GuardError> {
        self.calls.lock().unwrap().push(call);
        match &self.refusal {
            Some(error) => Err(error.clone()),
            None => Ok(workload_path("lwg-heavy-placed-1-2.scope")),
        }
    }
}

fn reason(options: &HashMap<String, OwnedValue>) -> String {
    options
        .get("reason")
        .map_or("-".into(), |value| String::try_from(value.clone()).unwrap())
}

fn terms(options: &HashMap<String, OwnedValue>) -> String {
    let seconds = options.get("duration").map_or("-".into(), |value| {
        u32::try_from(value).unwrap().to_string()
    });
    let lease = options.contains_key("lease");
    format!("{} {seconds} {lease}", reason(options))
}

impl Guard1Backend for Backend {
    async fn attach(
        &self,
        caller: Option<OwnedUniqueName>,
        pids: Vec<u32>,
        class: String,
        options: HashMap<String, OwnedValue>,
    ) -> Result<OwnedObjectPath, GuardError> {
        assert!(caller.is_some(), "a bus names its callers");
        let lease = match terms(&options) {
            terms if terms.ends_with("- false") => String::new(),
            terms => format!(" leased: {terms}"),
        };
        self.note(format!(
            "attach {pids:?} {class} {}{lease}",
            reason(&options)
        ))
    }

    async fn attach_fds(
        &self,
        _: Option<OwnedUniqueName>,
        pidfds: Vec<OwnedFd>,
        class: String,
        options: HashMap<String, OwnedValue>,
    ) -> Result<OwnedObjectPath, GuardError> {
        self.note(format!(
            "attach-fds {} {class} {}",
            pidfds.len(),
            reason(&options)
        ))
    }

    async fn route(
        &self,
        _: Option<OwnedUniqueName>,
        pid: u32,
        class: String,
    ) -> Result<OwnedObjectPath, GuardError> {
        self.note(format!("route {pid} {class}"))
    }

    async fn release(&self, _: Option<OwnedUniqueName>, pid: u32) -> Result<String, GuardError> {
        self.note(format!("release {pid}"))
            .map(|_| "/user.slice/a.scope".into())
    }

    async fn watch(
        &self,
        _: Option<OwnedUniqueName>,
        units: Vec<String>,
        add: bool,
    ) -> Result<Vec<String>, GuardError> {
        let word = if add { "watch" } else { "unwatch" };
        self.note(format!("{word} {}", units.join(" ")))?;
        Ok(units)
    }

    async fn explain(&self, _: Option<OwnedUniqueName>, pid: u32) -> Result<Explained, GuardError> {
        self.note(format!("explain {pid}"))?;
        let text = |text: &str| OwnedValue::from(zvariant::Str::from(text.to_owned()));
        let details = HashMap::from([
            ("pid".to_owned(), pid.into()),
            ("command".to_owned(), text("make -j8")),
            (
                "control_group".to_owned(),
                text("/user.slice/user-1000.slice/user@1000.service/app.slice/a.scope"),
            ),
            ("cpu".to_owned(), 92.0.into()),
            ("threshold".to_owned(), 70.0.into()),
            ("samples".to_owned(), 2u32.into()),
            ("samples_needed".to_owned(), 4u32.into()),
        ]);
        let sentences = vec![
            "No rule names its command.".to_owned(),
            "It is hot.".to_owned(),
        ];
        Ok(("counting".to_owned(), sentences, details))
    }

    async fn reload(&self) -> Result<(), GuardError> {
        self.note("reload".into()).map(drop)
    }

    async fn pause(
        &self,
        _: Option<OwnedUniqueName>,
        options: HashMap<String, OwnedValue>,
    ) -> Result<u64, GuardError> {
        self.note(format!("pause {}", terms(&options))).map(|_| 5)
    }

    async fn resume(&self) -> Result<u32, GuardError> {
        self.note("resume".into()).map(|_| 2)
    }

    async fn exempt(
        &self,
        _: Option<OwnedUniqueName>,
        pid: u32,
        options: HashMap<String, OwnedValue>,
    ) -> Result<u64, GuardError> {
        self.note(format!("exempt {pid} {}", terms(&options)))
            .map(|_| 6)
    }

    async fn pin(
        &self,
        _: Option<OwnedUniqueName>,
        pid: u32,
        options: HashMap<String, OwnedValue>,
    ) -> Result<u64, GuardError> {
        self.note(format!("pin {pid} {}", terms(&options)))
            .map(|_| 7)
    }

    async fn release_hold(&self, hold: u64) -> Result<(), GuardError> {
        self.note(format!("release-hold {hold}")).map(drop)
    }

    fn holds(&self) -> Vec<HoldRow> {
        vec![HoldRow {
            id: 5,
            kind: "pause".into(),
            pid: 0,
            subject: String::new(),
            unit: String::new(),
            owner: String::new(),
            owner_pid: 77,
            owner_command: "workload-guard pause".into(),
            reason: "a meeting".into(),
            since: 1_000_000,
            until: 0,
        }]
    }

    fn workloads(&self) -> Vec<WorkloadRow> {
        vec![WorkloadRow {
            path: workload_path("lwg-heavy-routed-42-99.scope"),
            pid: 42,
            class: "heavy".into(),
            reason: "sustained-cpu".into(),
            cpu: 99.5,
            source: "/user.slice/user-1000.slice/user@1000.service/app.slice/t.scope".into(),
            control_group: "/user.slice/user-1000.slice/user@1000.service/heavy.slice/x.scope"
                .into(),
            command: "xz -T1".into(),
            since: 1_000_000,
            throttled: 250_000,
        }]
    }

    fn settings(&self) -> Vec<SettingRow> {
        vec![SettingRow {
            key: "routing.cpu_threshold".into(),
            value: "70.0".into(),
            origin: "default".into(),
        }]
    }

    fn statistics(&self) -> Vec<StatisticsRow> {
        vec![StatisticsRow {
            command: "git:gc".into(),
            samples: 12,
            mean: 4.25,
            deviation: 1.5,
            score: 1.0,
        }]
    }

    fn state(&self) -> String {
        "degraded".into()
    }

    fn state_reasons(&self) -> Vec<String> {
        vec!["no cpu controller".into()]
    }

    fn capabilities(&self) -> Vec<String> {
        vec!["pidfds".into()]
    }

    fn exec_events(&self) -> String {
        "active".into()
    }

    fn exec_events_lost(&self) -> u64 {
        0
    }

    fn watched(&self) -> Vec<WatchedRow> {
        vec![WatchedRow {
            unit: "protected-workload.slice".into(),
            processes: 0,
        }]
    }

    fn classes(&self) -> Vec<ClassRow> {
        vec![ClassRow {
            name: "heavy".into(),
            slice: "heavy-workload.slice".into(),
            quota: 400,
            weight: 100,
            memory_high: 0,
            io_weight: 0,
            tasks_max: 0,
            from_settings: vec![],
        }]
    }

    fn routed_total(&self) -> u64 {
        7
    }

    fn recovered_total(&self) -> u64 {
        6
    }

    fn failed_total(&self) -> u64 {
        0
    }
}

/// A guard on the bus, until dropped.
pub struct FakeGuard {
    backend: Arc<Backend>,
    _connection: Connection,
}

impl FakeGuard {
    /// One that answers every request with `refusal`, or does it.
    pub fn on(bus: &Bus, refusal: Refusal) -> FakeGuard {
        let backend = Arc::new(Backend {
            calls: Mutex::default(),
            refusal,
        });
        let connection = async_io::block_on(async {
            bus.builder()
                .serve_at(GUARD_PATH, Guard1(backend.clone()))?
                .serve_at(GUARD_PATH, History1(Arc::new(FakeHistory::new())))?
                .name(GUARD_NAME)?
                .build()
                .await
        });
        FakeGuard {
            backend,
            _connection: connection.unwrap(),
        }
    }

    /// What it was asked to do.
    pub fn calls(&self) -> Vec<String> {
        self.backend.calls.lock().unwrap().clone()
    }
}
