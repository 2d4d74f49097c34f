//! Asks for what happened, and why: `history`, `diagnose`, `profile`, `report`, `metrics`.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::StreamExt;
use futures_lite::FutureExt;
use guard_insight::profile::Profile;
use guard_insight::snapshot::Snapshot;
use guard_insight::summary::Summary;
use workload_guard_dbus::dict::to_json;
use workload_guard_dbus::history1::{FindingRow, ShareRow};
use workload_guard_dbus::{Guard1Proxy, History1Proxy, Profile1Proxy};
use zbus::Connection;
use zbus::proxy::CacheProperties;

use crate::error::CliError;
use crate::plan::InsightCall;
use crate::render;

const HOUR: u32 = 3600;
/// The stretches that are added up.
const WINDOWS: [u32; 3] = [HOUR, 6 * HOUR, 24 * HOUR];
/// The most that the guard answers at once; a day has 288.
const MAX_SNAPSHOTS: u32 = 2048;

/// What `history` shows.
#[derive(Clone, Debug)]
pub struct History {
    /// In seconds since 1970.
    pub now: u64,
    /// 1, 6 and 24 hours.
    pub windows: Vec<Summary>,
    /// Of 24 hours.
    pub snapshots: Vec<Snapshot>,
}

/// What `diagnose` shows.
#[derive(Clone, Debug)]
pub struct Diagnosis {
    /// `normal`, `high` or `unknown`.
    pub pressure: String,
    /// In words.
    pub pressure_text: String,
    /// Who used CPU.
    pub attribution: Vec<ShareRow>,
    /// What is worth knowing.
    pub findings: Vec<FindingRow>,
}

/// What the guard said.
#[derive(Clone, Debug)]
pub enum InsightAnswer {
    /// To [`InsightCall::History`].
    History(Box<History>),
    /// To [`InsightCall::Diagnose`].
    Diagnosis(Diagnosis),
    /// To [`InsightCall::Profile`].
    Profile(Box<Profile>),
    /// To [`InsightCall::Metrics`] and [`InsightCall::Report`].
    Text(String),
}

/// Carries out `call`.
pub async fn perform(
    guard: &Guard1Proxy<'_>,
    call: &InsightCall,
) -> Result<InsightAnswer, CliError> {
    let bus = guard.inner().connection();
    Ok(match call {
        InsightCall::History { .. } => InsightAnswer::History(Box::new(history(bus).await?)),
        InsightCall::Diagnose { .. } => InsightAnswer::Diagnosis(diagnose(bus).await?),
        InsightCall::Profile {
            duration, samples, ..
        } => InsightAnswer::Profile(Box::new(profile(bus, *duration, *samples).await?)),
        InsightCall::Report { html } => {
            let (history, diagnosis) = (history(bus).await?, diagnose(bus).await?);
            let page = render::report::html(&history, &diagnosis, &guard.version().await?);
            write(html, &page)?;
            InsightAnswer::Text(format!("written to {}\n", html.display()))
        }
        InsightCall::Metrics { output } => {
            InsightAnswer::Text(metrics(bus, output.as_deref()).await?)
        }
    })
}

async fn proxy(bus: &Connection) -> Result<History1Proxy<'static>, CliError> {
    Ok(History1Proxy::builder(bus)
        .cache_properties(CacheProperties::No)
        .build()
        .await?)
}

/// The last day.
async fn history(bus: &Connection) -> Result<History, CliError> {
    let proxy = proxy(bus).await?;
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    let odd = |error| CliError::Failed(format!("the guard's answer is not understood: {error}"));
    let mut windows = Vec::new();
    for window in WINDOWS {
        let summary = to_json(proxy.summary(window).await?);
        windows.push(serde_json::from_value(summary).map_err(odd)?);
    }
    let rows = proxy
        .snapshots(now.saturating_sub(u64::from(24 * HOUR)), MAX_SNAPSHOTS)
        .await?;
    let snapshots = rows
        .into_iter()
        .filter_map(|row| Snapshot::from_json(&to_json(row)))
        .collect();
    Ok(History {
        now,
        windows,
        snapshots,
    })
}

/// The last hour.
async fn diagnose(bus: &Connection) -> Result<Diagnosis, CliError> {
    let (pressure, pressure_text, attribution, findings) = proxy(bus).await?.diagnose().await?;
    Ok(Diagnosis {
        pressure,
        pressure_text,
        attribution,
        findings,
    })
}

/// A look of some seconds; on a terminal it tells how far it is.
async fn profile(bus: &Connection, duration: Duration, samples: u32) -> Result<Profile, CliError> {
    let proxy = Profile1Proxy::builder(bus)
        .cache_properties(CacheProperties::No)
        .build()
        .await?;
    let mut progress = proxy.receive_progress().await?;
    let terminal = io::stderr().is_terminal();
    let tell = async {
        while let Some(signal) = progress.next().await {
            if terminal && let Ok(args) = signal.args() {
                eprint!("\rlooking: {:3.0} %", args.part * 100.0);
            }
        }
        // The connection ended: the call tells how.
        std::future::pending().await
    };
    let found = proxy.sample(duration.as_secs_f64(), samples).or(tell).await;
    if terminal {
        eprint!("\r\x1b[K");
    }
    serde_json::from_value(to_json(found?))
        .map_err(|error| CliError::Failed(format!("the guard's answer is not understood: {error}")))
}

/// The text, or where it was written to.
async fn metrics(bus: &Connection, output: Option<&Path>) -> Result<String, CliError> {
    let text = proxy(bus).await?.metrics().await?;
    let Some(path) = output else { return Ok(text) };
    write(path, &text)?;
    Ok(String::new())
}

/// Writes a file; the error names it.
fn write(path: &Path, text: &str) -> Result<(), CliError> {
    replace(path, text.as_bytes())
        .map_err(|error| CliError::Failed(format!("{} cannot be written: {error}", path.display())))
}

/// Writes a file whole: who reads it meanwhile sees all of the old one or all of the new one. Others may read
/// it, as a node exporter has to.
fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let name = path
        .file_name()
        .ok_or_else(|| io::Error::other("it names no file"))?;
    let mut new = std::ffi::OsString::from(".");
    new.push(name);
    new.push(format!(".{}", std::process::id()));
    let new = path.with_file_name(new);
    let written = (|| {
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o644)
            .open(&new)?;
        file.write_all(text)?;
        fs::rename(&new, path)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("guard.prom");
        replace(&path, b"one").expect("written");
        replace(&path, b"two").expect("written");
        assert_eq!(fs::read(&path).expect("read"), b"two");
        fs::create_dir(folder.path().join("busy")).expect("made");
        assert!(replace(&folder.path().join("busy"), b"x").is_err());
        assert_eq!(fs::read_dir(folder.path()).expect("read").count(), 2);
    }
}
