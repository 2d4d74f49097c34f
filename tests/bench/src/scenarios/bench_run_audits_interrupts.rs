//! `bench run` ends with 125 when an interrupt of a device is steered onto its CPUs, and with the command's own status
//! when none is.

use std::process::{Command, Stdio};

use anyhow::{Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{MACHINE, Scenario};
use crate::harness::command::{self, Ended};
use crate::harness::outcome::{Verdict, step};
use crate::harness::product::{CLI, bench, ended_with, said};
use crate::harness::wait::{self, PATIENCE};

pub const SCENARIO: Scenario = Scenario {
    name: "bench-run-audits-interrupts",
    tiers: MACHINE,
    quick: false,
    full: false,
    exclusive: false,
    timeout_s: 180,
    boots: &[run],
};

/// Measured on.
const CPU: &str = "6";
/// Where all interrupts go while nothing is wrong.
const ELSEWHERE: &str = "1";
/// The serial port's: one that can be steered. Each queue of the disks has an interrupt that the kernel alone places.
const SERIAL: &str = "/proc/irq/4/smp_affinity_list";
/// Work that makes the serial port interrupt.
const TALK: &str = "for n in 1 2 3 4 5 6 7 8 9 10; do echo this line is for the console > /dev/ttyS0; done";
/// As a harness does it: 125 means that the run is worth nothing, and the next one may be.
const TRIES: u32 = 20;

fn run() -> Verdict {
    keep_off(CPU)?;
    for (script, status) in [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137)] {
        let ended = undisturbed(&["sh", "-c", script])?;
        ended_with(&ended, status, script)?;
        said(&ended, "interrupts of devices on CPUs 6: none")?;
    }
    let pinned = undisturbed(&["grep", "Cpus_allowed_list", "/proc/self/status"])?;
    said(&pinned, "Cpus_allowed_list:\t6")?;
    step("the command's own status comes back, and it is kept on the CPU");

    let absent = bench(&["run", "--cpus", CPU, "no-such-command"])?;
    ended_with(&absent, 127, "a command that is not there")?;
    let no_program = bench(&["run", "--cpus", CPU, "/etc/passwd"])?;
    ended_with(&no_program, 126, "a file that is no program")?;
    a_signal_reaches_the_command()?;

    let elsewhere = undisturbed(&["sh", "-c", &format!("{TALK}; exit 3")])?;
    ended_with(&elsewhere, 3, "work whose interrupt is elsewhere")?;
    let steered = format!("echo {CPU} > {SERIAL}; {TALK}; exit 3");
    let spoilt = bench(&["run", "--cpus", CPU, "sh", "-c", &steered])?;
    step(format_args!("{}", spoilt.said()));
    ended_with(&spoilt, 125, "the same work with the interrupt steered onto the CPU")?;
    said(&spoilt, "INTERFERENCE: interrupts of devices arrived on CPUs 6")?;
    said(&spoilt, "IRQ 4 on cpu6")?;
    std::fs::write(SERIAL, ELSEWHERE)?;

    let read = "dd if=/dev/vda of=/dev/null bs=64k count=16 iflag=direct status=none";
    let managed = bench(&["run", "--cpus", CPU, "sh", "-c", read])?;
    step(format_args!("{}", managed.said()));
    ended_with(&managed, 125, "reading the disk on the CPU")?;
    said(&managed, "managed: the kernel alone places it")?;
    Ok(())
}

/// Runs `argv` under audit until no interrupt comes: what is not in memory yet has to be read first.
fn undisturbed(argv: &[&str]) -> Result<Ended> {
    let mut line = vec!["run", "--cpus", CPU];
    line.extend(argv);
    let mut ended = bench(&line)?;
    for _ in 1..TRIES {
        if ended.status != 125 {
            break;
        }
        ended = bench(&line)?;
    }
    Ok(ended)
}

/// SIGTERM that is sent to the wrapper ends the command, and 143 comes back.
fn a_signal_reaches_the_command() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let ready = folder.path().join("ready");
    let script = format!("touch {}; exec sleep 300", ready.display());
    let mut wrapper = Command::new(CLI)
        .args(["bench", "run", "--cpus", CPU, "sh", "-c", &script])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    wait::until_true("the command runs", PATIENCE, || Ok(ready.exists()))?;
    kill(Pid::from_raw(wrapper.id().cast_signed()), Signal::SIGTERM)?;
    let status = command::shell_status(wrapper.wait()?);
    ensure!(status == 143, "the wrapper ended with {status}, not 143");
    step("a signal reaches the command");
    Ok(())
}

/// Moves all interrupts that can be moved away from `cpu`.
fn keep_off(cpu: &str) -> Result<()> {
    let mut moved = 0;
    for folder in std::fs::read_dir("/proc/irq")? {
        let file = folder?.path().join("smp_affinity_list");
        // Those that the kernel alone places refuse.
        if file.exists() && std::fs::write(&file, ELSEWHERE).is_ok() {
            moved += 1;
        }
    }
    ensure!(moved > 0, "no interrupt could be moved away from cpu{cpu}");
    Ok(())
}
