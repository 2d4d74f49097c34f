//! `status --follow`: what the guard says by signals, in the order in which it says it. Nothing is asked again
//! and again.

use std::collections::HashMap;

use futures::StreamExt;
use workload_guard_dbus::Guard1Proxy;
use workload_guard_dbus::names::{GUARD_NAME, GUARD_PATH};
use workload_guard_dbus::types::HoldRow;
use zbus::fdo::DBusProxy;
use zbus::message::{Body, Message, Type};
use zbus::proxy::CacheProperties;
use zbus::{Connection, MatchRule, MessageStream};
use zvariant::{OwnedObjectPath, OwnedValue};

use crate::call::{self, Status};
use crate::error::CliError;

/// What has happened.
#[derive(Clone, Debug)]
pub enum News {
    /// `Routed`.
    Routed {
        /// Root process.
        pid: u32,
        /// Where to.
        class: String,
        /// Why.
        reason: String,
        /// Control group that it came from.
        source: String,
        /// Command line.
        command: String,
    },
    /// `Recovered`.
    Recovered {
        /// Root process.
        pid: u32,
        /// The class that it left.
        class: String,
        /// Control group that it is in.
        destination: String,
        /// What was done instead, when that is not where it came from.
        note: String,
    },
    /// `MoveFailed`.
    Failed {
        /// Root process.
        pid: u32,
        /// Where to.
        class: String,
        /// Why not.
        text: String,
    },
    /// `Ended`.
    Ended {
        /// Root process.
        pid: u32,
        /// Its class.
        class: String,
        /// Command line.
        command: String,
    },
    /// The state: `normal`, `degraded` or `paused`.
    State(String),
    /// Why it is not normal.
    Reasons(Vec<String>),
    /// A hold began.
    Held(HoldRow),
    /// A hold ended.
    Unheld(HoldRow),
    /// The guard has left the bus.
    Left,
    /// It is back.
    Back(Box<Status>),
}

/// Follows one guard after the other.
pub struct Follower {
    guard: Guard1Proxy<'static>,
    stream: MessageStream,
    holds: Vec<HoldRow>,
}

impl Follower {
    /// Listens from now on; answers what is true at that moment.
    pub async fn start(
        bus: &Connection,
        guard: Guard1Proxy<'static>,
    ) -> Result<(Follower, Status), CliError> {
        let daemon = DBusProxy::builder(bus)
            .cache_properties(CacheProperties::No)
            .build()
            .await?;
        // Before the first question, so that nothing falls in between.
        let stream = MessageStream::from(bus);
        let ours = MatchRule::builder()
            .msg_type(Type::Signal)
            .sender(GUARD_NAME)?
            .path(GUARD_PATH)?
            .build();
        let owner = MatchRule::builder()
            .msg_type(Type::Signal)
            .sender("org.freedesktop.DBus")?
            .member("NameOwnerChanged")?
            .arg(0, GUARD_NAME)?
            .build();
        for rule in [ours, owner] {
            daemon
                .add_match_rule(rule)
                .await
                .map_err(zbus::Error::from)?;
        }
        let mut follower = Follower {
            guard,
            stream,
            holds: Vec::new(),
        };
        let status = follower.ask().await?;
        Ok((follower, status))
    }

    /// Waits for the next news; several can come at once.
    pub async fn next(&mut self) -> Result<Vec<News>, CliError> {
        loop {
            let message = match self.stream.next().await {
                Some(Ok(message)) => message,
                Some(Err(_)) => continue,
                None => {
                    return Err(CliError::Unavailable(
                        "the user bus closed the connection".into(),
                    ));
                }
            };
            let news = self.read(&message).await;
            if !news.is_empty() {
                return Ok(news);
            }
        }
    }

    /// Reads everything, as the base of differences.
    async fn ask(&mut self) -> Result<Status, CliError> {
        let status = call::status(&self.guard).await?;
        self.holds.clone_from(&status.holds);
        Ok(status)
    }

    async fn read(&mut self, message: &Message) -> Vec<News> {
        if message.message_type() != Type::Signal {
            return Vec::new();
        }
        let header = message.header();
        let member = header.member().map_or("", |name| name.as_str());
        let body = message.body();
        // A signal that is not as we know it is one of another version's: it says nothing to us.
        match member {
            "PropertiesChanged" => match body.deserialize::<Changed>() {
                Ok((_, changed, _)) => self.changed(changed),
                Err(_) => Vec::new(),
            },
            "NameOwnerChanged" => match body.deserialize::<(String, String, String)>() {
                Ok((name, _, new)) if name == GUARD_NAME => self.other_owner(&new).await,
                _ => Vec::new(),
            },
            member => of_workload(member, &body).into_iter().collect(),
        }
    }

    fn changed(&mut self, changed: HashMap<String, OwnedValue>) -> Vec<News> {
        let mut news = Vec::new();
        for (name, value) in changed {
            match name.as_str() {
                "State" => news.extend(String::try_from(value).ok().map(News::State)),
                "StateReasons" => news.extend(Vec::try_from(value).ok().map(News::Reasons)),
                "Holds" => {
                    if let Ok(holds) = Vec::<HoldRow>::try_from(value) {
                        news.extend(differences(&self.holds, &holds));
                        self.holds = holds;
                    }
                }
                _ => {}
            }
        }
        news
    }

    async fn other_owner(&mut self, new: &str) -> Vec<News> {
        if new.is_empty() {
            return vec![News::Left];
        }
        // Gone again already: the next signal says so.
        let status = self.ask().await.ok();
        status
            .map(|status| News::Back(Box::new(status)))
            .into_iter()
            .collect()
    }
}

/// What a signal says of a workload.
fn of_workload(member: &str, body: &Body) -> Option<News> {
    let news = match member {
        "Routed" => {
            let (_, pid, class, reason, source, _, command): Routed = body.deserialize().ok()?;
            News::Routed {
                pid,
                class,
                reason,
                source,
                command,
            }
        }
        "Recovered" => {
            let (_, pid, class, destination, _, note): Recovered = body.deserialize().ok()?;
            News::Recovered {
                pid,
                class,
                destination,
                note,
            }
        }
        "MoveFailed" => {
            let (pid, class, _, text): (u32, String, String, String) = body.deserialize().ok()?;
            News::Failed { pid, class, text }
        }
        "Ended" => {
            let (_, pid, class, command): Ended = body.deserialize().ok()?;
            News::Ended {
                pid,
                class,
                command,
            }
        }
        _ => return None,
    };
    Some(news)
}

/// Arguments of the signals, as the interfaces document them.
type Changed = (String, HashMap<String, OwnedValue>, Vec<String>);
type Routed = (OwnedObjectPath, u32, String, String, String, String, String);
type Recovered = (OwnedObjectPath, u32, String, String, bool, String);
type Ended = (OwnedObjectPath, u32, String, String);

/// Which holds began and which ended.
fn differences(before: &[HoldRow], now: &[HoldRow]) -> Vec<News> {
    let lacks = |rows: &[HoldRow], id: u64| rows.iter().all(|row| row.id != id);
    let ended = before.iter().filter(|row| lacks(now, row.id));
    let began = now.iter().filter(|row| lacks(before, row.id));
    ended
        .cloned()
        .map(News::Unheld)
        .chain(began.cloned().map(News::Held))
        .collect()
}
