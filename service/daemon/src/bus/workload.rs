//! The object of `org.workloadguard.Workload1`: one per workload.

use workload_guard_dbus::{GuardError, Workload1Backend};

use super::command::{Command, Commands};
use crate::published::{Board, WorkloadView};

/// Serves [`Workload1Backend`].
pub struct WorkloadObject {
    /// What does not change while the object lives, and the last sample before it is published.
    pub first: WorkloadView,
    /// Its scope.
    pub unit: String,
    /// What getters read.
    pub board: Board,
    /// Where wishes go.
    pub commands: Commands,
}

impl WorkloadObject {
    fn view(&self) -> WorkloadView {
        self.board
            .read()
            .workloads
            .get(&self.unit)
            .unwrap_or(&self.first)
            .clone()
    }
}

impl Workload1Backend for WorkloadObject {
    async fn release(&self) -> Result<String, GuardError> {
        let unit = self.unit.clone();
        self.commands
            .ask(|answer| Command::ReleaseUnit { unit, answer })
            .await
    }

    fn pids(&self) -> Vec<u32> {
        self.view().pids
    }

    fn root_pid(&self) -> u32 {
        self.first.row.pid
    }

    fn class(&self) -> String {
        self.first.row.class.clone()
    }

    fn reason(&self) -> String {
        self.first.row.reason.clone()
    }

    fn reason_text(&self) -> String {
        self.first.reason_text.clone()
    }

    fn cpu(&self) -> f64 {
        self.view().row.cpu
    }

    fn unit(&self) -> String {
        self.unit.clone()
    }

    fn source_control_group(&self) -> String {
        self.first.row.source.clone()
    }

    fn control_group(&self) -> String {
        self.first.row.control_group.clone()
    }

    fn command(&self) -> String {
        self.view().row.command
    }

    fn since(&self) -> u64 {
        self.first.row.since
    }
}
