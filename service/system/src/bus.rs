//! The connection to the user's bus. No call on it waits without a deadline, whoever makes it.

use std::io;
use std::time::Duration;

use async_io::Timer;
use futures_lite::FutureExt;
pub use zbus::Connection;
use zbus::connection::Builder;

/// How long one method call may take. A healthy manager answers in 2 ms; a reload of a large session
/// holds it up for a few hundred.
pub const CALL: Duration = Duration::from_secs(10);

/// Connects to the user's bus. That has a deadline as well: a bus that hangs accepts connections, since
/// the kernel does that for it.
pub async fn connect() -> zbus::Result<Connection> {
    build(Builder::session()?, CALL).await
}

/// The deadline belongs to the connection and not to the callers, so that none can go without.
async fn build(builder: Builder<'_>, deadline: Duration) -> zbus::Result<Connection> {
    let late = async {
        Timer::after(deadline).await;
        Err(overdue(&format!(
            "the bus did not answer within {deadline:?}"
        )))
    };
    builder.method_timeout(deadline).build().or(late).await
}

/// Whether an answer did not come in time.
pub fn is_overdue(error: &zbus::Error) -> bool {
    matches!(error, zbus::Error::InputOutput(io) if io.kind() == io::ErrorKind::TimedOut)
}

/// The error of an answer that did not come in time.
pub fn overdue(text: &str) -> zbus::Error {
    zbus::Error::InputOutput(io::Error::new(io::ErrorKind::TimedOut, text.to_owned()).into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use futures_lite::future::{block_on, zip};
    use zbus::Guid;
    use zbus::fdo::DBusProxy;

    use super::*;

    const SOON: Duration = Duration::from_millis(50);

    #[test]
    fn a_bus_that_says_nothing_is_given_up() {
        let (_deaf, client) = UnixStream::pair().expect("a socket pair");
        let error = block_on(build(Builder::async_io_unix_stream(client), SOON))
            .expect_err("nobody answers");
        assert!(is_overdue(&error), "{error}");
    }

    #[test]
    fn no_call_waits_for_ever() {
        block_on(async {
            let (server, client) = UnixStream::pair().expect("a socket pair");
            let guid = Guid::generate();
            let server = Builder::async_io_unix_stream(server)
                .server(guid)
                .expect("a guid")
                .p2p()
                .build();
            let client = build(Builder::async_io_unix_stream(client).p2p(), SOON);
            let (server, client) = zip(server, client).await;
            // It takes every message and answers none.
            let (_server, client) = (server.expect("a server"), client.expect("a client"));
            let bus = DBusProxy::builder(&client)
                .destination("org.freedesktop.DBus")
                .expect("a name")
                .build()
                .await
                .expect("a proxy");
            let error = bus.get_id().await.expect_err("nobody answers");
            assert!(
                matches!(&error, zbus::fdo::Error::ZBus(error) if is_overdue(error)),
                "{error}"
            );
        });
    }
}
