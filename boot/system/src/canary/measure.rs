//! Runs the spinners and watches where the kernel puts them.

use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use bench_profile::cpus::CpuSet;
use nix::unistd::{Pid, gettid};

use super::judge::Measured;
use super::spin;
use super::{CanaryError, Request};
use crate::affinity;

/// Between two looks at the workers: a hundred looks while they run.
const LOOK: Duration = Duration::from_millis(3);
/// One worker alone is timed this often and the best counts: a disturbed baseline would flatter the rest.
const BASELINES: u32 = 2;

/// One round.
pub fn measure(request: &Request) -> Result<Measured, CanaryError> {
    let (told, watched) = mpsc::channel();
    thread::scope(|scope| {
        // A thread of its own, whose affinity its workers inherit as those of a thread pool inherit that of the
        // pinned program. Workers that set their own affinity would not do: the kernel picks a CPU anew for each
        // such call, and so would spread them even where nothing balances.
        let coordinator = thread::Builder::new()
            .name("canary".into())
            .spawn_scoped(scope, move || coordinate(request, &told))?;
        let seen = watch(&watched);
        let mut measured = coordinator
            .join()
            .map_err(|_| std::io::Error::other("a worker panicked"))??;
        measured.seen = seen;
        Ok(measured)
    })
}

fn coordinate(request: &Request, told: &Sender<Vec<Pid>>) -> Result<Measured, CanaryError> {
    affinity::set(&request.cpus).map_err(|error| CanaryError::Affinity {
        cpus: request.cpus.to_string(),
        error,
    })?;
    let allowed = affinity::get().map_err(|error| CanaryError::Affinity {
        cpus: request.cpus.to_string(),
        error,
    })?;
    let iterations = spin::calibrate();
    let mut one = Duration::MAX;
    for _ in 0..BASELINES {
        one = one.min(together(1, iterations, None)?);
    }
    let all = together(request.workers, iterations, Some(told))?;
    Ok(Measured {
        iterations,
        one,
        all,
        allowed,
        seen: CpuSet::default(),
    })
}

/// How long `workers` spinners take from their common start to the end of the last one.
fn together(
    workers: usize,
    iterations: u64,
    told: Option<&Sender<Vec<Pid>>>,
) -> Result<Duration, CanaryError> {
    // True: go. False: end, since not all of them could be started.
    let gate = OnceLock::new();
    let (ready, pids) = mpsc::channel();
    thread::scope(|scope| {
        let mut running = Vec::with_capacity(workers);
        for _ in 0..workers {
            let (ready, gate) = (ready.clone(), &gate);
            let worker = thread::Builder::new()
                .name("canary-worker".into())
                .stack_size(64 << 10)
                .spawn_scoped(scope, move || {
                    // The coordinator holds the other end for as long as this runs.
                    let _ = ready.send(gettid());
                    if *gate.wait() {
                        spin::spin(iterations);
                    }
                    Instant::now()
                });
            match worker {
                Ok(worker) => running.push(worker),
                Err(error) => {
                    let _ = gate.set(false);
                    return Err(error.into());
                }
            }
        }
        let pids: Vec<Pid> = pids.iter().take(workers).collect();
        let begin = Instant::now();
        let _ = gate.set(true);
        if let Some(told) = told {
            // When nobody watches, no CPU is seen, and the judgement fails.
            let _ = told.send(pids);
        }
        let mut last = begin;
        for worker in running {
            let end = worker
                .join()
                .map_err(|_| std::io::Error::other("a worker panicked"))?;
            last = last.max(end);
        }
        Ok(last - begin)
    })
}

/// The CPUs that the workers run on, until the coordinator is done.
fn watch(told: &mpsc::Receiver<Vec<Pid>>) -> CpuSet {
    let mut seen = BTreeSet::new();
    let Ok(workers) = told.recv() else {
        return CpuSet::default();
    };
    loop {
        seen.extend(workers.iter().filter_map(|&worker| cpu_of(worker)));
        // Nothing more is ever sent: the end of the coordinator ends the wait.
        if matches!(told.recv_timeout(LOOK), Err(RecvTimeoutError::Disconnected)) {
            return seen.into_iter().collect();
        }
    }
}

/// The CPU that a thread of ours is on; none when it has ended.
fn cpu_of(thread: Pid) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).ok()?;
    processor(&stat)
}

/// Field 39 of a stat line (proc_pid_stat(5)). The second field is in parentheses and may hold anything.
fn processor(stat: &str) -> Option<u32> {
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_ascii_whitespace().nth(36)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_is_found_behind_a_hostile_name() {
        let stat = "12 (a) b (c) R 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 \
                    31 32 33 34 35 9 37 38\n";
        assert_eq!(processor(stat), Some(9));
        assert_eq!(processor("12 (x"), None);
        assert!(cpu_of(gettid()).is_some());
    }
}
