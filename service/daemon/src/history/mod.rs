//! The history: a thread of its own that counts, writes and reads, so that neither the loop nor the bus waits
//! for a scan of all processes or for a slow disk. It sleeps but for a snapshot and for questions.

mod file;
mod look;
mod metrics;

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use futures::channel::oneshot;
use guard_insight::diagnose::{self, Diagnosis, diagnose};
use guard_insight::history::History as Lines;
use guard_insight::snapshot::Snapshot;
use guard_insight::summary::{Summary, summarize};
use guard_insight::throttling::{self, Throttled};
use workload_guard_dbus::GuardError;

use crate::published::Published;
use file::HistoryFile;
use look::Looker;
pub use look::{Counters, Machine, Moment, Places, pressure};
pub use metrics::Tally;

/// Questions that may wait; more are refused.
const MAX_WAITING: usize = 32;

/// What the thread is asked for.
enum Ask {
    /// Count from here on.
    Begin(Places),
    /// Take a snapshot.
    Snapshot(Moment),
    Summary(u32, oneshot::Sender<Summary>),
    Since(u64, usize, oneshot::Sender<Vec<Snapshot>>),
    Diagnose(Box<diagnose::Guard>, Machine, oneshot::Sender<Diagnosis>),
    Metrics(std::sync::Arc<Published>, oneshot::Sender<String>),
}

/// The way to the thread.
#[derive(Clone)]
pub struct History {
    ask: SyncSender<Ask>,
}

impl History {
    /// Starts the thread. `state` is the folder of the file.
    pub fn start(state: Option<PathBuf>) -> std::io::Result<History> {
        let (ask, asked) = sync_channel(MAX_WAITING);
        thread::Builder::new()
            .name("history".to_owned())
            .stack_size(512 << 10)
            .spawn(move || Historian::new(state).run(&asked))?;
        Ok(History { ask })
    }

    /// Counts from now on, for a first snapshot.
    pub fn begin(&self, places: Places) {
        self.tell(Ask::Begin(places));
    }

    /// Takes a snapshot, in a while.
    pub fn snapshot(&self, moment: Moment) {
        self.tell(Ask::Snapshot(moment));
    }

    /// The last so many seconds.
    pub async fn summary(&self, window: u32) -> Result<Summary, GuardError> {
        self.ask(|answer| Ask::Summary(window, answer)).await
    }

    /// Snapshots since a moment, the newest so many.
    pub async fn since(&self, since: u64, max: usize) -> Result<Vec<Snapshot>, GuardError> {
        self.ask(|answer| Ask::Since(since, max, answer)).await
    }

    /// What the last hour and the machine tell.
    pub async fn diagnose(
        &self,
        guard: diagnose::Guard,
        machine: Machine,
    ) -> Result<Diagnosis, GuardError> {
        self.ask(|answer| Ask::Diagnose(Box::new(guard), machine, answer))
            .await
    }

    /// The text for a monitoring system.
    pub async fn metrics(
        &self,
        published: std::sync::Arc<Published>,
    ) -> Result<String, GuardError> {
        self.ask(|answer| Ask::Metrics(published, answer)).await
    }

    fn tell(&self, ask: Ask) {
        // A snapshot that finds the thread held up by a disk for minutes is left out; the next one covers it.
        if self.ask.try_send(ask).is_err() {
            log::warn!("the history is busy; a snapshot is left out");
        }
    }

    async fn ask<T>(&self, make: impl FnOnce(oneshot::Sender<T>) -> Ask) -> Result<T, GuardError> {
        let (answer, wait) = oneshot::channel();
        let ended = || GuardError::SystemdRefused("the guard is stopping".into());
        self.ask.try_send(make(answer)).map_err(|error| match error {
            TrySendError::Full(_) => GuardError::LimitExceeded(format!(
                "{MAX_WAITING} questions wait for the history already; try again when one is answered"
            )),
            TrySendError::Disconnected(_) => ended(),
        })?;
        wait.await.map_err(|_| ended())
    }
}

/// What the thread owns.
struct Historian {
    file: HistoryFile,
    throttling: HistoryFile,
    looker: Looker,
}

impl Historian {
    fn new(state: Option<PathBuf>) -> Historian {
        Historian {
            file: HistoryFile::new(state.as_deref(), "history.jsonl"),
            throttling: HistoryFile::new(state.as_deref(), "throttling.jsonl"),
            looker: Looker::new(),
        }
    }

    fn read(&self) -> Lines {
        Lines::parse(&self.file.text())
    }

    fn problem(&self) -> Option<String> {
        let problem = self.file.problem().or_else(|| self.throttling.problem());
        problem.map(str::to_owned)
    }

    fn run(mut self, asked: &Receiver<Ask>) {
        while let Ok(ask) = asked.recv() {
            // Who asked may have left; then nobody waits.
            match ask {
                Ask::Begin(places) => self.looker.begin(&places),
                Ask::Snapshot(moment) => {
                    if let Some(snapshot) = self.looker.snapshot(&moment, now()) {
                        self.file.append([snapshot.line()]);
                    }
                    let lines = moment.throttled.iter().map(Throttled::line);
                    self.throttling.append(lines);
                }
                Ask::Summary(window, answer) => {
                    let (history, now) = (self.read(), now());
                    let costs = throttling::parse(&self.throttling.text());
                    let summary = summarize(&history.snapshots, now, window.into());
                    drop(answer.send(summary.with_throttling(&costs, now)));
                }
                Ask::Since(since, max, answer) => {
                    let history = self.read();
                    drop(answer.send(history.since(since, max).into_iter().cloned().collect()));
                }
                Ask::Diagnose(mut guard, machine, answer) => {
                    guard.history_problem = self.problem();
                    let situation = diagnose::Situation {
                        now: now(),
                        history: self.read().snapshots,
                        environment: self.looker.environment(&machine),
                        guard: *guard,
                    };
                    drop(answer.send(diagnose(&situation)));
                }
                Ask::Metrics(published, answer) => {
                    drop(answer.send(metrics::text(&published, &self.looker.measure())));
                }
            }
        }
    }
}

/// Seconds since 1970, as the wall clock has it now.
fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
