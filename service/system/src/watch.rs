//! Signals of systemd: one subscription, read by one task, for everybody.
//!
//! A zbus stream that nobody reads stops its whole connection once 64 messages wait, replies included.
//! So no operation opens a stream of its own: [`Signals`] reads them all the time, and an operation
//! registers what it waits for *before* it calls ([`Signals::expect`]). Nothing can be missed then, and
//! waiting costs no round trip.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use async_io::Timer;
use event_listener::Event;
use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use futures::{Stream, StreamExt};
use futures_lite::FutureExt;
use workload_guard_dbus::scope::ScopeName;
use workload_guard_dbus::systemd1::{ManagerProxy, SYSTEMD_NAME, error_name};
use zbus::message::Type;
use zbus::{Connection, MatchRule, MessageStream};
use zvariant::OwnedObjectPath;

use crate::units;

mod ordered;

use ordered::Ordered;

/// What the daemon's loop wants to know of the manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ManagerEvent {
    /// A scope of ours was unloaded: its last process ended, or somebody stopped it.
    ScopeRemoved {
        /// The scope.
        unit: String,
    },
    /// A daemon-reload ended. Unit files may have changed, and a scope that ended during it was not reported.
    Reloaded,
    /// The manager re-executed or restarted: list again. One or two of these come for one re-execution.
    ManagerReplaced,
}

/// Events for the daemon's loop. It ends when the connection does.
#[derive(Debug)]
pub struct ManagerEvents(UnboundedReceiver<ManagerEvent>);

impl Stream for ManagerEvents {
    type Item = ManagerEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<ManagerEvent>> {
        self.0.poll_next_unpin(cx)
    }
}

/// The manager's signals.
#[derive(Clone, Debug)]
pub struct Signals {
    shared: Arc<Shared>,
    /// Ends with the last clone.
    _reader: Arc<zbus::Task<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    book: Mutex<Book>,
    changed: Event,
}

/// What came in, for those who wait.
#[derive(Debug, Default)]
struct Book {
    wanted: HashMap<u64, Wanted>,
    next: u64,
    /// Between `Reloading(true)` and `Reloading(false)` each unit is removed and made again.
    reloading: bool,
    /// Grows with each reload and each new manager, after which nothing noted before can be relied on.
    generation: u64,
    /// Grows with each new manager.
    owners: u64,
    listeners: Vec<UnboundedSender<ManagerEvent>>,
    closed: bool,
}

#[derive(Debug)]
struct Wanted {
    unit: String,
    /// Ended jobs of the unit and their results. By unit, since the job's path is known only after the reply.
    jobs: Vec<(OwnedObjectPath, String)>,
    removals: u64,
}

/// How a wait for a job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobEnd {
    /// `done`, or what went wrong.
    Result(String),
    /// The manager was replaced meanwhile: look for yourself.
    ManagerReplaced,
    /// Not within the time, or the connection ended.
    Overdue,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Book> {
        // Plain data, valid after every statement: a panic elsewhere does not spoil it.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Signals {
    /// Subscribes, and starts to read.
    pub async fn listen(conn: &Connection) -> zbus::Result<Signals> {
        let of_manager = MatchRule::builder()
            .msg_type(Type::Signal)
            .sender(SYSTEMD_NAME)?
            .path("/org/freedesktop/systemd1")?
            .interface("org.freedesktop.systemd1.Manager")?
            .build();
        let of_owner = MatchRule::builder()
            .msg_type(Type::Signal)
            .sender("org.freedesktop.DBus")?
            .interface("org.freedesktop.DBus")?
            .member("NameOwnerChanged")?
            .add_arg(SYSTEMD_NAME)?
            .build();
        let manager_stream = MessageStream::for_match_rule(of_manager, conn, None).await?;
        let owner_stream = MessageStream::for_match_rule(of_owner, conn, None).await?;
        subscribe(conn).await?;

        let shared = Arc::new(Shared::default());
        let reader = {
            let shared = Arc::clone(&shared);
            let conn = conn.clone();
            let mut stream = Ordered::new(manager_stream, owner_stream);
            async move {
                while let Some(message) = stream.next().await {
                    if shared.note(&message) {
                        // In a task of its own: its reply must not wait for this loop.
                        let conn = conn.clone();
                        let again = conn.clone();
                        conn.executor()
                            .spawn(
                                async move {
                                    if let Err(error) = subscribe(&again).await {
                                        log::warn!(
                                            "systemd's new manager takes no subscription: {error}"
                                        );
                                    }
                                },
                                "systemd resubscribe",
                            )
                            .detach();
                    }
                }
                let mut book = shared.lock();
                book.closed = true;
                book.listeners.clear();
                drop(book);
                shared.changed.notify(usize::MAX);
            }
        };
        let reader = conn.executor().spawn(reader, "systemd signals");
        Ok(Signals {
            shared,
            _reader: Arc::new(reader),
        })
    }

    /// Events from now on. Each caller gets all of them.
    pub fn events(&self) -> ManagerEvents {
        let (sender, receiver) = unbounded();
        let mut book = self.shared.lock();
        if !book.closed {
            book.listeners.push(sender);
        }
        ManagerEvents(receiver)
    }

    /// Waits for any signal of the manager, at most this long.
    pub async fn anything(&self, within: Duration) {
        let listener = self.shared.changed.listen();
        listener
            .or(async {
                Timer::after(within).await;
            })
            .await;
    }

    /// Begins to note what happens to `unit`. To be called before the call whose effect is awaited.
    pub fn expect(&self, unit: &str) -> Expectation {
        let mut book = self.shared.lock();
        let key = book.next;
        book.next += 1;
        book.wanted.insert(
            key,
            Wanted {
                unit: unit.to_owned(),
                jobs: Vec::new(),
                removals: 0,
            },
        );
        Expectation {
            key,
            owners: book.owners,
            shared: Arc::clone(&self.shared),
        }
    }
}

async fn subscribe(conn: &Connection) -> zbus::Result<()> {
    let manager = ManagerProxy::new(conn).await?;
    match manager.subscribe().await {
        Err(error) if units::error_name(&error) == Some(error_name::ALREADY_SUBSCRIBED) => Ok(()),
        other => other,
    }
}

impl Shared {
    /// Notes one signal; true when the manager is a new one that wants a subscription.
    fn note(&self, message: &zbus::Message) -> bool {
        let header = message.header();
        let Some(member) = header.member() else {
            return false;
        };
        let body = message.body();
        let mut book = self.lock();
        let mut new_manager = false;
        match member.as_str() {
            "JobRemoved" => {
                if let Ok((_, job, unit, result)) =
                    body.deserialize::<(u32, OwnedObjectPath, &str, &str)>()
                {
                    for wanted in book.wanted.values_mut().filter(|w| w.unit == unit) {
                        wanted.jobs.push((job.clone(), result.to_owned()));
                    }
                }
            }
            "UnitRemoved" if !book.reloading => {
                if let Ok((unit, _)) = body.deserialize::<(&str, OwnedObjectPath)>() {
                    for wanted in book.wanted.values_mut().filter(|w| w.unit == unit) {
                        wanted.removals += 1;
                    }
                    if unit.parse::<ScopeName>().is_ok() {
                        book.tell(ManagerEvent::ScopeRemoved {
                            unit: unit.to_owned(),
                        });
                    }
                }
            }
            "Reloading" => match body.deserialize::<bool>() {
                Ok(true) => book.reloading = true,
                Ok(false) => {
                    book.reloading = false;
                    book.generation += 1;
                    book.tell(ManagerEvent::Reloaded);
                }
                Err(_) => {}
            },
            "NameOwnerChanged" => {
                // A manager that crashed in a reload sends no `Reloading(false)`.
                book.reloading = false;
                book.generation += 1;
                book.owners += 1;
                if let Ok((_, _, owner)) = body.deserialize::<(&str, &str, &str)>() {
                    new_manager = !owner.is_empty();
                }
                book.tell(ManagerEvent::ManagerReplaced);
            }
            _ => return false,
        }
        drop(book);
        self.changed.notify(usize::MAX);
        new_manager
    }
}

impl Book {
    fn tell(&mut self, event: ManagerEvent) {
        self.listeners
            .retain(|listener| listener.unbounded_send(event.clone()).is_ok());
    }
}

/// What happens to one unit, from the moment of [`Signals::expect`] on.
#[derive(Debug)]
pub struct Expectation {
    key: u64,
    owners: u64,
    shared: Arc<Shared>,
}

impl Drop for Expectation {
    fn drop(&mut self) {
        self.shared.lock().wanted.remove(&self.key);
    }
}

impl Expectation {
    /// Waits for the end of `job`. A reload keeps jobs and their signals; a new manager may lose them.
    pub async fn job(&self, job: &OwnedObjectPath, within: Duration) -> JobEnd {
        self.wait(within, |book, wanted| {
            if let Some((_, result)) = wanted.jobs.iter().find(|(path, _)| path == job) {
                return Some(JobEnd::Result(result.clone()));
            }
            (book.owners != self.owners).then_some(JobEnd::ManagerReplaced)
        })
        .await
        .unwrap_or(JobEnd::Overdue)
    }

    /// Waits for anything new about the unit or the manager since `seen`; false when the time ran out.
    pub async fn news(&self, seen: &mut News, within: Duration) -> bool {
        let before = *seen;
        let found = self
            .wait(within, |book, wanted| {
                let now = News {
                    events: wanted.jobs.len() as u64 + wanted.removals,
                    generation: book.generation,
                };
                (now != before).then_some(now)
            })
            .await;
        if let Some(now) = found {
            *seen = now;
        }
        found.is_some()
    }

    /// The state that [`Expectation::news`] compares with.
    pub fn seen(&self) -> News {
        let book = self.shared.lock();
        News {
            events: book
                .wanted
                .get(&self.key)
                .map_or(0, |w| w.jobs.len() as u64 + w.removals),
            generation: book.generation,
        }
    }

    async fn wait<T>(
        &self,
        within: Duration,
        check: impl Fn(&Book, &Wanted) -> Option<T>,
    ) -> Option<T> {
        let deadline = Instant::now() + within;
        loop {
            let listener = self.shared.changed.listen();
            {
                let book = self.shared.lock();
                let wanted = book.wanted.get(&self.key)?;
                if let Some(found) = check(&book, wanted) {
                    return Some(found);
                }
                if book.closed {
                    return None;
                }
            }
            let in_time = async {
                listener.await;
                true
            }
            .or(async {
                Timer::at(deadline).await;
                false
            })
            .await;
            if !in_time {
                return None;
            }
        }
    }
}

/// How much was noted so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct News {
    events: u64,
    generation: u64,
}

#[cfg(test)]
mod tests;
