//! The canary's words. Pure.

use bench_profile::cpus::CpuSet;

use super::Request;
use super::judge::{Outcome, floor};

/// The line above a measurement.
pub fn heading(request: &Request) -> String {
    format!(
        "Parallel-dispatch canary on cpu{} ({} workers, need >={}x)...\n",
        request.cpus,
        request.workers,
        number(floor(request.parallelism, request.divisor))
    )
}

/// The result, below [`heading`]. `isolated` is the kernel's list of CPUs without load balancing.
pub fn text(outcome: &Outcome, isolated: &CpuSet) -> String {
    let seen: Vec<String> = outcome.seen.iter().map(|cpu| cpu.to_string()).collect();
    let mut text = format!(
        "  one worker:        {} ms ({} iterations)\n  \
         {} workers at once: {} ms\n  \
         workers seen on {} distinct CPU{}: {}\n  \
         effective parallelism: {:.2}x of {}x\n",
        outcome.one_ms,
        outcome.iterations,
        outcome.request.workers,
        outcome.all_ms,
        seen.len(),
        if seen.len() == 1 { "" } else { "s" },
        seen.join(" "),
        outcome.effective,
        outcome.request.workers,
    );
    if outcome.passed {
        text.push_str("  canary passed: work spreads across the benchmark CPUs.\n");
    } else {
        text.push_str(&failure(outcome, isolated));
    }
    text
}

fn failure(outcome: &Outcome, isolated: &CpuSet) -> String {
    let (cpus, floor) = (&outcome.request.cpus, number(outcome.floor));
    let why = if outcome.effective < outcome.floor {
        format!("That is below the {floor}x floor, so threads are piling onto too few cores.")
    } else {
        format!("That is fast enough, but they were seen on too few CPUs for the {floor}x floor.")
    };
    format!(
        "CANARY FAILED: the benchmark CPUs are not dispatching work in parallel.\n  \
         {} concurrent workers took {} ms; one alone took {} ms.\n  \
         {why}\n\
         Almost always this means the kernel cmdline carries isolcpus=domain over {cpus}: those CPUs are then\n\
         outside of load balancing, and every thread stays on the CPU where its parent was.\n\
         {}\n",
        outcome.request.workers,
        outcome.all_ms,
        outcome.one_ms,
        here(outcome, isolated)
    )
}

/// What this machine shows of the cause.
fn here(outcome: &Outcome, isolated: &CpuSet) -> String {
    let cpus = &outcome.request.cpus;
    let balanced = cpus.and(isolated);
    if !balanced.is_empty() {
        return format!(
            "So it is here: /sys/devices/system/cpu/isolated says {isolated}. Boot the multi-core profile, whose isolcpus \
             has no `domain`."
        );
    }
    if outcome.allowed.len() < cpus.len() {
        return format!(
            "Here it is something else: the workers were allowed on {} only, by a cpuset or by what is offline.",
            if outcome.allowed.is_empty() {
                "no CPU".to_owned()
            } else {
                format!("cpu{}", outcome.allowed)
            }
        );
    }
    "Here it is something else: /sys/devices/system/cpu/isolated names none of them. Look for other work on these \
     CPUs, and for fewer real CPUs than the system shows (a virtual machine)."
        .into()
}

/// Without zeros behind the point: `4`, `1.33`.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
