//! Asks the guard, and keeps what it said.

use std::collections::HashMap;

use futures::try_join;
use workload_guard_dbus::Guard1Proxy;
use workload_guard_dbus::types::{
    ClassRow, HoldRow, SettingRow, StatisticsRow, WatchedRow, WorkloadRow,
};
use zbus::fdo::PropertiesProxy;
use zbus::proxy::CacheProperties;
use zvariant::OwnedValue;

use crate::error::CliError;
use crate::insight::{self, InsightAnswer};
use crate::plan::Call;
use crate::quota::{self, Quota};

mod holds;

pub use holds::{HoldAnswer, options};

/// Everything that `status` shows.
#[derive(Clone, Debug)]
pub struct Status {
    /// The guard's version.
    pub version: String,
    /// `normal`, `degraded` or `paused`.
    pub state: String,
    /// Why it is not normal.
    pub state_reasons: Vec<String>,
    /// What the machine offers.
    pub capabilities: Vec<String>,
    /// `active`, or why the kernel does not tell of new programs.
    pub exec_events: String,
    /// Exec events that were made good by a look at everything.
    pub exec_events_lost: u64,
    /// Seconds between two samples, as the settings have it; empty when they do not tell.
    pub interval: String,
    /// The classes.
    pub classes: Vec<ClassRow>,
    /// What is watched.
    pub watched: Vec<WatchedRow>,
    /// What is held.
    pub holds: Vec<HoldRow>,
    /// The workloads.
    pub workloads: Vec<WorkloadRow>,
    /// Routes since the guard started.
    pub routed: u64,
    /// Recoveries since then.
    pub recovered: u64,
    /// Failed moves since then.
    pub failed: u64,
}

impl Status {
    /// What is left when the guard has gone.
    pub fn stopped(self) -> Status {
        Status {
            state: "stopped".into(),
            state_reasons: Vec::new(),
            watched: Vec::new(),
            ..self
        }
    }
}

/// Everything that `stats` shows.
#[derive(Clone, Debug)]
pub struct Stats {
    /// Whether adaptive routing is on.
    pub enabled: bool,
    /// The score at which a process is routed, where the guard tells.
    pub threshold: Option<f64>,
    /// Samples of a command before it is scored, likewise.
    pub min_samples: Option<u64>,
    /// Processes that each sample scores.
    pub watched: u64,
    /// By command.
    pub commands: Vec<StatisticsRow>,
}

/// Everything that `explain` shows.
#[derive(Clone, Debug)]
pub struct Explained {
    /// In a word.
    pub verdict: String,
    /// In words.
    pub sentences: Vec<String>,
    /// What it is about, and what is counted.
    pub details: HashMap<String, OwnedValue>,
}

/// What the guard said.
#[derive(Clone, Debug)]
pub enum Answer {
    /// To [`Call::Status`].
    Status(Box<Status>),
    /// To [`Call::Explain`].
    Explained(Box<Explained>),
    /// To [`Call::Stats`].
    Stats(Stats),
    /// To [`Call::Config`].
    Settings(Vec<SettingRow>),
    /// To [`Call::Watched`] and [`Call::Watch`].
    Watched {
        /// What is watched now.
        rows: Vec<WatchedRow>,
        /// What was added or taken away, and which of the two.
        change: Option<(Vec<String>, bool)>,
    },
    /// To [`Call::Quota`].
    Quota(Box<Quota>),
    /// To [`Call::SetQuota`] and [`Call::ResetQuota`]: what is in force, 0 for no limit.
    QuotaIs(f64),
    /// To [`Call::Reload`].
    Reloaded,
    /// To [`Call::Attach`] and [`Call::Route`].
    Moved {
        /// How many processes were named.
        pids: usize,
        /// Where to.
        class: String,
    },
    /// To [`Call::Release`]: the control group that the processes are in now.
    Released(String),
    /// To [`Call::Insight`].
    Insight(InsightAnswer),
    /// To [`Call::Hold`].
    Hold(HoldAnswer),
}

/// Carries out `call`.
pub async fn perform(guard: &Guard1Proxy<'_>, call: &Call) -> Result<Answer, CliError> {
    Ok(match call {
        Call::Status { .. } => Answer::Status(Box::new(status(guard).await?)),
        Call::Explain { pid, .. } => {
            let (verdict, sentences, details) = guard.explain(*pid).await?;
            Answer::Explained(Box::new(Explained {
                verdict,
                sentences,
                details,
            }))
        }
        Call::Stats { .. } => Answer::Stats(stats(guard).await?),
        Call::Config { .. } => Answer::Settings(guard.settings().await?),
        Call::Watched { .. } => Answer::Watched {
            rows: guard.watched().await?,
            change: None,
        },
        Call::Watch { units, add, .. } => {
            match add {
                true => guard.watch(units.clone()).await?,
                false => guard.unwatch(units.clone()).await?,
            };
            Answer::Watched {
                rows: guard.watched().await?,
                change: Some((units.clone(), *add)),
            }
        }
        Call::Quota { .. } => Answer::Quota(Box::new(quota::show(guard).await?)),
        Call::SetQuota { percent, reason } => {
            Answer::QuotaIs(quota::set(guard, *percent, reason.as_deref()).await?)
        }
        Call::ResetQuota => Answer::QuotaIs(quota::auto(guard).await?),
        Call::Reload => {
            guard.reload().await?;
            Answer::Reloaded
        }
        Call::Attach { pids, class, terms } => {
            guard
                .attach(pids.clone(), class.clone(), options(terms))
                .await?;
            Answer::Moved {
                pids: pids.len(),
                class: class.clone(),
            }
        }
        Call::Route { pid, class } => {
            guard.route(*pid, class.clone()).await?;
            Answer::Moved {
                pids: 1,
                class: class.clone(),
            }
        }
        Call::Insight(call) => Answer::Insight(insight::perform(guard, call).await?),
        Call::Hold(call) => Answer::Hold(holds::perform(guard, call).await?),
        Call::Release { pid } => Answer::Released(guard.release(*pid).await?),
    })
}

async fn stats(guard: &Guard1Proxy<'_>) -> Result<Stats, CliError> {
    let (settings, watched, commands) =
        try_join!(guard.settings(), guard.watched(), guard.statistics())?;
    let value = |key: &str| {
        settings
            .iter()
            .find(|row| row.key == key)
            .map(|row| row.value.as_str())
    };
    Ok(Stats {
        enabled: value("adaptive.enabled") == Some("true"),
        threshold: value("adaptive.route_threshold").and_then(|text| text.parse().ok()),
        min_samples: value("adaptive.min_samples").and_then(|text| text.parse().ok()),
        watched: watched.iter().map(|row| u64::from(row.processes)).sum(),
        commands,
    })
}

/// Everything that `status` shows.
pub async fn status(guard: &Guard1Proxy<'_>) -> Result<Status, CliError> {
    // Three calls at once, not one for each property.
    let (mut properties, settings, workloads) = try_join!(
        properties(guard),
        async { guard.settings().await.map_err(CliError::from) },
        async { guard.list_workloads().await.map_err(CliError::from) },
    )?;
    Ok(Status {
        version: take(&mut properties, "Version")?,
        state: take(&mut properties, "State")?,
        state_reasons: take(&mut properties, "StateReasons")?,
        capabilities: take(&mut properties, "Capabilities")?,
        exec_events: take(&mut properties, "ExecEvents")?,
        exec_events_lost: take(&mut properties, "ExecEventsLost")?,
        interval: settings
            .into_iter()
            .find(|row| row.key == "sampling.interval_sec")
            .map_or(String::new(), |row| row.value),
        classes: take(&mut properties, "Classes")?,
        watched: take(&mut properties, "Watched")?,
        holds: take(&mut properties, "Holds")?,
        workloads,
        routed: take(&mut properties, "RoutedTotal")?,
        recovered: take(&mut properties, "RecoveredTotal")?,
        failed: take(&mut properties, "FailedTotal")?,
    })
}

async fn properties(guard: &Guard1Proxy<'_>) -> Result<HashMap<String, OwnedValue>, CliError> {
    let proxy = guard.inner();
    let properties = PropertiesProxy::builder(proxy.connection())
        .destination(proxy.destination().to_owned())?
        .path(proxy.path().to_owned())?
        .cache_properties(CacheProperties::No)
        .build()
        .await?;
    let all = properties.get_all(proxy.interface().to_owned()).await;
    all.map_err(|error| zbus::Error::from(error).into())
}

/// A property of those that were read.
fn take<T: TryFrom<OwnedValue>>(
    properties: &mut HashMap<String, OwnedValue>,
    name: &str,
) -> Result<T, CliError> {
    let value = properties.remove(name);
    value.and_then(|value| T::try_from(value).ok()).ok_or_else(|| {
        CliError::Failed(format!(
            "the running guard does not tell its {name} as this program knows it: it may be of another version; restart \
             it with: systemctl --user restart workload-guard"
        ))
    })
}
