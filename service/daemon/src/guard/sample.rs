//! One look at what is watched, and all that follows from it.

use std::time::Duration;

use guard_policy::action::Placement;
use guard_policy::event::Event;
use guard_policy::printable::command_line;
use guard_system::clock;

use super::Guard;
use crate::record::Record;

/// The clocks differ by less without any sleep.
const SLEEP: Duration = Duration::from_millis(500);

impl Guard {
    /// One look at what is watched.
    pub(super) async fn sample(&mut self) {
        if self.slept() {
            self.check_health().await;
            self.reconcile_due = true;
        }
        self.refresh_health().await;
        let parents = self.health.parent_cgroups(&self.config.settings);
        let scopes: Vec<(String, String)> = self
            .routes
            .values()
            .map(|Record { route, .. }| (route.unit.clone(), route.cgroup.clone()))
            .collect();
        let look = self.sampler.sample(&parents, &scopes);
        let alive: std::collections::HashSet<&str> = look
            .sample
            .workloads
            .iter()
            .map(|usage| usage.unit.as_str())
            .collect();
        let gone: Vec<String> = scopes
            .iter()
            .filter(|(unit, _)| !alive.contains(unit.as_str()))
            .map(|(unit, _)| unit.clone())
            .collect();
        for unit in gone {
            self.gone(&unit).await;
        }
        self.read_commands();
        self.consult_shadow(&look);
        self.look_at_holds();
        self.watched = look.watched;
        self.scope_pids = look.scope_pids;
        self.notice_taken_roots();
        self.decide(Event::Sample(look.sample));
        self.read_throttling();
        self.keep_learned();
        self.keep_history();
    }

    /// Whether the machine has slept since the last look.
    fn slept(&mut self) -> bool {
        let before = std::mem::replace(&mut self.asleep, clock::asleep());
        let slept = self.asleep.saturating_sub(before);
        if slept < SLEEP {
            return false;
        }
        log::info!(
            "the machine slept for {} s: looking at everything again",
            slept.as_secs()
        );
        self.sampler.expect_moved();
        true
    }

    /// Reads the commands of placed workloads again: who attaches itself goes on to execute another
    /// program, as `workload-guard run` does.
    fn read_commands(&mut self) {
        for Record { route, .. } in self.routes.values_mut() {
            if route.placement == Placement::Placed
                && self.proc.is_alive(route.root).unwrap_or(false)
                && let Ok(Some(argv)) = self.proc.argv(route.root.pid)
                && !argv.is_empty()
            {
                let command = command_line(&argv);
                if command != route.command {
                    route.command = command;
                }
            }
        }
    }
}
