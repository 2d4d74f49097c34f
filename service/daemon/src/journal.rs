//! The decision records: the seed's words in the message, structured fields beside them, so that
//! `journalctl --user -u workload-guard WORKLOAD_REASON=known-heavy` works.

use guard_policy::action::{Failure, Move, Placement, RecoverCause, Why};
use guard_policy::id::ProcId;
use guard_policy::printable::{command_line, printable};
use guard_policy::shadow::Candidate;
use guard_system::mover::{Arrival, Route};
use log::Level;
use log::kv::Value;
use workload_guard_dbus::types::{HoldRow, Reason};

/// Journal fields with their values; a field whose value is unknown is left out.
type Fields = Vec<(&'static str, String)>;

fn write(level: Level, fields: &Fields, message: std::fmt::Arguments<'_>) {
    let pairs: Vec<(&str, Value<'_>)> = fields
        .iter()
        .map(|(key, value)| (*key, Value::from(value.as_str())))
        .collect();
    log::logger().log(
        &log::Record::builder()
            .level(level)
            .target("workload_guard")
            .args(message)
            .key_values(&pairs.as_slice())
            .build(),
    );
}

/// The reason's name on the bus and in the journal.
pub fn reason_of(why: &Why, placement: Placement) -> Reason {
    match why {
        Why::KnownHeavy { .. } => Reason::KnownHeavy,
        Why::SustainedCpu { .. } => Reason::SustainedCpu,
        Why::Adaptive { .. } => Reason::Adaptive,
        Why::Asked { .. } => match placement {
            Placement::Placed => Reason::Placed,
            Placement::Routed => Reason::Requested,
        },
    }
}

/// Adds what is measured of the reason to the fields, and answers it for the message.
fn measured(why: &Why, fields: &mut Fields) -> String {
    match why {
        Why::KnownHeavy { rule, cpu } => {
            fields.push(("WORKLOAD_RULE", rule.to_string()));
            if let Some(cpu) = cpu {
                fields.push(("WORKLOAD_CPU", format!("{cpu:.1}")));
            }
            format!("rule=\"{rule}\"")
        }
        Why::SustainedCpu {
            tree,
            cpu,
            threshold,
            hot_samples,
        } => {
            fields.push(("WORKLOAD_CPU", format!("{cpu:.1}")));
            fields.push(("WORKLOAD_THRESHOLD", threshold.to_string()));
            fields.push(("WORKLOAD_HOT_SAMPLES", hot_samples.to_string()));
            let whose = if *tree { " of=tree" } else { "" };
            format!("cpu={cpu:.1} threshold={threshold} hot_samples={hot_samples}{whose}")
        }
        Why::Adaptive {
            command,
            cpu,
            score,
            threshold,
            mean,
            samples,
        } => {
            fields.push(("WORKLOAD_CPU", format!("{cpu:.1}")));
            fields.push(("WORKLOAD_SCORE", format!("{score:.2}")));
            fields.push(("WORKLOAD_THRESHOLD", threshold.to_string()));
            format!(
                "cpu={cpu:.1} score={score:.2} threshold={threshold} usual={mean:.1} samples={samples} of={command}"
            )
        }
        Why::Asked { reason } => format!("asked=\"{reason}\""),
    }
}

/// A tree was moved.
pub fn routed(route: &Route, why: &Why, reason: Reason) {
    let mut fields: Fields = vec![
        ("WORKLOAD_PID", route.root.pid.to_string()),
        ("WORKLOAD_CLASS", route.class.clone()),
        ("WORKLOAD_REASON", reason.to_string()),
        ("WORKLOAD_SOURCE", route.source.cgroup.clone()),
        ("WORKLOAD_DESTINATION", route.cgroup.clone()),
        ("WORKLOAD_UNIT", route.unit.clone()),
        ("WORKLOAD_COMMAND", route.command.clone()),
    ];
    let measured = measured(why, &mut fields);
    write(
        Level::Info,
        &fields,
        format_args!(
            "route decision=accepted pid={} class={} reason={reason} {measured} source={} destination={} command={}",
            route.root.pid, route.class, route.source.cgroup, route.cgroup, route.command
        ),
    );
}

/// A tree was not moved though it should have been.
pub fn move_failed(order: &Move, failure: &Failure, error: &str) {
    let reason = reason_of(&order.why, order.placement);
    let mut fields: Fields = vec![
        ("WORKLOAD_PID", order.root().pid.to_string()),
        ("WORKLOAD_CLASS", order.class.clone()),
        ("WORKLOAD_REASON", reason.to_string()),
        ("WORKLOAD_ERROR", error.to_owned()),
    ];
    let measured = measured(&order.why, &mut fields);
    // A process that ended first is the ordinary case with builds, and nothing to be warned of.
    let level = match failure {
        Failure::NoSuchProcess(_) => Level::Debug,
        Failure::NeverMoved(_) => Level::Info,
        _ => Level::Warn,
    };
    write(
        level,
        &fields,
        format_args!(
            "route decision=failed pid={} class={} reason={reason} {measured} error={error}: {}",
            order.root().pid,
            order.class,
            printable(&failure.to_string())
        ),
    );
}

/// A tree was brought back.
pub fn recovered(route: &Route, cause: &RecoverCause, arrival: &Arrival) {
    let mut fields: Fields = vec![
        ("WORKLOAD_PID", route.root.pid.to_string()),
        ("WORKLOAD_CLASS", route.class.clone()),
        ("WORKLOAD_SOURCE", route.cgroup.clone()),
        ("WORKLOAD_DESTINATION", arrival.cgroup.clone()),
        ("WORKLOAD_UNIT", route.unit.clone()),
        ("WORKLOAD_COMMAND", route.command.clone()),
    ];
    let cause = match cause {
        RecoverCause::Calm { cpu, samples } => {
            fields.push(("WORKLOAD_CPU", format!("{cpu:.1}")));
            fields.push(("WORKLOAD_REASON", "calm".to_owned()));
            format!("reason=calm cpu={cpu:.1} low_samples={samples}")
        }
        RecoverCause::Released | RecoverCause::LeaseEnded | RecoverCause::Exempted => {
            let reason = match cause {
                RecoverCause::LeaseEnded => "lease-ended",
                RecoverCause::Exempted => "exempted",
                _ => "released",
            };
            fields.push(("WORKLOAD_REASON", reason.to_owned()));
            format!("reason={reason}")
        }
        RecoverCause::Resumed => {
            fields.push(("WORKLOAD_REASON", "resumed".to_owned()));
            "reason=resumed".to_owned()
        }
    };
    write(
        Level::Info,
        &fields,
        format_args!(
            "unrouted pid={} class={} {cause} source={} destination={} exact={} {}command={}",
            route.root.pid,
            route.class,
            route.cgroup,
            arrival.cgroup,
            arrival.exact,
            if arrival.note.is_empty() {
                String::new()
            } else {
                format!("note=\"{}\" ", arrival.note)
            },
            route.command
        ),
    );
}

/// A tree stays where it is though it should have come back.
pub fn recovery_failed(route: &Route, failure: &Failure) {
    write(
        Level::Warn,
        &of_workload(route),
        format_args!(
            "recovery failed pid={} unit={}: {}; it is tried again later",
            route.root.pid,
            route.unit,
            printable(&failure.to_string())
        ),
    );
}

/// A hold began or ended.
pub fn hold(what: &str, row: &HoldRow) {
    let fields: Fields = vec![
        ("WORKLOAD_HOLD", row.id.to_string()),
        ("WORKLOAD_HOLD_KIND", row.kind.clone()),
        ("WORKLOAD_PID", row.pid.to_string()),
    ];
    write(
        Level::Info,
        &fields,
        format_args!(
            "hold {what} id={} kind={} pid={} unit={} owner={} reason=\"{}\" command={}",
            row.id, row.kind, row.pid, row.unit, row.owner_command, row.reason, row.subject
        ),
    );
}

/// A workload's scope is gone, and its root lives elsewhere: in another class, or where somebody put it.
pub fn moved_on(route: &Route, cgroup: &str) {
    let mut fields = of_workload(route);
    fields.push(("WORKLOAD_DESTINATION", cgroup.to_owned()));
    write(
        Level::Info,
        &fields,
        format_args!(
            "moved pid={} unit={} destination={cgroup} command={}",
            route.root.pid, route.unit, route.command
        ),
    );
}

/// The root of a workload was taken out of its scope by somebody; others stay.
pub fn root_taken(route: &Route, cgroup: &str, next: ProcId) {
    let mut fields = of_workload(route);
    fields.push(("WORKLOAD_DESTINATION", cgroup.to_owned()));
    write(
        Level::Info,
        &fields,
        format_args!(
            "taken out pid={} unit={} destination={cgroup}; the workload goes on with process {next}",
            route.root.pid, route.unit
        ),
    );
}

fn of_workload(route: &Route) -> Fields {
    vec![
        ("WORKLOAD_PID", route.root.pid.to_string()),
        ("WORKLOAD_UNIT", route.unit.clone()),
        ("WORKLOAD_CLASS", route.class.clone()),
    ]
}

/// A workload ended by itself.
pub fn ended(route: &Route) {
    write(
        Level::Info,
        &of_workload(route),
        format_args!(
            "ended pid={} unit={} command={}",
            route.root.pid, route.unit, route.command
        ),
    );
}

/// The shadow policy would route a process, or bring it back. Nothing follows.
pub fn shadow(candidate: &Candidate) {
    let Candidate {
        decision,
        id,
        cpu,
        average,
        threshold,
        samples,
        cgroup,
        argv,
    } = candidate;
    let command = command_line(argv);
    let fields: Fields = vec![
        ("WORKLOAD_PID", id.to_string()),
        ("WORKLOAD_SHADOW", decision.to_string()),
        ("WORKLOAD_CPU", format!("{cpu:.1}")),
        ("WORKLOAD_EWMA", format!("{average:.1}")),
        ("WORKLOAD_THRESHOLD", threshold.to_string()),
        ("WORKLOAD_SAMPLES", samples.to_string()),
        ("WORKLOAD_SOURCE", cgroup.to_string()),
        ("WORKLOAD_COMMAND", command.clone()),
    ];
    write(
        Level::Info,
        &fields,
        format_args!(
            "shadow decision={decision} pid={id} cpu={cpu:.1} ewma={average:.1} threshold={threshold} \
             samples={samples} action=log-only source={cgroup} command={command}"
        ),
    );
}

/// The heavy class's quota changed: `by` a policy, `asked`, `reset`, or `other`.
pub fn quota_changed(from: Option<f64>, to: Option<f64>, by: &str, words: &str) {
    let (from, to) = (quota(from), quota(to));
    let fields: Fields = vec![
        ("WORKLOAD_REASON", by.to_owned()),
        ("WORKLOAD_QUOTA_FROM", from.clone()),
        ("WORKLOAD_QUOTA_TO", to.clone()),
    ];
    write(
        Level::Info,
        &fields,
        format_args!("quota changed from={from} to={to} by={by}: {words}"),
    );
}

/// What a controller that does not act would set.
pub fn quota_proposed(policy: &str, proposal: &guard_policy::quota::Proposal) {
    let (from, to) = (quota(Some(proposal.from)), quota(Some(proposal.to)));
    let fields: Fields = vec![
        ("WORKLOAD_REASON", format!("shadow-{policy}")),
        ("WORKLOAD_QUOTA_FROM", from.clone()),
        ("WORKLOAD_QUOTA_TO", to.clone()),
    ];
    write(
        Level::Info,
        &fields,
        format_args!(
            "quota shadow={policy} current={from} proposal={to} reason={} action=log-only",
            proposal.why
        ),
    );
}

fn quota(percent: Option<f64>) -> String {
    percent.map_or("none".to_owned(), |percent| percent.to_string())
}
