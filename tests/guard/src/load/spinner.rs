//! A thread that burns CPU while it is told to.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use nix::sys::signal::{SigSet, Signal};

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
    burst: Option<Duration>,
    orders: SigSet,
}

impl Spinner {
    /// Starts the thread. With `burst`, an order to be busy holds for so long only.
    ///
    /// Blocks the signals first, so that the thread, and every child, inherits that and none is lost or deadly.
    pub fn new(busy: bool, burst: Option<Duration>) -> Result<Spinner> {
        let mut orders = SigSet::empty();
        orders.add(Signal::SIGUSR1);
        orders.add(Signal::SIGUSR2);
        orders.thread_block()?;
        let start = if busy { Work::Busy } else { Work::Idle };
        let work = Arc::new((Mutex::new(start), Condvar::new()));
        let its = Arc::clone(&work);
        std::thread::spawn(move || spin(&its.0, &its.1));
        Ok(Spinner {
            work,
            burst,
            orders,
        })
    }

    /// Says that it is ready, then obeys signals for ever.
    pub fn ready_and_obey(self, members: &[u32]) -> Result<()> {
        super::ready(members);
        loop {
            let next = match (self.orders.wait()?, self.burst) {
                (Signal::SIGUSR1, None) => Work::Busy,
                (Signal::SIGUSR1, Some(burst)) => Work::Until(Instant::now() + burst),
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
