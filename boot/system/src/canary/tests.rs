use std::time::Duration;

use bench_profile::cpus::CpuSet;

use super::*;

fn set(text: &str) -> CpuSet {
    text.parse().expect("a CPU list")
}

fn request(cpus: &str, parallelism: usize, divisor: u32) -> Request {
    let cpus = set(cpus);
    Request {
        workers: cpus.len(),
        cpus,
        parallelism,
        divisor,
    }
}

fn outcome(request: Request, one: u64, all: u64, seen: &str) -> Outcome {
    let allowed = request.cpus.clone();
    Outcome::new(
        request,
        Measured {
            iterations: 8_000_000,
            one: Duration::from_millis(one),
            all: Duration::from_millis(all),
            allowed,
            seen: set(seen),
        },
    )
}

#[test]
fn work_that_spreads_is_told_as_ever() {
    let outcome = outcome(request("8-15", 8, 2), 297, 304, "8-15");
    let said = heading(&outcome.request) + &text(&outcome, &set(""));
    assert_eq!(
        said,
        "Parallel-dispatch canary on cpu8-15 (8 workers, need >=4x)...\n  \
           one worker:        297 ms (8000000 iterations)\n  \
           8 workers at once: 304 ms\n  \
           workers seen on 8 distinct CPUs: 8 9 10 11 12 13 14 15\n  \
           effective parallelism: 7.82x of 8x\n  \
           canary passed: work spreads across the benchmark CPUs.\n"
    );
}

#[test]
fn a_pool_on_one_core_is_explained() {
    let outcome = outcome(request("8-15", 8, 2), 292, 2293, "8");
    assert!(!outcome.passed());
    let said = text(&outcome, &set("8-15"));
    for words in [
        "CANARY FAILED: the benchmark CPUs are not dispatching work in parallel.\n",
        "  8 concurrent workers took 2293 ms; one alone took 292 ms.\n",
        "  That is below the 4x floor, so threads are piling onto too few cores.\n",
        "Almost always this means the kernel cmdline carries isolcpus=domain over 8-15",
        "isolated says 8-15",
        "seen on 1 distinct CPU: 8\n",
    ] {
        assert!(said.contains(words), "{words:?} is not in\n{said}");
    }
}

#[test]
fn the_cause_that_is_there_is_named() {
    let mut confined = outcome(request("0-3", 4, 2), 300, 1200, "0");
    confined.allowed = set("0");
    assert!(text(&confined, &set("")).contains("allowed on cpu0 only"));
    let noisy = outcome(request("0-3", 4, 2), 300, 1200, "0-3");
    assert!(text(&noisy, &set("8-15")).contains("names none of them"));
}

#[test]
fn a_fast_result_on_too_few_cpus_does_not_pass() {
    // A disturbed baseline makes any ratio look good; where the workers ran cannot lie.
    let outcome = outcome(request("0-3", 4, 2), 900, 1200, "2");
    assert!(outcome.effective() >= 2.0 && !outcome.passed());
    assert!(text(&outcome, &set("")).contains("seen on too few CPUs for the 2x floor"));
}

#[test]
fn the_floor_never_lets_one_cpu_pass() {
    assert_eq!(floor(8, 2), 4.0);
    assert_eq!(floor(4, 3), 4.0 / 3.0);
    assert_eq!(floor(2, 2), 1.3);
    assert_eq!(floor(32, 0), 32.0);
    // 15.0 times from 32 threads on 16 cores: judged by the cores, that is well.
    let unlimited = outcome(
        Request {
            workers: 32,
            ..request("0-31", 16, 2)
        },
        300,
        640,
        "0-31",
    );
    assert!(unlimited.passed());
}

#[test]
fn four_workers_on_one_cpu_fail_for_real() {
    let one = crate::affinity::get()
        .expect("an affinity")
        .first()
        .expect("a CPU");
    let outcome = run(&Request {
        cpus: CpuSet::from(one),
        workers: 4,
        parallelism: 4,
        divisor: 2,
    })
    .expect("it measures");
    assert!(!outcome.passed(), "{outcome:?}");
    assert_eq!(outcome.seen, CpuSet::from(one));
    assert!(text(&outcome, &set("")).contains("CANARY FAILED"));
}

#[test]
fn the_callers_own_affinity_stays() {
    let before = crate::affinity::get().expect("an affinity");
    let one = before.first().expect("a CPU");
    let _ = run(&Request {
        cpus: CpuSet::from(one),
        workers: 2,
        parallelism: 2,
        divisor: 2,
    })
    .expect("it measures");
    assert_eq!(crate::affinity::get().expect("an affinity"), before);
}

#[test]
fn one_worker_proves_nothing() {
    let error = run(&request("0", 1, 2)).expect_err("one CPU");
    assert!(error.to_string().contains("at least two"), "{error}");
}
