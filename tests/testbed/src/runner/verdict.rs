//! From what a scenario left behind to its outcome. Pure.

use super::tally::Outcome;

/// Exit status of a scenario that could not run; its last line says why (the automake convention).
const SKIP: i32 = 77;

/// Judges a scenario by its exit status, its output and the guest's journal.
///
/// A crash counts whatever the scenario says about itself: it cannot see every process of the guest.
pub fn judge(status: i32, output: &str, journal: &str) -> Outcome {
    let crashes = crashes(journal);
    if !crashes.is_empty() {
        return Outcome::Failed(format!(
            "a process crashed in the guest:\n  {}",
            crashes.join("\n  ")
        ));
    }
    let last = output.lines().map(str::trim).rfind(|line| !line.is_empty());
    match status {
        0 => Outcome::Passed,
        SKIP => match last {
            Some(reason) => Outcome::Skipped(reason.to_owned()),
            None => Outcome::Failed("it was skipped (status 77) without a reason".into()),
        },
        _ => Outcome::Failed(match last {
            Some(last) => format!("exit status {status}: {last}"),
            None => format!("exit status {status}"),
        }),
    }
}

/// Whether a machine died of its emulator: while the kernel patches its own code, which it does whenever a CPU or SMT
/// goes off or on, QEMU's TCG can run a breakpoint that is no longer there. Nothing in the guest can do that; it is
/// reported and known as "qemu-x86_64 booting with 8.0.0 still see int3" (linux-kernel, July 2023).
pub fn emulator_failed(console: &str) -> bool {
    let oops = console
        .lines()
        .find(|line| line.contains("[#1]") || line.contains("Kernel panic"));
    oops.is_some_and(|line| line.contains("int3: 0000 [#1]"))
}

/// Lines of the journal that report a crash: systemd-coredump's, and the managers' about units that died of a signal
/// that dumps core. The container's cores go to the host's kernel, so the latter are all that it has.
fn crashes(journal: &str) -> Vec<&str> {
    const SIGNALS: [&str; 8] = [
        "3/QUIT", "4/ILL", "5/TRAP", "6/ABRT", "7/BUS", "8/FPE", "11/SEGV", "31/SYS",
    ];
    journal
        .lines()
        .filter(|line| {
            line.contains("code=dumped")
                || (line.contains("systemd-coredump[") && line.contains(" dumped core"))
                || (line.contains("code=killed")
                    && SIGNALS
                        .iter()
                        .any(|signal| line.ends_with(&format!("status={signal}"))))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALM: &str = "[ 1.0] guest systemd[1]: a.service: Main process exited, code=killed, status=9/KILL\n\
                        [ 1.1] guest systemd[1]: b.service: Main process exited, code=exited, status=6/NOTCONFIGURED\n";

    #[test]
    fn the_exit_status_decides_when_nothing_crashed() {
        assert_eq!(judge(0, "", CALM), Outcome::Passed);
        assert_eq!(judge(1, "", CALM), Outcome::Failed("exit status 1".into()));
        assert_eq!(
            judge(137, "a\nwhy\n", CALM),
            Outcome::Failed("exit status 137: why".into())
        );
        assert_eq!(
            judge(77, "step\nno cpu controller\n\n", CALM),
            Outcome::Skipped("no cpu controller".into())
        );
        assert!(matches!(judge(77, "\n", CALM), Outcome::Failed(_)));
    }

    #[test]
    fn a_crash_in_the_guest_is_a_failure_even_of_a_scenario_that_passed() {
        for line in [
            "[ 2.0] guest systemd[71]: workload-guard.service: Main process exited, code=killed, status=6/ABRT",
            "[ 2.0] guest systemd[71]: workload-guard.service: Main process exited, code=dumped, status=11/SEGV",
            "[ 2.0] guest systemd-coredump[99]: [🡕] Process 71 (workload-guardd) of user 1000 dumped core.",
        ] {
            let Outcome::Failed(reason) = judge(0, "", &format!("{CALM}{line}\n")) else {
                panic!("not seen: {line}")
            };
            assert!(reason.contains(line));
        }
    }

    #[test]
    fn only_a_breakpoint_in_the_kernel_is_the_emulators_failure() {
        let int3 = "[   82.046184] Oops: int3: 0000 [#1] PREEMPT SMP NOPTI\n[   82.06] Kernel panic - not syncing";
        assert!(emulator_failed(int3));
        for line in [
            CALM,
            "[ 1.0] BUG: kernel NULL pointer dereference\n[ 1.1] Oops: 0000 [#1] SMP\n[ 1.2] int3: 0000 [#2] SMP",
            "[ 1.0] Kernel panic - not syncing: sysrq triggered crash\n",
        ] {
            assert!(!emulator_failed(line), "{line}");
        }
    }
}
