//! `org.workloadguard.History1` and `Profile1` against their golden XML, and each proxy against its server.

mod support;

use std::collections::HashMap;
use std::sync::Arc;

use support::{assert_documented, compare, introspect};
use workload_guard_dbus::dict::Dict;
use workload_guard_dbus::history1::{FindingRow, ShareRow};
use workload_guard_dbus::{
    GuardError, History1, History1Backend, History1Proxy, Profile1, Profile1Backend, Profile1Proxy,
    names,
};
use zbus::names::OwnedUniqueName;
use zvariant::OwnedValue;

struct Fake;

impl History1Backend for Fake {
    async fn summary(&self, window: u32) -> Result<Dict, GuardError> {
        match window {
            0 => Err(GuardError::LimitExceeded("no window".into())),
            _ => Ok(HashMap::from([(
                "snapshots".to_owned(),
                OwnedValue::from(u64::from(window)),
            )])),
        }
    }
    async fn snapshots(&self, since: u64, max: u32) -> Result<Vec<Dict>, GuardError> {
        let row = |ts| HashMap::from([("ts".to_owned(), OwnedValue::from(ts))]);
        Ok((since..since + u64::from(max)).map(row).collect())
    }
    async fn diagnose(
        &self,
    ) -> Result<(String, String, Vec<ShareRow>, Vec<FindingRow>), GuardError> {
        let share = ShareRow {
            who: "heavy".into(),
            cpu: 12.5,
            cpu_while_high: -1.0,
        };
        let finding = FindingRow {
            id: "sched-ext".into(),
            severity: "problem".into(),
            title: "t".into(),
            evidence: vec!["e".into()],
            next: "n".into(),
        };
        Ok((
            "unknown".into(),
            "no reading".into(),
            vec![share],
            vec![finding],
        ))
    }
    async fn metrics(&self) -> Result<String, GuardError> {
        Ok("# EOF\n".into())
    }
}

impl Profile1Backend for Fake {
    async fn sample(
        &self,
        _caller: Option<OwnedUniqueName>,
        duration: f64,
        samples: u32,
    ) -> Result<Dict, GuardError> {
        match samples {
            0 => Err(GuardError::LimitExceeded("no samples".into())),
            _ => Ok(HashMap::from([(
                "duration_sec".to_owned(),
                OwnedValue::from(duration),
            )])),
        }
    }
}

fn connect() -> (zbus::Connection, zbus::Connection) {
    support::connect(|server| {
        server
            .serve_at(names::GUARD_PATH, History1(Arc::new(Fake)))?
            .serve_at(names::GUARD_PATH, Profile1(Arc::new(Fake)))
    })
}

#[test]
fn history1_serves_its_golden_xml() {
    let (_server, client) = connect();
    let xml = introspect(&client, names::GUARD_PATH, "org.workloadguard.History1");
    assert_documented("History1", &xml);
    compare("org.workloadguard.History1", &xml);
}

#[test]
fn profile1_serves_its_golden_xml() {
    let (_server, client) = connect();
    let xml = introspect(&client, names::GUARD_PATH, "org.workloadguard.Profile1");
    assert_documented("Profile1", &xml);
    compare("org.workloadguard.Profile1", &xml);
}

#[test]
fn the_profiles_proxy_and_server_speak_the_same() {
    let (_server, client) = connect();
    async_io::block_on(async {
        let profile = Profile1Proxy::new(&client).await.expect("a proxy");
        let found = profile.sample(2.5, 100).await.expect("a profile");
        assert_eq!(f64::try_from(&found["duration_sec"]), Ok(2.5));
        assert_eq!(
            profile.sample(2.5, 0).await,
            Err(GuardError::LimitExceeded("no samples".into()))
        );
    });
}

#[test]
fn the_proxy_and_the_server_speak_the_same() {
    let (_server, client) = connect();
    async_io::block_on(async {
        let history = History1Proxy::new(&client).await.expect("a proxy");
        assert_eq!(
            history.summary(0).await,
            Err(GuardError::LimitExceeded("no window".into()))
        );
        let summary = history.summary(3600).await.expect("a summary");
        assert_eq!(u64::try_from(&summary["snapshots"]), Ok(3600));
        assert_eq!(history.snapshots(7, 2).await.expect("rows").len(), 2);
        let (pressure, _, shares, findings) = history.diagnose().await.expect("a diagnosis");
        assert_eq!((pressure.as_str(), shares[0].cpu), ("unknown", 12.5));
        assert_eq!(findings[0].evidence, ["e"]);
        assert_eq!(history.metrics().await.as_deref(), Ok("# EOF\n"));
    });
}
