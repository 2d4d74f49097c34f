//! Clients that holds are bound to: tells when one leaves the bus.
//!
//! The signals are read by a task of the connection, all the time: a stream that waits for the daemon's loop
//! would stop the whole connection once it is full. Nobody listens before the first hold that is bound to a
//! client; from then on the task stays, which costs nothing while no client leaves the bus.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::StreamExt;
use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use zbus::fdo::DBusProxy;
use zbus::names::BusName;
use zbus::proxy::CacheProperties;

/// The clients that are followed.
pub struct Owners {
    connection: zbus::Connection,
    followed: Arc<Mutex<HashSet<String>>>,
    /// Each followed name once: bounded by the holds.
    leave: UnboundedSender<String>,
    left: UnboundedReceiver<String>,
    reader: Option<zbus::Task<()>>,
}

impl Owners {
    /// Follows nobody yet.
    pub fn new(connection: zbus::Connection) -> Owners {
        let (leave, left) = unbounded();
        Owners {
            connection,
            followed: Arc::default(),
            leave,
            left,
            reader: None,
        }
    }

    /// Follows these clients, and no others. Who has left already is told like one that leaves now.
    pub async fn follow(&mut self, names: &BTreeSet<&str>) -> zbus::Result<()> {
        let new: Vec<String> = {
            let mut followed = lock(&self.followed);
            followed.retain(|name| names.contains(name.as_str()));
            names
                .iter()
                .filter(|name| !followed.contains(**name))
                .map(|name| (*name).to_owned())
                .collect()
        };
        if new.is_empty() {
            return Ok(());
        }
        let bus = DBusProxy::builder(&self.connection)
            .cache_properties(CacheProperties::No)
            .build()
            .await?;
        if self.reader.is_none() {
            // Only names that lose their owner: the third argument is the new one.
            let mut signals = bus.receive_name_owner_changed_with_args(&[(2, "")]).await?;
            let (followed, leave) = (self.followed.clone(), self.leave.clone());
            let read = async move {
                while let Some(signal) = signals.next().await {
                    if let Ok(args) = signal.args() {
                        report(&followed, &leave, args.name.as_str());
                    }
                }
            };
            self.reader = Some(self.connection.executor().spawn(read, "owners of holds"));
        }
        // Asked only now, when nobody can leave unheard.
        for name in new {
            lock(&self.followed).insert(name.clone());
            let is_there = match BusName::try_from(name.as_str()) {
                Ok(unique) => bus.name_has_owner(unique).await?,
                Err(_) => false,
            };
            if !is_there {
                report(&self.followed, &self.leave, &name);
            }
        }
        Ok(())
    }

    /// Waits for the next one that leaves.
    pub async fn next(&mut self) -> String {
        match self.left.next().await {
            Some(name) => name,
            // Not while `leave` is here.
            None => std::future::pending().await,
        }
    }
}

fn report(followed: &Mutex<HashSet<String>>, leave: &UnboundedSender<String>, name: &str) {
    if lock(followed).remove(name) {
        let _ = leave.unbounded_send(name.to_owned());
    }
}

fn lock(names: &Mutex<HashSet<String>>) -> MutexGuard<'_, HashSet<String>> {
    names.lock().unwrap_or_else(PoisonError::into_inner)
}
