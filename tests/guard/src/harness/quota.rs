//! `org.workloadguard.Quota1` as a client sees it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures_lite::StreamExt;
use workload_guard_dbus::names::GUARD_PATH;
use workload_guard_dbus::types::SignalRow;
use workload_guard_dbus::{GuardError, Quota1Proxy};
use zbus::{MatchRule, MessageStream, block_on};
use zvariant::OwnedValue;

use super::session::Session;
use super::wait::until;

const INTERFACE: &str = "org.workloadguard.Quota1";

/// A PropertiesChanged of the quota.
#[derive(Clone, Debug)]
pub struct Changed {
    /// When it came.
    pub at: Instant,
    /// The quota in it, where it has one.
    pub quota: Option<f64>,
}

/// The quota of a guard, with every change that it told since [`Quota::connect`].
pub struct Quota {
    proxy: Quota1Proxy<'static>,
    heard: Arc<Mutex<Vec<Changed>>>,
}

impl Quota {
    /// Listens from now on.
    pub fn connect(session: &Session) -> Result<Quota> {
        let proxy = block_on(
            Quota1Proxy::builder(session.bus())
                .cache_properties(zbus::proxy::CacheProperties::No)
                .build(),
        )?;
        let rule = MatchRule::builder()
            .msg_type(zbus::message::Type::Signal)
            .interface("org.freedesktop.DBus.Properties")?
            .member("PropertiesChanged")?
            .path(GUARD_PATH)?
            .arg(0, INTERFACE)?
            .build();
        let mut stream = block_on(MessageStream::for_match_rule(
            rule,
            session.another()?.bus(),
            Some(1024),
        ))?;
        let heard = Arc::new(Mutex::new(Vec::new()));
        let writer = Arc::clone(&heard);
        std::thread::spawn(move || {
            while let Some(Ok(message)) = block_on(stream.next()) {
                let body = message.body();
                let Ok((_, values, _)) =
                    body.deserialize::<(String, HashMap<String, OwnedValue>, Vec<String>)>()
                else {
                    continue;
                };
                let quota = values
                    .get("Quota")
                    .and_then(|value| f64::try_from(value.clone()).ok());
                let at = Instant::now();
                writer
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(Changed { at, quota });
            }
        });
        Ok(Quota { proxy, heard })
    }

    /// The proxy.
    pub fn proxy(&self) -> &Quota1Proxy<'static> {
        &self.proxy
    }

    /// `Quota`.
    pub fn now(&self) -> Result<f64> {
        Ok(block_on(self.proxy.quota())?)
    }

    /// `Enforced`.
    pub fn enforced(&self) -> Result<f64> {
        Ok(block_on(self.proxy.enforced())?)
    }

    /// `Control`.
    pub fn control(&self) -> Result<String> {
        Ok(block_on(self.proxy.control())?)
    }

    /// `SetQuota`.
    pub fn set(&self, percent: u32) -> Result<f64, GuardError> {
        block_on(self.proxy.set_quota(percent, HashMap::new()))
    }

    /// `ResetQuota`.
    pub fn reset(&self) -> Result<f64, GuardError> {
        block_on(self.proxy.reset_quota())
    }

    /// A row of `Signals`.
    pub fn signal(&self, name: &str) -> Result<SignalRow> {
        block_on(self.proxy.signals())?
            .into_iter()
            .find(|row| row.name == name)
            .with_context(|| format!("Signals has no {name}"))
    }

    /// Quotas that were told so far, oldest first.
    pub fn told(&self) -> Vec<(Instant, f64)> {
        self.heard
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .filter_map(|changed| Some((changed.at, changed.quota?)))
            .collect()
    }

    /// Waits until the guard has told this quota after `mark` earlier ones; it must also answer it. How long
    /// after `since` it was told.
    pub fn is_told(
        &self,
        percent: f64,
        mark: usize,
        since: Instant,
        patience: Duration,
    ) -> Result<Duration> {
        let at = until(&format!("the guard tells {percent} %"), patience, || {
            let told = self.told();
            let found = told.iter().skip(mark).find(|(_, quota)| *quota == percent);
            ensure!(found.is_some(), "told so far: {told:?}");
            Ok(found.map(|(at, _)| *at))
        })?;
        let now = self.now()?;
        ensure!(now == percent, "told {percent} %, and answers {now} %");
        Ok(at.saturating_duration_since(since))
    }
}
