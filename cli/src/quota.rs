//! What `quota` asks of the guard.

use std::collections::HashMap;

use futures::try_join;
use workload_guard_dbus::types::SignalRow;
use workload_guard_dbus::{Guard1Proxy, Quota1Proxy};
use zbus::proxy::CacheProperties;
use zvariant::{OwnedValue, Str};

use crate::error::CliError;

/// Everything that `quota` shows.
#[derive(Clone, Debug)]
pub struct Quota {
    /// The heavy class's slice.
    pub slice: String,
    /// systemd's quota in percent of one logical CPU; 0 for no limit.
    pub quota: f64,
    /// The kernel's; 0 for none.
    pub enforced: f64,
    /// Bounds of the settings.
    pub minimum: u32,
    /// Likewise.
    pub maximum: u32,
    /// Whether the settings have a controller move it.
    pub dynamic: bool,
    /// Which.
    pub policy: String,
    /// Who has it: static, auto, frozen, set or yielded.
    pub control: String,
    /// What the controller sees.
    pub signals: Vec<SignalRow>,
    /// Its last decision.
    pub last_decision: String,
    /// The last change, by whomever.
    pub last_change: String,
    /// Changes since the guard started.
    pub changes: u64,
    /// The thresholds: each setting of `[quota]` with its value.
    pub settings: Vec<(String, String)>,
}

async fn proxy(guard: &Guard1Proxy<'_>) -> Result<Quota1Proxy<'static>, CliError> {
    let connection = guard.inner().connection().clone();
    Ok(Quota1Proxy::builder(&connection)
        .cache_properties(CacheProperties::No)
        .build()
        .await?)
}

/// Everything.
pub async fn show(guard: &Guard1Proxy<'_>) -> Result<Quota, CliError> {
    let q = proxy(guard).await?;
    let numbers = async { try_join!(q.quota(), q.enforced(), q.minimum(), q.maximum()) };
    let words = async { try_join!(q.slice(), q.policy(), q.control(), q.dynamic()) };
    let seen = async {
        try_join!(
            q.signals(),
            q.last_decision(),
            q.last_change(),
            q.changes_total()
        )
    };
    let ((quota, enforced, minimum, maximum), (slice, policy, control, dynamic), seen) =
        try_join!(numbers, words, seen)?;
    let (signals, last_decision, last_change, changes) = seen;
    let settings = guard.settings().await?;
    Ok(Quota {
        slice,
        quota,
        enforced,
        minimum,
        maximum,
        dynamic,
        policy,
        control,
        signals,
        last_decision,
        last_change,
        changes,
        settings: settings
            .into_iter()
            .filter_map(|row| {
                let key = row.key.strip_prefix("quota.")?.to_owned();
                Some((key, row.value))
            })
            .collect(),
    })
}

/// Sets it; answers what is in force.
pub async fn set(
    guard: &Guard1Proxy<'_>,
    percent: u32,
    reason: Option<&str>,
) -> Result<f64, CliError> {
    let mut options = HashMap::new();
    if let Some(reason) = reason {
        options.insert(
            "reason".to_owned(),
            OwnedValue::from(Str::from(reason.to_owned())),
        );
    }
    Ok(proxy(guard).await?.set_quota(percent, options).await?)
}

/// Hands it back; answers what is in force.
pub async fn auto(guard: &Guard1Proxy<'_>) -> Result<f64, CliError> {
    Ok(proxy(guard).await?.reset_quota().await?)
}
