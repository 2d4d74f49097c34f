//! The scenarios, one file each.

use anyhow::{Context, Result};
use serde::Serialize;

use crate::harness::outcome::Verdict;
use crate::harness::session::{Place, Session};

/// A scenario.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Scenario {
    /// Its name: that of its file, with dashes.
    pub name: &'static str,
    /// Where it can run.
    pub tiers: &'static [Tier],
    /// Whether a quick run has it too.
    pub quick: bool,
    /// Whether it is left to a full run: it takes long, or wants a machine that does nothing else.
    pub full: bool,
    /// Whether nothing else may run on the host meanwhile, since it measures: what it prints is shown.
    pub exclusive: bool,
    /// Seconds after which it is killed and has failed.
    pub timeout_s: u32,
    /// What it does, as the user.
    #[serde(skip)]
    pub run: fn(&Session) -> Verdict,
}

/// A kind of guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// A real systemd in a container: everything but budgets.
    Container,
    /// A virtual machine under emulation, in which budgets are enforced.
    Machine,
}

/// Of any container.
const CONTAINER: &[Tier] = &[Tier::Container];
/// Of the machine alone.
const MACHINE: &[Tier] = &[Tier::Machine];
/// Of both.
const BOTH: &[Tier] = &[Tier::Container, Tier::Machine];

/// Declares the modules and the list in one go.
macro_rules! scenarios {
    ($($module:ident),+ $(,)?) => {
        $(mod $module;)+
        /// Every scenario.
        pub const ALL: &[&Scenario] = &[$(&$module::SCENARIO),+];
        #[cfg(test)]
        const MODULES: &[&str] = &[$(stringify!($module)),+];
    };
}

scenarios! {
    known_heavy_routed_at_next_sample,
    burst_of_120ms_not_routed,
    sustained_load_routed,
    tree_routed_whole,
    tree_adopted_at_make,
    returns_to_exact_cgroup_when_source_gone,
    returns_to_living_delegated_source,
    return_scope_when_source_lives_undelegated,
    emptied_source_does_not_take_work_along,
    stopping_source_stops_the_work,
    dead_pid_in_the_middle_of_a_move,
    other_users_process_refused,
    routes_survive_kill_9,
    killed_40_times,
    killed_200_times,
    state_file_spoilt,
    slice_stopped_under_us,
    processes_taken_out,
    bus_fuzz,
    bus_fuzz_long,
    holds_of_a_person,
    lease_ends_with_its_client,
    leases_leave_nothing_behind,
    explain_tells_why,
    follow_without_polling,
    daemon_reexec_survived,
    reexec_under_load,
    user_manager_restarted,
    user_manager_hangs,
    bus_restarted,
    exits_while_routed,
    forks_during_a_move,
    move_that_fails_for_ever,
    activated_by_a_bus_call,
    attach_by_busctl_alone,
    attach_by_pidfd,
    hostile_argv_changes_no_unit_setting,
    systemd_facts,
    accelerated_measurement,
    integration_routing,
    recovery_routing,
    shadow_routing,
    adaptive_routing,
    second_instance_refused,
    bad_settings,
    unit_name_that_is_not_a_slice,
    state_folder_full,
    units_verify_clean,
    degraded_without_cpu_controller,
    install_uninstall_leaves_no_trace,
    install_replaces_python_original,
    documentation_runs,
    cli_status_json,
    history_and_diagnosis,
    cli_run_exit_status_and_terminal,
    cli_run_without_guard_asks_systemd,
    cli_errors_without_bus,
    status_line,
    status_as_quick_as_busctl,
    completions_in_three_shells,
    manual_reads_clean,
    another_sessions_guard,
    a_second_machines_guard,
    example_apps,
    memory_at_rest,
    budgets_in_kernel,
    quota_enforced,
    quota_told_at_once,
    sched_ext_reported,
    quota_put_back,
    quota_steering,
    quota_steering_in_full,
    live_experiments,
    weights_8_to_1,
    probe_latency_with_and_without_guard,
    exec_to_heavy_latency,
    lost_events_are_made_good,
    suspended_and_resumed,
    throttling_told,
    cpu_controller_late,
    fork_storm,
    app_slice_desktop_session,
    class_of_ones_own,
}

/// Those that see the end of their user manager.
const OUTSIDE: &[&Scenario] = &[
    &user_manager_restarted::SCENARIO,
    &cpu_controller_late::SCENARIO,
];

/// Where a scenario runs.
pub fn place_of(name: &str) -> Place {
    match OUTSIDE.iter().any(|scenario| scenario.name == name) {
        true => Place::Outside,
        false => Place::Inside,
    }
}

/// The scenario of that name.
pub fn find(name: &str) -> Result<&'static Scenario> {
    ALL.iter()
        .find(|scenario| scenario.name == name)
        .copied()
        .with_context(|| format!("no scenario is called {name:?}; `guard-scenarios list` has them"))
}

/// Prints all scenarios, one JSON object a line.
pub fn print_list() -> Result<()> {
    for scenario in ALL {
        println!("{}", serde_json::to_string(scenario)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_is_called_as_its_file() {
        for (scenario, module) in ALL.iter().zip(MODULES) {
            assert_eq!(scenario.name.replace('-', "_"), *module);
        }
    }

    #[test]
    fn the_list_has_what_the_testbed_reads() -> Result<()> {
        let line = serde_json::to_value(ALL[0])?;
        assert_eq!(
            line,
            serde_json::json!({
                "name": "known-heavy-routed-at-next-sample",
                "tiers": ["container", "machine"],
                "quick": true,
                "exclusive": false,
                "full": false,
                "timeout_s": 60,
            })
        );
        Ok(())
    }
}
