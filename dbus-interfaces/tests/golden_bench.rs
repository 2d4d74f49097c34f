//! As golden.rs, for the interface on the system bus.

mod support;

use std::collections::HashMap;
use std::sync::Arc;

use support::{assert_documented, compare, introspect};
use workload_guard_dbus::bench_prep1::Call;
use workload_guard_dbus::bench_types::{CheckRow, EntryRow, KnobRow};
use workload_guard_dbus::{BenchError, BenchPrep1, BenchPrep1Backend, BenchPrep1Proxy, names};
use zvariant::OwnedValue;

struct Fake;

impl BenchPrep1Backend for Fake {
    async fn apply(
        &self,
        call: Call,
        profile: String,
        _options: HashMap<String, OwnedValue>,
    ) -> Result<Vec<KnobRow>, BenchError> {
        Ok(vec![KnobRow {
            id: profile,
            place: call.member,
            requested: call.interactive.to_string(),
            effective: String::new(),
            original: String::new(),
            verdict: "ok".into(),
            reason: String::new(),
        }])
    }
    async fn restore(&self, _call: Call) -> Result<Vec<KnobRow>, BenchError> {
        Err(BenchError::Busy("another change".into()))
    }
    async fn check(
        &self,
        _call: Call,
        expected: String,
    ) -> Result<(bool, Vec<CheckRow>), BenchError> {
        Err(BenchError::WrongProfile(expected))
    }
    async fn preview_boot_entries(
        &self,
        _call: Call,
    ) -> Result<(String, String, Vec<String>), BenchError> {
        Ok(("grub".into(), String::new(), Vec::new()))
    }
    async fn regenerate_boot_entries(
        &self,
        call: Call,
    ) -> Result<(Vec<EntryRow>, Vec<String>), BenchError> {
        Err(BenchError::UnsupportedLoader(call.member))
    }
    async fn set_next_boot(&self, call: Call, profile: String) -> Result<String, BenchError> {
        Ok(format!("{} {profile}", call.member))
    }
    fn boot_loader(&self) -> String {
        "grub".into()
    }
    fn next_profile(&self) -> String {
        String::new()
    }
    fn booted_profile(&self) -> String {
        "multi-core".into()
    }
    fn applied(&self) -> String {
        String::new()
    }
}

fn connect() -> (zbus::Connection, zbus::Connection) {
    support::connect(|server| server.serve_at(names::BENCH_PATH, BenchPrep1(Arc::new(Fake))))
}

#[test]
fn bench_prep1_serves_its_golden_xml() {
    let (_server, client) = connect();
    let xml = introspect(&client, names::BENCH_PATH, names::BENCH_NAME);
    assert_documented("BenchPrep1", &xml);
    compare(names::BENCH_NAME, &xml);
}

#[test]
fn the_backend_hears_which_member_was_called_and_whether_a_person_may_be_asked() {
    let (_server, client) = connect();
    async_io::block_on(async {
        let bench = BenchPrep1Proxy::new(&client).await.expect("a proxy");
        let rows = bench.apply("unlimited".into(), HashMap::new()).await;
        let row = &rows.expect("rows")[0];
        assert_eq!(
            (row.id.as_str(), row.place.as_str(), row.requested.as_str()),
            ("unlimited", "Apply", "false")
        );
        let arguments = ("unlimited", HashMap::<&str, zvariant::Value<'_>>::new());
        let rows: Vec<KnobRow> = bench
            .inner()
            .call_with_flags(
                "Apply",
                zbus::proxy::MethodFlags::AllowInteractiveAuth.into(),
                &arguments,
            )
            .await
            .expect("it answers")
            .expect("a reply was asked for");
        assert_eq!(rows[0].requested, "true");
        assert_eq!(
            bench.restore().await,
            Err(BenchError::Busy("another change".into()))
        );
        assert_eq!(
            bench.check("turbo".into()).await,
            Err(BenchError::WrongProfile("turbo".into()))
        );
        assert_eq!(
            bench.set_next_boot("unlimited".into()).await.as_deref(),
            Ok("SetNextBoot unlimited")
        );
        assert_eq!(
            bench.regenerate_boot_entries().await,
            Err(BenchError::UnsupportedLoader(
                "RegenerateBootEntries".into()
            ))
        );
        assert_eq!(bench.booted_profile().await.as_deref(), Ok("multi-core"));
    });
}
