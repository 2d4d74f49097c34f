//! Counts what is called on the bus.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
use futures_lite::StreamExt;
use workload_guard_dbus::names::GUARD_NAME;
use workload_guard_dbus::systemd1::SYSTEMD_NAME;
use zbus::fdo::{DBusProxy, MonitoringProxy};
use zbus::message::Type;
use zbus::{MatchRule, MessageStream, block_on};

use super::session::Session;

/// Calls so far.
#[derive(Clone, Debug)]
pub struct BusCalls(Arc<AtomicUsize>);

impl BusCalls {
    /// Counts the guard's calls of systemd from now on, in a thread of its own. A monitor, which may do
    /// nothing but listen, has its own connection.
    pub fn of_guard_to_systemd(session: &Session) -> Result<BusCalls> {
        let bus = block_on(DBusProxy::new(session.bus()))?;
        let guard = block_on(bus.get_name_owner(GUARD_NAME.try_into()?))?;
        let rule = MatchRule::builder()
            .msg_type(Type::MethodCall)
            .sender(guard.into_inner())?
            .build();
        let monitor = session.another()?;
        let proxy = block_on(MonitoringProxy::new(monitor.bus()))?;
        let mut stream = MessageStream::from(monitor.bus());
        block_on(proxy.become_monitor(&[rule], 0))?;
        let count = Arc::new(AtomicUsize::new(0));
        let its = Arc::clone(&count);
        std::thread::spawn(move || {
            while let Some(Ok(message)) = block_on(stream.next()) {
                let header = message.header();
                // A rule takes no well-known name for a destination.
                let asked = header
                    .destination()
                    .is_some_and(|name| name == SYSTEMD_NAME);
                if asked && header.message_type() == Type::MethodCall {
                    its.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        Ok(BusCalls(count))
    }

    /// So many.
    pub fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}
