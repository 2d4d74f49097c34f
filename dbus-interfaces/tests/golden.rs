//! The introspection XML is the contract: what the objects serve is compared with the files in `xml/`.
//!
//! After a deliberate change: `UPDATE_GOLDEN=1 cargo test -p workload-guard-dbus --test golden`.

mod support;

use std::collections::HashMap;
use std::sync::Arc;

use support::{assert_documented, compare, introspect};
use workload_guard_dbus::types::{
    ClassRow, Explained, HoldRow, SettingRow, SignalRow, State, StatisticsRow, Verdict, WatchedRow,
    WorkloadRow,
};
use workload_guard_dbus::{
    Guard1, Guard1Backend, Guard1Proxy, GuardError, Quota1, Quota1Backend, Quota1Proxy, Workload1,
    Workload1Backend, names,
};
use zbus::names::OwnedUniqueName;
use zvariant::{OwnedFd, OwnedObjectPath, OwnedValue};

struct Fake;

impl Guard1Backend for Fake {
    async fn attach(
        &self,
        _caller: Option<OwnedUniqueName>,
        pids: Vec<u32>,
        class: String,
        _options: HashMap<String, OwnedValue>,
    ) -> Result<OwnedObjectPath, GuardError> {
        match pids.first() {
            Some(_) if class == "heavy" => Ok(names::workload_path("lwg-heavy-placed-1-2.scope")),
            Some(_) => Err(GuardError::UnknownClass(format!(
                "there is no class {class}"
            ))),
            None => Err(GuardError::NoSuchProcess("no process was named".into())),
        }
    }
    async fn attach_fds(
        &self,
        caller: Option<OwnedUniqueName>,
        _pidfds: Vec<OwnedFd>,
        class: String,
        options: HashMap<String, OwnedValue>,
    ) -> Result<OwnedObjectPath, GuardError> {
        self.attach(caller, vec![1], class, options).await
    }
    async fn route(
        &self,
        caller: Option<OwnedUniqueName>,
        pid: u32,
        class: String,
    ) -> Result<OwnedObjectPath, GuardError> {
        self.attach(caller, vec![pid], class, HashMap::new()).await
    }
    async fn release(
        &self,
        _caller: Option<OwnedUniqueName>,
        _pid: u32,
    ) -> Result<String, GuardError> {
        Ok("/a".into())
    }
    async fn watch(
        &self,
        _caller: Option<OwnedUniqueName>,
        units: Vec<String>,
        _add: bool,
    ) -> Result<Vec<String>, GuardError> {
        Ok(units)
    }
    async fn explain(
        &self,
        _caller: Option<OwnedUniqueName>,
        pid: u32,
    ) -> Result<Explained, GuardError> {
        let details = HashMap::from([("pid".to_owned(), pid.into())]);
        let sentences = vec!["It is in nothing that is watched.".to_owned()];
        Ok((Verdict::NotWatched.to_string(), sentences, details))
    }
    async fn reload(&self) -> Result<(), GuardError> {
        Ok(())
    }
    async fn pause(
        &self,
        _caller: Option<OwnedUniqueName>,
        _options: HashMap<String, OwnedValue>,
    ) -> Result<u64, GuardError> {
        Ok(5)
    }
    async fn resume(&self) -> Result<u32, GuardError> {
        Ok(1)
    }
    async fn exempt(
        &self,
        _caller: Option<OwnedUniqueName>,
        pid: u32,
        _options: HashMap<String, OwnedValue>,
    ) -> Result<u64, GuardError> {
        Err(GuardError::NoSuchProcess(format!("process {pid}")))
    }
    async fn pin(
        &self,
        _caller: Option<OwnedUniqueName>,
        _pid: u32,
        _options: HashMap<String, OwnedValue>,
    ) -> Result<u64, GuardError> {
        Ok(6)
    }
    async fn release_hold(&self, hold: u64) -> Result<(), GuardError> {
        Err(GuardError::NoSuchHold(format!("no hold {hold}")))
    }
    fn holds(&self) -> Vec<HoldRow> {
        Vec::new()
    }
    fn workloads(&self) -> Vec<WorkloadRow> {
        Vec::new()
    }
    fn settings(&self) -> Vec<SettingRow> {
        Vec::new()
    }
    fn statistics(&self) -> Vec<StatisticsRow> {
        Vec::new()
    }
    fn state(&self) -> String {
        State::Normal.to_string()
    }
    fn state_reasons(&self) -> Vec<String> {
        Vec::new()
    }
    fn capabilities(&self) -> Vec<String> {
        Vec::new()
    }
    fn exec_events(&self) -> String {
        "active".into()
    }
    fn exec_events_lost(&self) -> u64 {
        0
    }
    fn watched(&self) -> Vec<WatchedRow> {
        Vec::new()
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
        0
    }
    fn failed_total(&self) -> u64 {
        0
    }
}

impl Workload1Backend for Fake {
    async fn release(&self) -> Result<String, GuardError> {
        Ok("/a".into())
    }
    fn pids(&self) -> Vec<u32> {
        vec![1]
    }
    fn root_pid(&self) -> u32 {
        1
    }
    fn class(&self) -> String {
        "heavy".into()
    }
    fn reason(&self) -> String {
        "placed".into()
    }
    fn reason_text(&self) -> String {
        String::new()
    }
    fn cpu(&self) -> f64 {
        0.0
    }
    fn unit(&self) -> String {
        "lwg-heavy-placed-1-2.scope".into()
    }
    fn source_control_group(&self) -> String {
        "/a".into()
    }
    fn control_group(&self) -> String {
        "/b".into()
    }
    fn command(&self) -> String {
        "make".into()
    }
    fn since(&self) -> u64 {
        0
    }
}

impl Quota1Backend for Fake {
    async fn set_quota(
        &self,
        _caller: Option<OwnedUniqueName>,
        percent: u32,
        _options: HashMap<String, OwnedValue>,
    ) -> Result<f64, GuardError> {
        match percent {
            100..=400 => Ok(f64::from(percent)),
            _ => Err(GuardError::LimitExceeded("100 to 400".into())),
        }
    }
    async fn reset_quota(&self, _caller: Option<OwnedUniqueName>) -> Result<f64, GuardError> {
        Ok(400.0)
    }
    fn slice(&self) -> String {
        "heavy-workload.slice".into()
    }
    fn quota(&self) -> f64 {
        250.0
    }
    fn enforced(&self) -> f64 {
        250.0
    }
    fn minimum(&self) -> u32 {
        100
    }
    fn maximum(&self) -> u32 {
        400
    }
    fn dynamic(&self) -> bool {
        true
    }
    fn policy(&self) -> String {
        "step".into()
    }
    fn control(&self) -> String {
        "auto".into()
    }
    fn signals(&self) -> Vec<SignalRow> {
        vec![SignalRow {
            name: "pressure".into(),
            state: "read".into(),
            value: 0.25,
            age: 1.5,
            note: String::new(),
        }]
    }
    fn last_decision(&self) -> String {
        String::new()
    }
    fn last_change(&self) -> String {
        String::new()
    }
    fn changes_total(&self) -> u64 {
        2
    }
}

const WORKLOAD: &str = "/org/workloadguard/Guard1/workload/x";

/// A server and a client on a socket pair: no bus is needed.
fn connect() -> (zbus::Connection, zbus::Connection) {
    let backend = Arc::new(Fake);
    support::connect(|server| {
        server
            .serve_at(names::GUARD_PATH, Guard1(backend.clone()))?
            .serve_at(names::GUARD_PATH, Quota1(backend.clone()))?
            .serve_at(WORKLOAD, Workload1(backend))
    })
}

#[test]
fn guard1_serves_its_golden_xml() {
    let (_server, client) = connect();
    let xml = introspect(&client, names::GUARD_PATH, "org.workloadguard.Guard1");
    assert_documented("Guard1", &xml);
    compare("org.workloadguard.Guard1", &xml);
}

#[test]
fn quota1_serves_its_golden_xml() {
    let (_server, client) = connect();
    let xml = introspect(&client, names::GUARD_PATH, "org.workloadguard.Quota1");
    assert_documented("Quota1", &xml);
    compare("org.workloadguard.Quota1", &xml);
}

#[test]
fn quota1_is_served_at_the_guards_object() {
    let (_server, client) = connect();
    async_io::block_on(async {
        let quota = Quota1Proxy::new(&client).await.expect("a proxy");
        assert_eq!(quota.set_quota(250, HashMap::new()).await, Ok(250.0));
        let beyond = quota.set_quota(401, HashMap::new()).await;
        assert!(
            matches!(beyond, Err(GuardError::LimitExceeded(_))),
            "{beyond:?}"
        );
        assert_eq!(quota.reset_quota().await, Ok(400.0));
        assert_eq!(quota.quota().await, Ok(250.0));
        assert_eq!(quota.signals().await.expect("rows")[0].age, 1.5);
    });
}

#[test]
fn workload1_serves_its_golden_xml() {
    let (_server, client) = connect();
    let xml = introspect(&client, WORKLOAD, "org.workloadguard.Workload1");
    assert_documented("Workload1", &xml);
    compare("org.workloadguard.Workload1", &xml);
}

#[test]
fn the_proxy_and_the_server_speak_the_same() {
    let (_server, client) = connect();
    async_io::block_on(async {
        let guard = Guard1Proxy::new(&client).await.expect("a proxy");
        assert_eq!(
            guard.attach(vec![0], "heavy".into(), HashMap::new()).await,
            Ok(names::workload_path("lwg-heavy-placed-1-2.scope"))
        );
        assert_eq!(
            guard.attach(vec![0], "huge".into(), HashMap::new()).await,
            Err(GuardError::UnknownClass("there is no class huge".into()))
        );
        assert_eq!(guard.pause(HashMap::new()).await, Ok(5));
        assert_eq!(
            guard.release_hold(3).await,
            Err(GuardError::NoSuchHold("no hold 3".into()))
        );
        assert_eq!(guard.state().await.as_deref(), Ok("normal"));
        assert_eq!(guard.classes().await.expect("classes")[0].quota, 400);
        assert_eq!(guard.routed_total().await, Ok(7));
    });
}
