//! What the machine lacks, or has too much of.

use super::{Environment, Finding, Severity, Situation};

/// The oldest systemd that is tested.
const SYSTEMD: u32 = 252;

/// The checks.
pub(super) fn findings(situation: &Situation) -> Vec<Finding> {
    let environment = &situation.environment;
    let checks = [
        hybrid(environment),
        controller(environment),
        sched_ext(environment),
        old_systemd(environment),
        exec_events(situation),
        stat_local(environment),
    ];
    let mut findings: Vec<Finding> = checks.into_iter().flatten().collect();
    findings.extend(competing(environment));
    findings
}

fn hybrid(environment: &Environment) -> Option<Finding> {
    (!environment.unified).then(|| Finding {
        id: "cgroup-hybrid",
        severity: Severity::Problem,
        title: "the cpu controller is on control groups of version 1".to_owned(),
        evidence: vec!["version 2 is mounted beside version 1, not at /sys/fs/cgroup".to_owned()],
        next: "boot with systemd.unified_cgroup_hierarchy=1 on the kernel command line".to_owned(),
    })
}

fn controller(environment: &Environment) -> Option<Finding> {
    (environment.cpu_controller == Some(false)).then(|| Finding {
        id: "no-cpu-controller",
        severity: Severity::Problem,
        title: "no quota and no weight is enforced".to_owned(),
        evidence: vec![format!(
            "cgroup.controllers of user@{}.service does not name cpu",
            environment.uid
        )],
        next: "as root: write `[Service]` and `Delegate=cpu cpuset io memory pids` into \
               /etc/systemd/system/user@.service.d/delegate.conf, run `systemctl daemon-reload`, and log in again"
            .to_owned(),
    })
}

fn sched_ext(environment: &Environment) -> Option<Finding> {
    let scheduler = environment.sched_ext.as_ref()?;
    Some(Finding {
        id: "sched-ext",
        severity: Severity::Problem,
        title: "another CPU scheduler is loaded, and may ignore quotas and weights".to_owned(),
        evidence: vec![format!("/sys/kernel/sched_ext/state: enabled, {scheduler}")],
        next: "stop it (such as `systemctl stop scx.service`, or scx_loader) to have the budgets hold, \
               or keep it and rely on it alone"
            .to_owned(),
    })
}

fn old_systemd(environment: &Environment) -> Option<Finding> {
    let version = environment.systemd.filter(|version| *version < SYSTEMD)?;
    Some(Finding {
        id: "systemd-old",
        severity: Severity::Warning,
        title: format!("systemd {version} is older than what is tested"),
        evidence: vec![format!(
            "{SYSTEMD} is the first that delegates the cpu controller by itself"
        )],
        next: "update the distribution; until then see whether the state is degraded".to_owned(),
    })
}

fn exec_events(situation: &Situation) -> Option<Finding> {
    let events = &situation.guard.exec_events;
    (!events.is_empty() && events != "active").then(|| Finding {
        id: "no-exec-events",
        severity: Severity::Note,
        title: "new programs are seen at the next sample, not at once".to_owned(),
        evidence: vec![events.clone()],
        next: "nothing to do: known-heavy commands are routed a sample later".to_owned(),
    })
}

fn stat_local(environment: &Environment) -> Option<Finding> {
    (environment.stat_local == Some(false)).then(|| Finding {
        id: "throttling-unknown",
        severity: Severity::Note,
        title: "how long a workload was throttled is unknown".to_owned(),
        evidence: vec![format!(
            "Linux {} has no cpu.stat.local in the workloads' control groups",
            environment.kernel
        )],
        next:
            "a kernel from 6.6 on tells it; the throttling of the whole slice is known all the same"
                .to_owned(),
    })
}

fn competing(environment: &Environment) -> Vec<Finding> {
    let (routers, others): (Vec<_>, Vec<_>) = environment
        .competing
        .iter()
        .partition(|tool| tool.program.starts_with("workload-router"));
    let named = |tools: &[&super::Competing]| {
        tools
            .iter()
            .map(|tool| format!("process {}: {}", tool.pid, tool.program))
            .collect()
    };
    let mut findings = Vec::new();
    if !routers.is_empty() {
        findings.push(Finding {
            id: "second-router",
            severity: Severity::Problem,
            title: "the Python original runs beside the guard: both move the same processes".to_owned(),
            evidence: named(&routers),
            next: "end it and disable what starts it; a process of that name that the guard did not start \
                   shows in `systemctl --user status PID`"
                .to_owned(),
        });
    }
    if !others.is_empty() {
        findings.push(Finding {
            id: "competing-tool",
            severity: Severity::Warning,
            title: "another tool sets priorities of the same processes".to_owned(),
            evidence: named(&others),
            next: "nice values count only inside of one workload, so both can stay; where a process is \
                   moved back and forth, exclude it here ([routing] exclude_patterns) or there"
                .to_owned(),
        });
    }
    findings
}
