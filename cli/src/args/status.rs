//! What can be typed about the guard's state.

use clap::Args;

use crate::render::format::Format;

// Lines of at most 72 columns, which the manual page does not break.
pub const HELP: &str = "\
JSON, one object:
  version        the guard's version
  state          normal, degraded or paused
  state_reasons  [text]: why the state is not normal
  capabilities   [name]: what this machine offers
  exec_events    `active`, or why the kernel does not tell of new programs
  exec_events_lost  events that a look at everything made good
  classes        [{name, slice, quota, weight, memory_high, io_weight,
                 tasks_max, from_settings}]
                 quota in percent of one logical CPU, memory_high in bytes,
                 0 for none; from_settings: which of them the guard's
                 settings say, the others are from unit files
  watched        [{unit, processes}]
  holds          as `workload-guard holds --json` prints them
  workloads      [{path, pid, class, reason, cpu, source, control_group,
                 command, since_usec, throttled_usec}]
                 cpu in percent of one logical CPU,
                 since_usec in microseconds since 1970,
                 throttled_usec: how long its budget held it up, over all
                 CPUs; null where the kernel does not tell
  totals         {routed, recovered, failed} since the guard started
With --follow: a line of JSON for each thing that happens, with `event`:
  status, started {status}; stopped; routed, recovered, move-failed, ended;
  state {state}, state-reasons {state_reasons}; held, unheld {hold};
  and ts_usec, in microseconds since 1970
Keys are kept; new ones may be added.
With --format a line in which these words are filled in:
  {state}        normal, degraded or paused; stopped, with --follow
  {reasons}      why it is not normal, with `; ` in between
  {workloads}    how many there are; {workloads.CLASS}: of that class
  {cpu}          what they used at the last sample, in percent of one
                 logical CPU; {cpu.CLASS}: those of that class
  {quota.CLASS}  what its slice may use, likewise; `none` without one
  {watched}      how many processes are watched
  {holds}        how many holds there are
  {routed}, {recovered}, {failed}  since the guard started
  {version}      the guard's
{{ and }} are braces. With --follow too: the line again whenever it differs,
as a status bar wants it.";

/// `workload-guard status …`
#[derive(Debug, Default, Args)]
pub struct StatusArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Go on with a line for each thing that happens; nothing is polled
    #[arg(long, short)]
    pub follow: bool,
    /// Print one line instead, for a status bar: '{state} {workloads.heavy}'
    #[arg(long, value_name = "TEXT", conflicts_with = "json", value_parser = Format::parse)]
    pub format: Option<Format>,
}
