//! New programs, told by the kernel when they start rather than seen by the next sample.
//!
//! The kernel's process connector gives exec events to every user since Linux 6.6, in the initial PID,
//! user and network namespaces alone. Under a storm it drops events; that is noticed and counted, and a
//! scan makes good what was lost.

mod look;
mod pace;
mod socket;
#[cfg(test)]
mod tests;
mod unavailable;
mod wire;

use std::io;
use std::time::{Duration, Instant};

use async_io::{Async, Timer};
use guard_policy::event::Process;
use nix::time::{ClockId, clock_gettime};

use crate::proc::ProcFs;
pub use look::with_ancestors;
use pace::{Budget, Heard};
use socket::{Read, Socket};
pub use unavailable::Unavailable;
use wire::Said;

/// Messages that are read for each wake-up; the rest stays where it is until the next one.
const MOST_READ: usize = 1024;

/// A subscription to exec events.
#[derive(Debug)]
pub struct ExecEvents {
    socket: Async<Socket>,
    /// Drops that were told already.
    drops: u32,
    budget: Budget,
    /// Events are left in the buffer until then.
    rest: Instant,
}

/// What happened since the last batch.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Watched processes that executed another program and are still there, as they are now.
    pub executed: Vec<Process>,
    /// Events that nobody looked at: the buffer was full, or there were too many. A scan is due.
    pub lost: u64,
}

impl ExecEvents {
    /// Subscribes, with a receive buffer of so many bytes instead of the system's default
    /// (`net.core.rmem_default`, about 270 events).
    ///
    /// # Errors
    ///
    /// Why there are no exec events here, in words for a person.
    pub fn open(rcvbuf: Option<usize>) -> Result<ExecEvents, Unavailable> {
        let socket = Socket::open(rcvbuf)?;
        let drops = socket.drops().map_err(|error| Unavailable::io(&error))?;
        let socket = Async::new_nonblocking(socket).map_err(|error| Unavailable::io(&error))?;
        Ok(ExecEvents {
            socket,
            drops,
            budget: Budget::full(Instant::now()),
            rest: Instant::now(),
        })
    }

    /// Waits for events, and looks at those of the control groups `watched` and below. Rests when
    /// that has cost more than its share, so that a fork storm takes a few percent of a CPU at most.
    ///
    /// Can be dropped while it waits without losing anything. A batch can be empty.
    ///
    /// # Errors
    ///
    /// The socket cannot be read any more.
    pub async fn next(&mut self, proc: &ProcFs, watched: &[String]) -> io::Result<Batch> {
        // With the wake-up, which can cost more than the look.
        let begin = cpu_time();
        if self.rest > Instant::now() {
            Timer::at(self.rest).await;
        }
        self.socket.readable().await?;
        let batch = self.drain(proc, watched)?;
        let spent = cpu_time().saturating_sub(begin);
        let now = Instant::now();
        self.rest = now + self.budget.spend(spent, now);
        Ok(batch)
    }

    fn drain(&mut self, proc: &ProcFs, watched: &[String]) -> io::Result<Batch> {
        let socket = self.socket.get_ref();
        let mut heard = Heard::default();
        for _ in 0..MOST_READ {
            match socket.read()? {
                Read::Said(Said::Exec { pid }) => heard.exec(pid),
                Read::Said(Said::Answer { .. } | Said::Other) | Read::Dropped => {}
                Read::Empty => break,
            }
        }
        let drops = socket.drops()?;
        let dropped = drops.wrapping_sub(self.drops);
        self.drops = drops;
        Ok(Batch {
            executed: heard
                .pids()
                .iter()
                .filter_map(|pid| look::watched_process(proc, *pid, watched))
                .collect(),
            lost: u64::from(dropped) + heard.passed_over(),
        })
    }
}

/// CPU time of this process: what counts is what the guard takes, not how long it waits for a CPU. Of all
/// its threads, since any of them can be the one that waits for files.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}
