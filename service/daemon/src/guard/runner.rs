//! The thread on which changes run.
//!
//! Were a change a future that the loop polls, it would stand still while the loop waits for anything else.
//! Both speak over one connection, and whoever writes to it takes its lock: a change that stands still
//! when the lock is given to it would keep the loop waiting for that lock for ever.

use std::future::Future;
use std::sync::mpsc::{Sender, channel};

use futures::channel::oneshot::{self, Receiver};

type Change = Box<dyn FnOnce() + Send>;

/// Runs one change after the other. The thread is there from the first one on.
#[derive(Default)]
pub struct Runner(Option<Sender<Change>>);

impl Runner {
    /// Starts a change, which is made there. The receiver is cancelled when it panics.
    pub fn run<T: Send + 'static, F: Future<Output = T>>(
        &mut self,
        change: impl FnOnce() -> F + Send + 'static,
    ) -> Receiver<T> {
        let (answer, outcome) = oneshot::channel();
        let changes = self.0.get_or_insert_with(start);
        // Without the thread the answer is dropped, which the receiver tells.
        let _ = changes.send(Box::new(move || {
            // Nobody waits while the guard stops.
            let _ = answer.send(async_io::block_on(change()));
        }));
        outcome
    }
}

fn start() -> Sender<Change> {
    let (changes, queue) = channel::<Change>();
    std::thread::spawn(move || {
        for change in queue {
            change();
        }
    });
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the loop and a change share on one connection.
    #[test]
    fn a_change_goes_on_while_the_loop_waits_for_something_else() {
        let lock = std::sync::Arc::new(futures::lock::Mutex::new(()));
        let mut runner = Runner::default();
        async_io::block_on(async {
            let held = lock.lock().await;
            let its = lock.clone();
            let outcome = runner.run(|| async move { drop(its.lock().await) });
            drop(held);
            // Without a look at the change in between.
            drop(lock.lock().await);
            assert_eq!(outcome.await, Ok(()));
        });
    }

    #[test]
    fn a_change_that_panics_is_told() {
        let mut runner = Runner::default();
        let outcome = runner.run(|| async { panic!("as a test") });
        assert!(async_io::block_on(outcome).is_err());
        let after = runner.run(|| async {});
        assert!(async_io::block_on(after).is_err());
    }
}
