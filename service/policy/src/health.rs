//! What keeps the guard from doing all of its work, in words with the way out.

use std::path::PathBuf;

/// One reason for `degraded`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Problem {
    /// The user manager has no cpu controller.
    #[error(
        "the cpu controller is not delegated to the user manager ({controllers_file}), so quotas and weights are not enforced; \
         as root, write the two lines `[Service]` and `Delegate=cpu cpuset io memory pids` into \
         /etc/systemd/system/user@.service.d/delegate.conf, run `systemctl daemon-reload`, and log in again"
    )]
    NoCpuController {
        /// The file that says so.
        controllers_file: String,
    },
    /// A slice has no cgroup.
    #[error("{slice} has no control group: {why}; `systemctl --user start {slice}` shows more")]
    SliceMissing {
        /// The slice.
        slice: String,
        /// What systemd said.
        why: String,
    },
    /// A slice has no budget of its own.
    #[error(
        "{slice} has no CPUQuota, so {class} work is not bounded; {}",
        if crate::budget::is_shipped(slice) {
            "install the guard's slice units".to_owned()
        } else {
            format!("set `quota` below [classes.{class}], or CPUQuota= in a unit file of the slice")
        }
    )]
    NoBudget {
        /// The slice.
        slice: String,
        /// Its class.
        class: String,
    },
    /// The kernel's value is not systemd's.
    #[error(
        "{file} says {kernel}, though systemd says {systemd}; `systemctl --user restart {unit}` applies it when the slice is empty"
    )]
    BudgetNotInKernel {
        /// The unit.
        unit: String,
        /// The kernel's file.
        file: String,
        /// Its value.
        kernel: String,
        /// systemd's value.
        systemd: String,
    },
    /// systemd does not take what the settings of a class say.
    #[error("systemd does not set {property} of {unit}: {why}")]
    BudgetRefused {
        /// The slice.
        unit: String,
        /// The property's name.
        property: &'static str,
        /// What systemd said.
        why: String,
    },
    /// A controller that a class's budget needs is not the user manager's.
    #[error(
        "the {controller} controller is not delegated to the user manager ({controllers_file}), so `classes.{class}.{key}` is not enforced; \
         as root, write the two lines `[Service]` and `Delegate=cpu cpuset io memory pids` into \
         /etc/systemd/system/user@.service.d/delegate.conf, run `systemctl daemon-reload`, and log in again; or take the key out"
    )]
    NoController {
        /// Such as `io`.
        controller: &'static str,
        /// The class.
        class: String,
        /// Its key.
        key: &'static str,
        /// The file that says so.
        controllers_file: String,
    },
    /// The controller lacks telemetry.
    #[error(
        "the quota of {slice} is frozen where it is: {why}; `workload-guard quota` shows every signal"
    )]
    QuotaFrozen {
        /// The slice.
        slice: String,
        /// What is missing, stale or malformed.
        why: String,
    },
    /// Somebody else changed a quota that the controller moves.
    #[error(
        "somebody else set the quota of {slice} to {quota}{}, so the controller leaves it alone; `workload-guard quota auto` hands it back",
        drop_in.as_ref().map_or_else(String::new, |file| format!(" (see {})", file.display()))
    )]
    QuotaYielded {
        /// The slice.
        slice: String,
        /// Such as `120%`.
        quota: String,
        /// The drop-in that says so, where one outranks the guard's.
        drop_in: Option<PathBuf>,
    },
    /// A drop-in will win over the controller's value.
    #[error(
        "{} sets CPUQuota= of {slice} and wins over the guard's runtime value at the next daemon-reload; to have it as the value that the \
         guard starts from, rename it so that it sorts before 50-CPUQuota.conf",
        file.display()
    )]
    QuotaOutranked {
        /// The slice.
        slice: String,
        /// The drop-in.
        file: PathBuf,
    },
    /// systemd did not set a quota.
    #[error("{0}; it is tried again at the next decision")]
    QuotaNotSet(String),
    /// A scheduler of sched_ext is loaded.
    #[error(
        "the CPU scheduler {0} (sched_ext) replaces the kernel's own and need not heed weights and quotas, so budgets may not hold; \
         unload it (`systemctl stop scx.service` or scx_loader.service, whichever started it)"
    )]
    SchedExt(String),
    /// The state folder cannot be written.
    #[error("the routes cannot be saved in {}: {error}; routing goes on, but a restart of the guard may have to guess where work came from", path.display())]
    StateUnwritable {
        /// The file.
        path: PathBuf,
        /// The system's words.
        error: String,
    },
    /// systemd does not answer.
    #[error("systemd's user manager does not answer on the bus: {0}")]
    NoSystemd(String),
    /// What was learned cannot be kept.
    #[error("what adaptive routing learned cannot be saved in {}: {error}; it is lost when the guard stops", path.display())]
    LearnedUnwritable {
        /// The file.
        path: PathBuf,
        /// The system's words.
        error: String,
    },
    /// A value of `[shadow]` is wrong.
    #[error("the shadow policy is off: {0}")]
    Shadow(String),
    /// A settings or rules file was wrong at start, so that defaults are in force.
    #[error("{0}")]
    Settings(String),
}
