//! The guard's signals, with the moment at which each came.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use futures_lite::StreamExt;
use workload_guard_dbus::names::{GUARD_NAME, GUARD_PATH};
use zbus::{MatchRule, MessageStream, block_on};
use zvariant::OwnedObjectPath;

use super::session::Session;

/// One signal.
#[derive(Clone, Debug)]
pub struct Heard {
    /// When it came.
    pub at: Instant,
    /// What it says.
    pub signal: Signal,
}

/// What a signal of `org.workloadguard.Guard1` says.
#[derive(Clone, Debug)]
pub enum Signal {
    /// `Routed`
    Routed(Routed),
    /// `Recovered`
    Recovered(Recovered),
    /// `MoveFailed`
    MoveFailed(MoveFailed),
}

/// Arguments of `Routed`.
#[derive(Clone, Debug, serde::Deserialize, zvariant::Type)]
pub struct Routed {
    /// The workload's object.
    pub workload: OwnedObjectPath,
    /// Its root process.
    pub pid: u32,
    /// Its class.
    pub class: String,
    /// Why.
    pub reason: String,
    /// Where it came from.
    pub source: String,
    /// Where it is.
    pub destination: String,
    /// Command line of the root.
    pub command: String,
}

/// Arguments of `Recovered`.
#[derive(Clone, Debug, serde::Deserialize, zvariant::Type)]
pub struct Recovered {
    /// The object that it had.
    #[allow(dead_code)] // A part of the signature, shown in failures.
    pub workload: OwnedObjectPath,
    /// Its root process.
    pub pid: u32,
    /// The class that it left.
    #[allow(dead_code)] // Likewise.
    pub class: String,
    /// Where it is.
    pub destination: String,
    /// Whether it came from there.
    pub exact: bool,
    /// What was done instead when not.
    pub note: String,
}

/// Arguments of `MoveFailed`.
#[derive(Clone, Debug, serde::Deserialize, zvariant::Type)]
pub struct MoveFailed {
    /// The root process.
    pub pid: u32,
    /// The class of the move.
    #[allow(dead_code)] // A part of the signature, shown in failures.
    pub class: String,
    /// Name of the error.
    #[allow(dead_code)] // Likewise.
    pub error: String,
    /// Its text.
    pub text: String,
}

#[derive(Debug, Default)]
struct Log {
    heard: Mutex<Vec<Heard>>,
    news: Condvar,
}

/// Everything heard since [`Signals::listen`].
#[derive(Clone, Debug)]
pub struct Signals(Arc<Log>);

impl Signals {
    /// Listens from now on, in a thread of its own; also to a guard that starts later or again.
    pub fn listen(session: &Session) -> Result<Signals> {
        let rule = MatchRule::builder()
            .msg_type(zbus::message::Type::Signal)
            .interface(GUARD_NAME)?
            .path(GUARD_PATH)?
            .build();
        let mut stream = block_on(MessageStream::for_match_rule(
            rule,
            session.another()?.bus(),
            Some(1024),
        ))?;
        let log = Arc::new(Log::default());
        let writer = Arc::clone(&log);
        std::thread::spawn(move || {
            while let Some(message) = block_on(stream.next()) {
                let at = Instant::now();
                let signal = message
                    .map_err(anyhow::Error::from)
                    .and_then(|message| decode(&message));
                match signal {
                    Ok(Some(signal)) => {
                        let mut heard = writer.heard.lock().unwrap_or_else(PoisonError::into_inner);
                        heard.push(Heard { at, signal });
                        writer.news.notify_all();
                    }
                    Ok(None) => {}
                    Err(error) => eprintln!("a signal that cannot be read: {error:#}"),
                }
            }
        });
        Ok(Signals(log))
    }

    /// Everything so far.
    pub fn heard(&self) -> Vec<Heard> {
        self.0
            .heard
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// How many so far: a mark for [`Signals::after`].
    pub fn mark(&self) -> usize {
        self.heard().len()
    }

    /// Waits for a signal after `mark` that `pick` accepts.
    pub fn after<T>(
        &self,
        mark: usize,
        what: &str,
        patience: Duration,
        pick: impl Fn(&Heard) -> Option<T>,
    ) -> Result<T> {
        let deadline = Instant::now() + patience;
        let mut heard = self.0.heard.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(found) = heard.iter().skip(mark).find_map(&pick) {
                return Ok(found);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                bail!("no signal within {patience:?} for this: {what}; heard: {heard:#?}");
            }
            heard = self
                .0
                .news
                .wait_timeout(heard, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Waits for the route of a process, from the beginning.
    pub fn routed(&self, pid: u32, patience: Duration) -> Result<(Instant, Routed)> {
        self.routed_after(0, pid, patience)
    }

    /// Waits for the route of a process after `mark`.
    pub fn routed_after(
        &self,
        mark: usize,
        pid: u32,
        patience: Duration,
    ) -> Result<(Instant, Routed)> {
        self.after(
            mark,
            &format!("route of {pid}"),
            patience,
            |heard| match &heard.signal {
                Signal::Routed(routed) if routed.pid == pid => Some((heard.at, routed.clone())),
                _ => None,
            },
        )
    }

    /// Waits for the return of a process after `mark`.
    pub fn recovered_after(
        &self,
        mark: usize,
        pid: u32,
        patience: Duration,
    ) -> Result<(Instant, Recovered)> {
        self.after(
            mark,
            &format!("return of {pid}"),
            patience,
            |heard| match &heard.signal {
                Signal::Recovered(recovered) if recovered.pid == pid => {
                    Some((heard.at, recovered.clone()))
                }
                _ => None,
            },
        )
    }
}

fn decode(message: &zbus::Message) -> Result<Option<Signal>> {
    let header = message.header();
    let member = header.member().context("a signal without a name")?;
    let body = message.body();
    Ok(match member.as_str() {
        "Routed" => Some(Signal::Routed(body.deserialize()?)),
        "Recovered" => Some(Signal::Recovered(body.deserialize()?)),
        "MoveFailed" => Some(Signal::MoveFailed(body.deserialize()?)),
        _ => None,
    })
}
