//! One at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use event_listener::Event;
use workload_guard_dbus::BenchError;

/// A right that one caller has at a time, such as to change the machine.
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
                "another caller's change is under way: try again when it has ended".into(),
            ));
        }
        Ok(Turn(self.0.clone()))
    }

    /// Waits for the turn.
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
        // One is enough: that one passes it on. With many waiting, all at once would be work for nothing.
        self.0.ended.notify(1);
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

    #[test]
    fn many_that_wait_all_have_their_turn_and_never_two_at_once() {
        const MANY: usize = 50;
        let turns = Turns::default();
        let first = turns.take().expect("free");
        let under_way = AtomicBool::new(false);
        let had = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..MANY {
                scope.spawn(|| {
                    let turn = async_io::block_on(turns.wait());
                    assert!(!under_way.swap(true, Ordering::SeqCst), "two at once");
                    std::thread::yield_now();
                    under_way.store(false, Ordering::SeqCst);
                    had.fetch_add(1, Ordering::SeqCst);
                    drop(turn);
                });
            }
            drop(first);
        });
        assert_eq!(had.into_inner(), MANY);
    }
}
