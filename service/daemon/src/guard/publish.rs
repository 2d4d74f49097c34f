//! From the loop's state to what the bus shows, with a signal for each difference.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use workload_guard_dbus::types::{HoldRow, SettingRow, State, UNKNOWN, WatchedRow, WorkloadRow};
use workload_guard_dbus::{Guard1, Workload1, names};

use super::Guard;
use crate::bus::{GuardObject, WorkloadObject};
use crate::published::{Published, WorkloadView};
use crate::record::Record;

impl Guard {
    /// Publishes what is true now. Cheap when nothing changed but counters.
    pub(super) async fn publish(&mut self) {
        let next = self.published();
        let status = status_line(&next);
        let before = self.board.publish(next.clone());
        self.notifier.status(status);
        journal_holds(&before.holds, &next.holds);
        if let Err(error) = self.signal_differences(&before, &next).await {
            // The connection's end is seen by the loop; nothing else can fail here.
            log::debug!("the bus was not told of a change: {error}");
        }
    }

    fn published(&self) -> Published {
        let pauses = self.pause_reasons();
        let problems: Vec<String> = self
            .health
            .problems(self.unsaved())
            .map(ToString::to_string)
            .collect();
        let inspection = self.health.inspection();
        let cpu: HashMap<&str, f64> = self
            .engine
            .workloads()
            .filter_map(|tracked| Some((tracked.workload.unit.as_str(), tracked.cpu?)))
            .collect();
        let mut capabilities = inspection.capabilities.clone();
        capabilities.extend(self.mover.capabilities());
        capabilities.extend(self.programs.capability());
        Published {
            state: match (pauses.is_empty(), problems.is_empty()) {
                (false, _) => State::Paused,
                (true, false) => State::Degraded,
                (true, true) => State::Normal,
            },
            reasons: pauses.into_iter().chain(problems).collect(),
            holds: self.hold_rows(),
            capabilities,
            exec_events: self.programs.state(),
            exec_events_lost: self.programs.lost(),
            watched: self.watched_rows(),
            classes: inspection.classes.clone(),
            settings: self
                .config
                .effective
                .iter()
                .map(|setting| SettingRow {
                    key: setting.key.clone(),
                    value: setting.value.clone(),
                    origin: setting.origin.clone(),
                })
                .collect(),
            workloads: self
                .routes
                .values()
                .map(|record| {
                    let unit = &record.route.unit;
                    (
                        unit.clone(),
                        self.view(record, cpu.get(unit.as_str()).copied().unwrap_or(0.0)),
                    )
                })
                .collect(),
            statistics: self.learning.statistics.clone(),
            totals: self.totals,
            quota: self.steering.view(&self.config.settings.quota),
            tally: self.tally.clone(),
            in_force: self.config.settings.clone(),
            systemd: self.mover.systemd_version().to_owned(),
        }
    }

    fn watched_rows(&self) -> Vec<WatchedRow> {
        let cgroups = &self.health.inspection().cgroups;
        self.config
            .settings
            .watch
            .parent_units
            .iter()
            .map(|unit| WatchedRow {
                unit: unit.clone(),
                processes: cgroups
                    .get(unit)
                    .and_then(|cgroup| self.watched.iter().find(|(watched, _)| watched == cgroup))
                    .map_or(0, |(_, count)| *count),
            })
            .collect()
    }

    fn view(&self, record: &Record, cpu: f64) -> WorkloadView {
        let route = &record.route;
        WorkloadView {
            row: WorkloadRow {
                path: names::workload_path(&route.unit),
                pid: route.root.pid,
                class: route.class.clone(),
                reason: record.reason.to_string(),
                cpu,
                source: route.source.cgroup.clone(),
                control_group: route.cgroup.clone(),
                command: route.command.clone(),
                since: route.since,
                throttled: self.throttling.of(&route.unit).unwrap_or(UNKNOWN),
            },
            reason_text: route.why.clone(),
            pids: self
                .scope_pids
                .get(&route.unit)
                .cloned()
                .unwrap_or_else(|| vec![route.root.pid]),
        }
    }

    async fn signal_differences(&self, before: &Published, next: &Published) -> zbus::Result<()> {
        let server = self.connection.object_server();
        for unit in before
            .workloads
            .keys()
            .filter(|unit| !next.workloads.contains_key(*unit))
        {
            server
                .remove::<Workload1<WorkloadObject>, _>(names::workload_path(unit))
                .await?;
        }
        for (unit, view) in next
            .workloads
            .iter()
            .filter(|(unit, _)| !before.workloads.contains_key(*unit))
        {
            let object = WorkloadObject {
                first: view.clone(),
                unit: unit.clone(),
                board: self.board.clone(),
                commands: self.commands.clone(),
            };
            server
                .at(names::workload_path(unit), Workload1(Arc::new(object)))
                .await?;
        }
        self.signal_quota(&before.quota, &next.quota).await?;
        let changed = (
            before.state != next.state,
            before.reasons != next.reasons,
            before.capabilities != next.capabilities,
            before.classes != next.classes,
            before.exec_events != next.exec_events,
            before.holds != next.holds,
        );
        if changed == (false, false, false, false, false, false) {
            return Ok(());
        }
        // Absent only while the guard starts: then nobody has read anything yet.
        let Ok(guard) = server
            .interface::<_, Guard1<GuardObject>>(names::GUARD_PATH)
            .await
        else {
            return Ok(());
        };
        let emitter = guard.signal_emitter();
        let interface = guard.get().await;
        if changed.0 {
            interface.state_changed(emitter).await?;
        }
        if changed.1 {
            interface.state_reasons_changed(emitter).await?;
        }
        if changed.2 {
            interface.capabilities_changed(emitter).await?;
        }
        if changed.3 {
            interface.classes_changed(emitter).await?;
        }
        if changed.4 {
            interface.exec_events_changed(emitter).await?;
        }
        if changed.5 {
            interface.holds_changed(emitter).await?;
        }
        Ok(())
    }
}

fn journal_holds(before: &[HoldRow], next: &[HoldRow]) {
    let lacks = |rows: &[HoldRow], id: u64| rows.iter().all(|row| row.id != id);
    for row in next.iter().filter(|row| lacks(before, row.id)) {
        crate::journal::hold("began", row);
    }
    for row in before.iter().filter(|row| lacks(next, row.id)) {
        crate::journal::hold("ended", row);
    }
}

/// One line for `systemctl status`.
fn status_line(published: &Published) -> String {
    let mut by_class: BTreeMap<&str, u32> = BTreeMap::new();
    for view in published.workloads.values() {
        *by_class.entry(&view.row.class).or_default() += 1;
    }
    let workloads = if by_class.is_empty() {
        "no workloads".to_owned()
    } else {
        by_class
            .iter()
            .map(|(class, count)| format!("{count} {class}"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    match published.reasons.len() {
        _ if published.state == State::Paused => format!("{workloads}; paused"),
        0 => workloads,
        1 => format!("{workloads}; degraded for a reason that `workload-guard status` tells"),
        n => format!("{workloads}; degraded for {n} reasons that `workload-guard status` tells"),
    }
}
