//! A manager of our own at the other end of a socket.

use std::os::unix::net::UnixStream;

use futures::FutureExt;
use futures_lite::future::block_on;
use zbus::connection::Builder;
use zbus::object_server::SignalEmitter;
use zbus::{Guid, interface};

use super::*;

const UNIT: &str = "lwg-heavy-routed-1-2.scope";
const PATH: &str = "/org/freedesktop/systemd1";

struct Systemd;

#[interface(name = "org.freedesktop.systemd1.Manager")]
impl Systemd {
    fn subscribe(&self) {}

    #[zbus(signal)]
    async fn job_removed(
        emitter: &SignalEmitter<'_>,
        id: u32,
        job: OwnedObjectPath,
        unit: &str,
        result: &str,
    ) -> zbus::Result<()>;

    #[zbus(signal)]
    async fn unit_removed(
        emitter: &SignalEmitter<'_>,
        id: &str,
        unit: OwnedObjectPath,
    ) -> zbus::Result<()>;

    #[zbus(signal)]
    async fn reloading(emitter: &SignalEmitter<'_>, active: bool) -> zbus::Result<()>;
}

struct Rig {
    server: zbus::Connection,
    signals: Signals,
    _client: zbus::Connection,
}

impl Rig {
    async fn new() -> Rig {
        let (one, other) = UnixStream::pair().expect("a socket pair");
        let server = Builder::async_io_unix_stream(one)
            .server(Guid::generate())
            .expect("a server")
            .p2p()
            .serve_at(PATH, Systemd)
            .expect("an object")
            .build();
        let client = Builder::async_io_unix_stream(other).p2p().build();
        let (server, client) = futures::try_join!(server, client).expect("two ends");
        let signals = Signals::listen(&client).await.expect("a subscription");
        Rig {
            server,
            signals,
            _client: client,
        }
    }

    fn emitter(&self) -> SignalEmitter<'_> {
        SignalEmitter::new(&self.server, PATH).expect("a valid path")
    }

    async fn removed(&self, unit: &str) {
        Systemd::unit_removed(&self.emitter(), unit, units::unit_path(unit))
            .await
            .expect("sent");
    }

    async fn reloading(&self, active: bool) {
        Systemd::reloading(&self.emitter(), active)
            .await
            .expect("sent");
    }

    async fn job(&self, number: u32, unit: &str, result: &str) {
        Systemd::job_removed(&self.emitter(), number, job(number), unit, result)
            .await
            .expect("sent");
    }
}

fn job(number: u32) -> OwnedObjectPath {
    zvariant::ObjectPath::try_from(format!("{PATH}/job/{number}"))
        .expect("a valid path")
        .into()
}

const LONG: Duration = Duration::from_secs(20);

#[test]
fn the_end_of_a_scope_is_told_and_that_of_other_units_is_not() {
    block_on(async {
        let rig = Rig::new().await;
        let mut events = rig.signals.events();
        rig.removed("vte-1.scope").await;
        rig.removed(UNIT).await;
        let gone = ManagerEvent::ScopeRemoved {
            unit: UNIT.to_owned(),
        };
        assert_eq!(events.next().await, Some(gone));
    });
}

#[test]
fn a_reload_removes_nothing() {
    block_on(async {
        let rig = Rig::new().await;
        let mut events = rig.signals.events();
        rig.reloading(true).await;
        rig.removed(UNIT).await;
        rig.reloading(false).await;
        assert_eq!(events.next().await, Some(ManagerEvent::Reloaded));
        assert_eq!(events.next().now_or_never(), None);
    });
}

#[test]
fn a_job_that_ended_before_its_path_was_known_is_not_missed() {
    block_on(async {
        let rig = Rig::new().await;
        let expectation = rig.signals.expect(UNIT);
        let mut seen = expectation.seen();
        rig.job(6, "vte-1.scope", "failed").await;
        rig.job(7, UNIT, "done").await;
        assert!(expectation.news(&mut seen, LONG).await);
        let end = expectation.job(&job(7), LONG).await;
        assert_eq!(end, JobEnd::Result("done".to_owned()));
        // Another job of the same unit is another matter.
        assert_eq!(
            expectation.job(&job(8), Duration::ZERO).await,
            JobEnd::Overdue
        );
    });
}

#[test]
fn more_signals_than_a_queue_holds_do_not_stop_the_connection() {
    block_on(async {
        let rig = Rig::new().await;
        let mut events = rig.signals.events();
        for number in 0..500 {
            rig.removed(&format!("lwg-heavy-routed-{number}-1.scope"))
                .await;
        }
        for number in 0..500 {
            let unit = format!("lwg-heavy-routed-{number}-1.scope");
            assert_eq!(
                events.next().await,
                Some(ManagerEvent::ScopeRemoved { unit })
            );
        }
    });
}

#[test]
fn the_events_end_with_the_connection() {
    block_on(async {
        let rig = Rig::new().await;
        let mut events = rig.signals.events();
        let expectation = rig.signals.expect(UNIT);
        rig.server.clone().close().await.expect("closed");
        assert_eq!(events.next().await, None);
        assert_eq!(expectation.job(&job(1), LONG).await, JobEnd::Overdue);
        assert_eq!(rig.signals.events().next().await, None);
    });
}
