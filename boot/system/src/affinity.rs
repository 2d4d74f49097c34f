//! The CPUs that the calling thread may use (sched_setaffinity(2)).

use bench_profile::cpus::CpuSet;
use nix::sched::{self, CpuSet as Bits};
use nix::unistd::Pid;

/// The thread that asks.
const THIS: Pid = Pid::from_raw(0);

/// Restricts the calling thread, and whatever it starts, to `cpus`. The kernel drops those that are offline or
/// outside of the thread's cpuset; [`get`] tells what is left.
///
/// # Errors
///
/// EINVAL when none is left, or one is beyond the 1024 that the C library's set has.
pub fn set(cpus: &CpuSet) -> nix::Result<()> {
    let mut bits = Bits::new();
    for cpu in cpus.iter() {
        bits.set(cpu as usize)?;
    }
    sched::sched_setaffinity(THIS, &bits)
}

/// The CPUs that the calling thread may use.
///
/// # Errors
///
/// EINVAL on a kernel that has more CPUs than the C library's set.
pub fn get() -> nix::Result<CpuSet> {
    let bits = sched::sched_getaffinity(THIS)?;
    let mut cpus = Vec::new();
    for cpu in 0..Bits::count() {
        if bits.is_set(cpu)? {
            cpus.push(cpu as u32);
        }
    }
    Ok(cpus.into_iter().collect())
}
