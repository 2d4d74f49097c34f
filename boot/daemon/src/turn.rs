//! One change at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use event_listener::Event;
use workload_guard_dbus::BenchError;

/// The right to change the machine, which one caller has at a time.
#[derive(Clone, Debug, Default)]
pub struct Turns(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    taken: AtomicBool,
    ended: Event,
}

/// A caller's turn; it ends when this is dropped.
#[derive(Debug)]
pub struct Turn(Arc<Inner>);

impl Turns {
    /// Takes the turn, or says that another has it. Nobody waits: two people who prepare one machine at once should
    /// hear of each other.
    pub fn take(&self) -> Result<Turn, BenchError> {
        if self.0.taken.swap(true, Ordering::AcqRel) {
            return Err(BenchError::Busy(
                "another caller's Apply or Restore is under way: try again when it has ended"
                    .into(),
            ));
        }
        Ok(Turn(self.0.clone()))
    }

    /// Waits for the turn: what is under way is finished, and nothing else begins.
    pub async fn wait(&self) -> Turn {
        loop {
            let ended = self.0.ended.listen();
            if let Ok(turn) = self.take() {
                return turn;
            }
            ended.await;
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.taken.store(false, Ordering::Release);
        self.0.ended.notify(usize::MAX);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_second_one_hears_that_it_is_busy_until_the_first_is_done() {
        let turns = Turns::default();
        let first = turns.take().expect("free");
        assert!(matches!(turns.clone().take(), Err(BenchError::Busy(_))));
        drop(first);
        assert!(turns.take().is_ok());
    }

    #[test]
    fn who_waits_has_the_turn_when_the_other_one_is_done() {
        let turns = Turns::default();
        let first = turns.take().expect("free");
        let ends = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            drop(first);
        });
        let last = async_io::block_on(turns.wait());
        assert!(turns.take().is_err(), "nothing else begins");
        drop(last);
        ends.join().expect("no panic");
    }
}
