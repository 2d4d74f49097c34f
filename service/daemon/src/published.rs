//! What the bus shows: one value, replaced whole, read without waiting.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use guard_policy::settings::Settings;
use workload_guard_dbus::types::{
    ClassRow, HoldRow, SettingRow, SignalRow, State, StatisticsRow, WatchedRow, WorkloadRow,
};

use crate::history::Tally;

/// Everything that a getter can answer.
#[derive(Clone, Debug)]
pub struct Published {
    /// Overall state.
    pub state: State,
    /// Why it is not normal.
    pub reasons: Vec<String>,
    /// What this machine offers.
    pub capabilities: Vec<String>,
    /// `active`, or why the kernel does not tell of new programs.
    pub exec_events: String,
    /// Exec events that nobody looked at, since start.
    pub exec_events_lost: u64,
    /// What is looked at.
    pub watched: Vec<WatchedRow>,
    /// The classes.
    pub classes: Vec<ClassRow>,
    /// The settings with their origins.
    pub settings: Vec<SettingRow>,
    /// What is held.
    pub holds: Vec<HoldRow>,
    /// By scope.
    pub workloads: BTreeMap<String, WorkloadView>,
    /// What adaptive routing learned, by command.
    pub statistics: Arc<Vec<StatisticsRow>>,
    /// Routes, recoveries and failed moves since start.
    pub totals: Totals,
    /// The heavy class's quota.
    pub quota: QuotaView,
    /// The same in detail.
    pub tally: Arc<Tally>,
    /// The settings in force.
    pub in_force: Arc<Settings>,
    /// systemd's version, as it tells it.
    pub systemd: String,
}

impl Default for Published {
    fn default() -> Self {
        Published {
            state: State::Normal,
            reasons: Vec::new(),
            capabilities: Vec::new(),
            exec_events: String::new(),
            exec_events_lost: 0,
            watched: Vec::new(),
            classes: Vec::new(),
            settings: Vec::new(),
            holds: Vec::new(),
            workloads: BTreeMap::new(),
            statistics: Arc::default(),
            totals: Totals::default(),
            quota: QuotaView::default(),
            tally: Arc::default(),
            in_force: Arc::default(),
            systemd: String::new(),
        }
    }
}

/// The heavy class's quota as the bus shows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QuotaView {
    /// The slice.
    pub slice: String,
    /// systemd's quota in percent of one logical CPU; 0 for no limit.
    pub quota: f64,
    /// The kernel's; 0 for none.
    pub enforced: f64,
    /// Bounds of the settings.
    pub minimum: u32,
    /// Likewise.
    pub maximum: u32,
    /// Whether a controller moves it.
    pub dynamic: bool,
    /// Which.
    pub policy: String,
    /// Who has it.
    pub control: String,
    /// Each signal with its age at `looked`.
    pub signals: Vec<SignalRow>,
    /// When the signals were read.
    pub looked: Option<Instant>,
    /// The last decision, in words.
    pub last_decision: String,
    /// The last change, in words.
    pub last_change: String,
    /// Changes since start.
    pub changes: u64,
}

/// A workload as the bus shows it.
#[derive(Clone, Debug)]
pub struct WorkloadView {
    /// What `ListWorkloads` answers.
    pub row: WorkloadRow,
    /// The reason in words.
    pub reason_text: String,
    /// Its processes at the last sample.
    pub pids: Vec<u32>,
}

/// Counters since the daemon started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Trees moved into a class.
    pub routed: u64,
    /// Trees brought back.
    pub recovered: u64,
    /// Moves that did not happen.
    pub failed: u64,
}

/// The published value, shared by the loop that writes it and the objects that read it.
#[derive(Clone, Default)]
pub struct Board(Arc<Mutex<Arc<Published>>>);

impl Board {
    /// The value of this moment.
    pub fn read(&self) -> Arc<Published> {
        self.lock().clone()
    }

    /// Replaces the value; answers the one before.
    pub fn publish(&self, next: Published) -> Arc<Published> {
        std::mem::replace(&mut self.lock(), Arc::new(next))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Arc<Published>> {
        // Nothing can panic while the lock is held: an Arc is swapped.
        self.0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
