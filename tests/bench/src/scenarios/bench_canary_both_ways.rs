//! The canary passes where work spreads over four CPUs, and fails with the explanation where one CPU has it all.

use super::{MACHINE, Scenario};
use crate::harness::command;
use crate::harness::outcome::{Verdict, step};
use crate::harness::product::{CLI, bench, ended_with, said};

pub const SCENARIO: Scenario = Scenario {
    name: "bench-canary-both-ways",
    tiers: MACHINE,
    quick: false,
    full: false,
    exclusive: true,
    timeout_s: 300,
    boots: &[run],
};

/// The first thread of each of the machine's four cores.
const CPUS: &str = "0,2,4,6";
/// The machine's four cores share the host's two CPUs: four spinners reach about 2.0 times one.
const DIVISOR: &str = "3";

fn run() -> Verdict {
    let spread = bench(&["canary", "--cpus", CPUS, "--divisor", DIVISOR])?;
    step(format_args!("{}", spread.said()));
    ended_with(&spread, 0, "the canary over four CPUs")?;
    said(&spread, "canary passed: work spreads across the benchmark CPUs.")?;

    // A cpuset, not an affinity: that one the workers would widen again, as a thread pool may.
    let confined = command::run(&[
        "systemd-run",
        "--pipe",
        "--wait",
        "--quiet",
        "--collect",
        "--property=AllowedCPUs=2",
        CLI,
        "bench",
        "canary",
        "--cpus",
        CPUS,
        "--divisor",
        DIVISOR,
    ])?;
    step(format_args!("{}", confined.said()));
    ended_with(&confined, 1, "the canary confined to one CPU")?;
    for words in [
        "CANARY FAILED: the benchmark CPUs are not dispatching work in parallel.",
        "so threads are piling onto too few cores.",
        "Almost always this means the kernel cmdline carries isolcpus=domain over 0,2,4,6",
        "the workers were allowed on cpu2 only",
        "workers seen on 1 distinct CPU: 2",
    ] {
        said(&confined, words)?;
    }
    Ok(())
}
