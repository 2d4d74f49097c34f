//! What to prove on this machine. Pure.

use std::collections::BTreeSet;

use bench_profile::cpus::CpuSet;
use bench_profile::topology::Topology;

use super::Request;

/// The divisor where no machine file names one.
pub const DIVISOR: u32 = 2;

impl Request {
    /// One worker for each of `cpus`; the floor goes by physical cores, where the topology tells them.
    pub fn over(cpus: CpuSet, topology: Option<&Topology>, divisor: u32) -> Request {
        let cores: BTreeSet<u32> = cpus
            .iter()
            .map(|cpu| {
                topology
                    .and_then(|topology| topology.cpus.get(&cpu)?.siblings.first())
                    .unwrap_or(cpu)
            })
            .collect();
        Request {
            workers: cpus.len(),
            parallelism: cores.len(),
            divisor,
            cpus,
        }
    }
}

#[cfg(test)]
mod tests {
    use bench_profile::topology::Cpu;

    use super::*;

    #[test]
    fn second_threads_do_not_raise_the_floor() {
        let mut topology = Topology::default();
        for cpu in 0..4_u32 {
            let facts = Cpu {
                siblings: [cpu % 2, cpu % 2 + 2].into_iter().collect(),
                ..Cpu::default()
            };
            topology.cpus.insert(cpu, facts);
        }
        let cpus: CpuSet = "0-3".parse().expect("a list");
        let request = Request::over(cpus.clone(), Some(&topology), 2);
        assert_eq!((request.workers, request.parallelism), (4, 2));
        assert_eq!(Request::over(cpus, None, 2).parallelism, 4);
    }
}
