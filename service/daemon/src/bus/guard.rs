//! The object of `org.workloadguard.Guard1`.

use std::collections::HashMap;
use std::sync::Arc;

use guard_policy::action::Placement;
use guard_system::mover::Mover;
use workload_guard_dbus::types::{
    ClassRow, Explained, HoldRow, SettingRow, StatisticsRow, WatchedRow, WorkloadRow,
};
use workload_guard_dbus::{Guard1Backend, GuardError};
use zbus::names::OwnedUniqueName;
use zvariant::{OwnedFd, OwnedObjectPath, OwnedValue};

use super::caller;
use super::command::{Command, Commands, Target};
use super::holds::{HoldCommand, HoldTarget};
use super::options::Options;
use crate::published::Board;

/// Processes per `Attach`.
const MAX_PIDS: usize = 256;
/// Descriptors per `AttachFds`; a message carries no more anyway.
const MAX_FDS: usize = 16;

/// Slices per `Watch`; the settings take no more.
const MAX_UNITS: usize = 64;

/// Serves [`Guard1Backend`].
pub struct GuardObject {
    /// To ask the bus who called.
    pub connection: zbus::Connection,
    /// To look at processes, which changes none.
    pub mover: Arc<Mover>,
    /// What getters read.
    pub board: Board,
    /// Where wishes go.
    pub commands: Commands,
}

impl GuardObject {
    async fn place(
        &self,
        caller: Option<OwnedUniqueName>,
        targets: Vec<Target>,
        class: String,
        placement: Placement,
        options: Options,
    ) -> Result<OwnedObjectPath, GuardError> {
        let caller = caller::identify(&self.connection, caller).await?;
        let targets = targets
            .into_iter()
            .map(|target| target.of_caller(&caller))
            .collect::<Result<_, _>>()?;
        self.commands
            .ask(|answer| Command::Place {
                caller,
                targets,
                class,
                placement,
                options,
                answer,
            })
            .await
    }
}

fn check_count(count: usize, most: usize, what: &str) -> Result<(), GuardError> {
    match count {
        0 => Err(GuardError::NoSuchProcess(format!(
            "no process was named: give 1 to {most} {what}"
        ))),
        _ if count > most => Err(GuardError::LimitExceeded(format!(
            "{count} {what} in one call; at most {most} are taken"
        ))),
        _ => Ok(()),
    }
}

impl Guard1Backend for GuardObject {
    async fn attach(
        &self,
        caller: Option<OwnedUniqueName>,
        pids: Vec<u32>,
        class: String,
        options: HashMap<String, OwnedValue>,
    ) -> Result<OwnedObjectPath, GuardError> {
        check_count(pids.len(), MAX_PIDS, "PIDs")?;
        let options = Options::try_from(options)?;
        let targets = pids.into_iter().map(Target::Pid).collect();
        self.place(caller, targets, class, Placement::Placed, options)
            .await
    }

    async fn attach_fds(
        &self,
        caller: Option<OwnedUniqueName>,
        pidfds: Vec<OwnedFd>,
        class: String,
        options: HashMap<String, OwnedValue>,
    ) -> Result<OwnedObjectPath, GuardError> {
        check_count(pidfds.len(), MAX_FDS, "pidfds")?;
        let options = Options::try_from(options)?;
        let targets = pidfds.into_iter().map(Target::Fd).collect();
        self.place(caller, targets, class, Placement::Placed, options)
            .await
    }

    async fn route(
        &self,
        caller: Option<OwnedUniqueName>,
        pid: u32,
        class: String,
    ) -> Result<OwnedObjectPath, GuardError> {
        let targets = vec![Target::Pid(pid)];
        self.place(
            caller,
            targets,
            class,
            Placement::Routed,
            Options::default(),
        )
        .await
    }

    async fn release(
        &self,
        caller: Option<OwnedUniqueName>,
        pid: u32,
    ) -> Result<String, GuardError> {
        let pid = match pid {
            0 => caller::pid(&self.connection, caller)
                .await?
                .unwrap_or_default(),
            pid => pid,
        };
        self.commands
            .ask(|answer| Command::ReleaseProcess { pid, answer })
            .await
    }

    async fn watch(
        &self,
        caller: Option<OwnedUniqueName>,
        units: Vec<String>,
        add: bool,
    ) -> Result<Vec<String>, GuardError> {
        // Only the guard's own user changes its settings.
        caller::pid(&self.connection, caller).await?;
        if units.is_empty() || units.len() > MAX_UNITS {
            return Err(GuardError::InvalidSettings(format!(
                "{} units in one call; name 1 to {MAX_UNITS} slices",
                units.len()
            )));
        }
        self.commands
            .ask(|answer| Command::Watch { units, add, answer })
            .await
    }

    async fn explain(
        &self,
        caller: Option<OwnedUniqueName>,
        pid: u32,
    ) -> Result<Explained, GuardError> {
        let pid = match pid {
            0 => caller::pid(&self.connection, caller)
                .await?
                .unwrap_or_default(),
            pid => pid,
        };
        let found = self.mover.look_at(pid).await.map_err(super::error)?;
        self.commands
            .ask(|answer| Command::Explain { found, answer })
            .await
    }

    async fn reload(&self) -> Result<(), GuardError> {
        self.commands.ask(|answer| Command::Reload { answer }).await
    }

    async fn pause(
        &self,
        caller: Option<OwnedUniqueName>,
        options: HashMap<String, OwnedValue>,
    ) -> Result<u64, GuardError> {
        self.hold(caller, HoldTarget::Everything, options).await
    }

    async fn resume(&self) -> Result<u32, GuardError> {
        self.commands
            .ask(|answer| Command::Hold(HoldCommand::Resume { answer }))
            .await
    }

    async fn exempt(
        &self,
        caller: Option<OwnedUniqueName>,
        pid: u32,
        options: HashMap<String, OwnedValue>,
    ) -> Result<u64, GuardError> {
        let target = HoldTarget::Exempt(Target::Pid(pid));
        self.hold(caller, target, options).await
    }

    async fn pin(
        &self,
        caller: Option<OwnedUniqueName>,
        pid: u32,
        options: HashMap<String, OwnedValue>,
    ) -> Result<u64, GuardError> {
        let target = HoldTarget::Pin(Target::Pid(pid));
        self.hold(caller, target, options).await
    }

    async fn release_hold(&self, hold: u64) -> Result<(), GuardError> {
        self.commands
            .ask(|answer| Command::Hold(HoldCommand::LetGo { id: hold, answer }))
            .await
            .map(|_| ())
    }

    fn holds(&self) -> Vec<HoldRow> {
        self.board.read().holds.clone()
    }

    fn workloads(&self) -> Vec<WorkloadRow> {
        self.board
            .read()
            .workloads
            .values()
            .map(|view| view.row.clone())
            .collect()
    }

    fn settings(&self) -> Vec<SettingRow> {
        self.board.read().settings.clone()
    }

    fn statistics(&self) -> Vec<StatisticsRow> {
        self.board.read().statistics.to_vec()
    }

    fn state(&self) -> String {
        self.board.read().state.to_string()
    }

    fn state_reasons(&self) -> Vec<String> {
        self.board.read().reasons.clone()
    }

    fn capabilities(&self) -> Vec<String> {
        self.board.read().capabilities.clone()
    }

    fn exec_events(&self) -> String {
        self.board.read().exec_events.clone()
    }

    fn exec_events_lost(&self) -> u64 {
        self.board.read().exec_events_lost
    }

    fn watched(&self) -> Vec<WatchedRow> {
        self.board.read().watched.clone()
    }

    fn classes(&self) -> Vec<ClassRow> {
        self.board.read().classes.clone()
    }

    fn routed_total(&self) -> u64 {
        self.board.read().totals.routed
    }

    fn recovered_total(&self) -> u64 {
        self.board.read().totals.recovered
    }

    fn failed_total(&self) -> u64 {
        self.board.read().totals.failed
    }
}
