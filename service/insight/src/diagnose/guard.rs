//! How the guard itself did.

use super::{Finding, Hour, Level, Pressure, Severity, Situation, WINDOW};

/// Failed moves that are worth a finding, where they are many of all.
const FAILED: u64 = 3;
/// The guard's own wait for a CPU, as part of the time.
const DELAYED: f64 = 0.01;
/// Part of the time that a workload of the protected class may be throttled.
const PROTECTED_THROTTLED: f64 = 0.05;

/// The checks.
pub(super) fn findings(
    situation: &Situation,
    hour: &Hour<'_>,
    pressure: &Pressure,
) -> Vec<Finding> {
    [
        degraded(situation),
        unwritable(situation),
        moves_failing(situation),
        restarted(hour),
        nothing_watched(situation),
        protected_throttled(situation),
        heavy_throttled(situation, hour, pressure),
        quota_at_minimum(situation, hour),
        paused(situation),
        delayed(situation, hour),
        gap(situation, hour),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn degraded(situation: &Situation) -> Option<Finding> {
    let guard = &situation.guard;
    // Told by the checks of the machine already.
    let told = |reason: &&String| {
        situation.environment.cpu_controller == Some(false) && reason.contains("cpu controller")
            || situation.environment.sched_ext.is_some() && reason.contains("sched_ext")
    };
    let reasons: Vec<String> = guard
        .reasons
        .iter()
        .filter(|reason| !told(reason))
        .cloned()
        .collect();
    (guard.state == "degraded" && !reasons.is_empty()).then(|| Finding {
        id: "degraded",
        severity: Severity::Problem,
        title: "the guard cannot do all of its work".to_owned(),
        evidence: reasons,
        next: "each reason says its way out; `workload-guard status` shows when it is gone"
            .to_owned(),
    })
}

fn unwritable(situation: &Situation) -> Option<Finding> {
    let problem = situation.guard.history_problem.as_ref()?;
    Some(Finding {
        id: "history-unwritable",
        severity: Severity::Problem,
        title: "the history cannot be written".to_owned(),
        evidence: vec![problem.clone()],
        next: "make room or make the folder writable; the snapshots of the last hours are kept until then"
            .to_owned(),
    })
}

fn moves_failing(situation: &Situation) -> Option<Finding> {
    let guard = &situation.guard;
    (guard.failed_total >= FAILED && guard.failed_total * 4 >= guard.routed_total).then(|| {
        Finding {
            id: "moves-failing",
            severity: Severity::Warning,
            title: "many moves do not happen".to_owned(),
            evidence: vec![format!(
                "{} failed and {} done since the guard started",
                guard.failed_total, guard.routed_total
            )],
            next: "see why: journalctl --user -u workload-guard | grep decision=failed".to_owned(),
        }
    })
}

fn restarted(hour: &Hour<'_>) -> Option<Finding> {
    let restarts = hour.summary.restarts;
    (restarts >= 2).then(|| Finding {
        id: "restarted",
        severity: Severity::Warning,
        title: "the guard started several times in the last hour".to_owned(),
        evidence: vec![format!("its counters began anew {restarts} times")],
        next: "see why: journalctl --user -u workload-guard -p warning --since -1h".to_owned(),
    })
}

fn nothing_watched(situation: &Situation) -> Option<Finding> {
    let watched = &situation.guard.watched;
    watched.iter().all(|(_, processes)| *processes == 0).then(|| Finding {
        id: "nothing-watched",
        severity: Severity::Warning,
        title: "nothing is watched, so nothing can be routed".to_owned(),
        evidence: watched.iter().map(|(unit, _)| format!("{unit} holds no process")).collect(),
        next: "start what must stay responsive with `workload-guard protect CMD`, or watch the desktop's \
               apps: `workload-guard watch app.slice`"
            .to_owned(),
    })
}

fn protected_throttled(situation: &Situation) -> Option<Finding> {
    let held_up: Vec<String> = situation
        .guard
        .workloads
        .iter()
        .filter(|workload| workload.class == "protected" && workload.age_sec > 0.0)
        .filter_map(|workload| {
            let throttled = workload.throttled_sec?;
            (throttled / workload.age_sec >= PROTECTED_THROTTLED).then(|| {
                format!(
                    "{}: held up {throttled:.1} s in the {:.0} s since it is there",
                    workload.command, workload.age_sec
                )
            })
        })
        .collect();
    (!held_up.is_empty()).then(|| Finding {
        id: "protected-throttled",
        severity: Severity::Warning,
        title: "what should stay responsive is held up by its own budget".to_owned(),
        evidence: held_up,
        next:
            "give it more: `systemctl --user edit protected-workload.slice` and a greater CPUQuota="
                .to_owned(),
    })
}

fn heavy_throttled(situation: &Situation, hour: &Hour<'_>, pressure: &Pressure) -> Option<Finding> {
    let ratio = hour.summary.measures.heavy_throttle_ratio?;
    if ratio.mean < situation.guard.throttle_high {
        return None;
    }
    let mut evidence = vec![format!(
        "the quota held the heavy slice up in {:.0}% of its periods (mean of {} snapshots, up to {:.0}%)",
        ratio.mean * 100.0,
        ratio.samples,
        ratio.max * 100.0
    )];
    evidence.extend(
        situation
            .guard
            .workloads
            .iter()
            .filter(|workload| workload.class != "protected")
            .map(|workload| match workload.throttled_sec {
                Some(seconds) => format!("{}: {seconds:.1} s so far", workload.command),
                None => format!("{}: unknown", workload.command),
            }),
    );
    let next = match pressure.level {
        Level::Normal => {
            "CPU was not short, so heavy work could have more: `workload-guard quota set`, or \
                          `systemctl --user edit heavy-workload.slice`"
        }
        Level::High => "CPU was short, so this is the quota at work; nothing to do",
        Level::Unknown => "whether heavy work could have more is not known without CPU pressure",
    };
    Some(Finding {
        id: "heavy-throttled",
        severity: Severity::Note,
        title: "heavy work is held up by its quota".to_owned(),
        evidence,
        next: next.to_owned(),
    })
}

fn quota_at_minimum(situation: &Situation, hour: &Hour<'_>) -> Option<Finding> {
    let guard = &situation.guard;
    let newest: Vec<f64> = hour
        .snapshots
        .iter()
        .rev()
        .take(3)
        .filter_map(|(_, snapshot)| snapshot.quota)
        .collect();
    (guard.dynamic_quota && newest.len() == 3 && newest.iter().all(|quota| *quota <= guard.quota_min)).then(
        || Finding {
            id: "quota-at-minimum",
            severity: Severity::Note,
            title: "the quota has been at its minimum for three snapshots".to_owned(),
            evidence: vec![format!("{:.0}% of one CPU for all heavy work", guard.quota_min)],
            next: "`workload-guard quota` tells which signal keeps it there; what presses may be outside of \
                   the guard's classes"
                .to_owned(),
        },
    )
}

fn paused(situation: &Situation) -> Option<Finding> {
    (situation.guard.state == "paused").then(|| Finding {
        id: "paused",
        severity: Severity::Note,
        title: "routing is paused".to_owned(),
        evidence: situation.guard.reasons.clone(),
        next: "`workload-guard holds` shows who holds it; `workload-guard resume` ends it"
            .to_owned(),
    })
}

fn delayed(situation: &Situation, hour: &Hour<'_>) -> Option<Finding> {
    let delay = hour.summary.measures.router_runqueue_delay_ms?;
    let part = delay.max / (situation.guard.interval_sec.max(1) as f64 * 1000.0);
    (part >= DELAYED).then(|| Finding {
        id: "router-delayed",
        severity: Severity::Note,
        title: "the guard's own thread waited for a CPU".to_owned(),
        evidence: vec![format!(
            "up to {:.0} ms between two snapshots ({:.1}% of the time); this is the run-queue delay of the \
             guard's own thread, not the host's scheduling delay",
            delay.max,
            part * 100.0
        )],
        next: "detection came later by that much; nothing to do unless pressure is high as well".to_owned(),
    })
}

fn gap(situation: &Situation, hour: &Hour<'_>) -> Option<Finding> {
    let interval = situation.guard.interval_sec.max(1);
    let expected = WINDOW / interval;
    let found = hour.summary.snapshots;
    (found * 2 < expected).then(|| Finding {
        id: "history-short",
        severity: Severity::Note,
        title: "little is known of the last hour".to_owned(),
        evidence: vec![format!("{found} snapshots of about {expected}")],
        next: "the guard did not run all the time, or the machine slept; ask again later"
            .to_owned(),
    })
}
