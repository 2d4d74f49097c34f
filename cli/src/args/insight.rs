//! What can be typed about what happened, and why.

use std::path::PathBuf;

use clap::Subcommand;

// Lines of JSON's keys of at most 72 columns, which the manual page does not break.
const HISTORY_HELP: &str = "\
From snapshots of every 5 minutes ([history] in guard.toml): what was routed and brought back, CPU pressure, \
CPU and throttling of heavy work, the quota, and the greatest consumers. The guard's own wait is the run-queue \
delay of its own thread, not the host's scheduling delay.";

const HISTORY_JSON: &str = "\
JSON, one object:
  now            seconds since 1970
  windows        of 1, 6 and 24 hours: [{window_sec, snapshots, first, last,
                 restarts, route_events, recovery_events, quota_changes,
                 routed_max, quota, measures, top_cpu, throttling}]
                 measures: by the snapshots' keys, each null or
                 {samples, min, mean, p95, max, last}
                 top_cpu: [{command, class, cgroup, snapshots, cpu_pct}]
                 throttling: [{command, class, workloads, throttled_sec}]
  snapshots      the lines of history.jsonl of 24 hours
CPU is in percent of one logical CPU, pressure and throttling from 0 to 1;
what could not be measured is null. Keys are kept; new ones may be added.";

const DIAGNOSE_HELP: &str = "\
Looks at the last hour and at the machine, and tells what is worth knowing: each finding with what says so and \
what to do. Pressure is what the kernel measured. Who used CPU meanwhile is listed apart and is no proof of a \
cause.";

const DIAGNOSE_JSON: &str = "\
JSON, one object:
  pressure       normal, high or unknown
  pressure_text  the same in words
  attribution    [{who, cpu, cpu_while_high}]
                 in percent of one logical CPU, null when it never was high
  findings       [{id, severity, title, evidence, next}]
                 severity: problem, warning or note
Keys are kept; new ones may be added.";

const PROFILE_HELP: &str = "\
Looks at the whole machine for some seconds: which control groups used CPU themselves, which quotas held one up, \
how long some task waited for a CPU, and how much later than asked for a thread of the guard woke up. That and \
its run-queue delay say how the machine feels, and promise nothing.";

const PROFILE_JSON: &str = "\
JSON, one object:
  duration_sec, cpus, psi_some_avg10, psi_some, runqueue_delay_ms
  wakeup_excess_ms  {samples, p50, p95, p99, max}
  top_cpu        [{cgroup, cpu_pct}], without the groups below
  top_throttled  [{cgroup, cpu_pct, throttled_periods, periods,
                 throttled_ms}]
CPU is in percent of one logical CPU, psi from 0 to 1; what is not known
is null. Keys are kept; new ones may be added.";

const METRICS_HELP: &str = "\
OpenMetrics text. With --output it replaces FILE whole, as the textfile collector of Prometheus's node exporter \
wants it; workload-guard-metrics.timer (off unless enabled) does so every minute.";

/// The subcommands about what happened.
#[derive(Debug, Subcommand)]
pub enum InsightCommand {
    /// Show the last 1, 6 and 24 hours
    #[command(long_about = HISTORY_HELP, after_help = HISTORY_JSON)]
    History {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Say what the last hour tells, and what to do about it
    #[command(long_about = DIAGNOSE_HELP, after_help = DIAGNOSE_JSON)]
    Diagnose {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Look at the whole machine for some seconds: control groups by CPU and throttling, pressure, and how late a timer is
    #[command(long_about = PROFILE_HELP, after_help = PROFILE_JSON)]
    Profile {
        /// Seconds, from 0.5 to 60
        #[arg(long, default_value_t = 5.0, value_name = "SECONDS")]
        duration: f64,
        /// Wakeups that are timed, from 10 to 2000
        #[arg(long, default_value_t = 200, value_name = "COUNT")]
        samples: u32,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Write the last 24 hours as a page with plots
    Report {
        /// Write it here: one file that needs no other
        #[arg(long, required = true, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
        html: PathBuf,
    },
    /// Print the guard's counters for a monitoring system
    #[command(long_about = METRICS_HELP)]
    Metrics {
        /// Write them here instead
        #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
        output: Option<PathBuf>,
    },
}
