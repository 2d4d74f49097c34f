//! A thread that burns CPU while it is told to.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use nix::sys::signal::{SigSet, Signal};

/// A burst, as the accelerated measurement has it.
const BURST: Duration = Duration::from_millis(120);

/// What the thread does now.
#[derive(Clone, Copy, Debug)]
enum Work {
    Idle,
    Busy,
    Until(Instant),
}

/// The thread and what it is told by.
#[derive(Debug)]
pub struct Spinner {
    work: Arc<(Mutex<Work>, Condvar)>,
    orders: SigSet,
}

impl Spinner {
    /// Starts the thread.
    ///
    /// Blocks the signals first, so that the thread, and every child, inherits that and none is lost or deadly.
    pub fn new(busy: bool) -> Result<Spinner> {
        let mut orders = SigSet::empty();
        orders.add(Signal::SIGUSR1);
        orders.add(Signal::SIGUSR2);
        orders.add(Signal::SIGHUP);
        orders.thread_block()?;
        let start = if busy { Work::Busy } else { Work::Idle };
        let work = Arc::new((Mutex::new(start), Condvar::new()));
        let its = Arc::clone(&work);
        std::thread::spawn(move || spin(&its.0, &its.1));
        Ok(Spinner { work, orders })
    }

    /// Says that it is ready, then obeys signals for ever.
    pub fn ready_and_obey(self, members: &[u32]) -> Result<()> {
        super::ready(members);
        loop {
            let next = match self.orders.wait()? {
                Signal::SIGUSR1 => Work::Busy,
                Signal::SIGHUP => Work::Until(Instant::now() + BURST),
                _ => Work::Idle,
            };
            *self.work.0.lock().unwrap_or_else(PoisonError::into_inner) = next;
            self.work.1.notify_all();
        }
    }
}

fn spin(work: &Mutex<Work>, changed: &Condvar) {
    loop {
        let mut now = work.lock().unwrap_or_else(PoisonError::into_inner);
        match *now {
            Work::Idle => {
                drop(changed.wait(now).unwrap_or_else(PoisonError::into_inner));
                continue;
            }
            Work::Until(end) if Instant::now() >= end => {
                *now = Work::Idle;
                continue;
            }
            Work::Busy | Work::Until(_) => drop(now),
        }
        burn(Duration::from_millis(1));
    }
}

/// Burns CPU for about so long of the clock.
fn burn(time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time {
        std::hint::spin_loop();
    }
}
