//! Whether anybody still wants something, so that the service can end when nobody does.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_io::Timer;
use event_listener::Event;
use futures_lite::FutureExt;

/// Counts the calls that are under way.
#[derive(Clone, Debug)]
pub struct Activity(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    state: Mutex<State>,
    changed: Event,
}

#[derive(Debug)]
struct State {
    calls: usize,
    last: Instant,
}

/// A call that is under way until this is dropped.
#[derive(Debug)]
pub struct Under(Activity);

impl Activity {
    /// None so far.
    pub fn new(now: Instant) -> Activity {
        Activity(Arc::new(Inner {
            state: Mutex::new(State {
                calls: 0,
                last: now,
            }),
            changed: Event::new(),
        }))
    }

    /// A call begins.
    pub fn begin(&self) -> Under {
        self.note(1);
        Under(self.clone())
    }

    /// Something was asked and answered at once.
    pub fn touch(&self) {
        self.note(0);
    }

    fn note(&self, change: isize) {
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.calls = state.calls.saturating_add_signed(change);
        state.last = Instant::now();
        drop(state);
        self.0.changed.notify(usize::MAX);
    }

    /// How long it still takes until nobody wanted anything for `idle`; none while a call is under way.
    fn left(&self, idle: Duration, now: Instant) -> Option<Duration> {
        let state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        (state.calls == 0).then(|| idle.saturating_sub(now.saturating_duration_since(state.last)))
    }

    /// Comes back when nobody has wanted anything for `idle`.
    pub async fn ceased_for(&self, idle: Duration) {
        loop {
            let changed = self.0.changed.listen();
            match self.left(idle, Instant::now()) {
                Some(Duration::ZERO) => return,
                Some(left) => {
                    changed
                        .or(async {
                            Timer::after(left).await;
                        })
                        .await;
                }
                None => changed.await,
            }
        }
    }
}

impl Drop for Under {
    fn drop(&mut self) {
        self.0.note(-1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_idle_after_the_last_call_and_not_before() {
        let idle = Duration::from_secs(30);
        let activity = Activity::new(Instant::now());
        let call = activity.begin();
        let later = Instant::now() + Duration::from_secs(3600);
        assert_eq!(activity.left(idle, later), None);
        drop(call);
        assert_eq!(activity.left(idle, later), Some(Duration::ZERO));
        let left = activity.left(idle, Instant::now()).expect("no call");
        assert!(left > Duration::from_secs(20), "{left:?}");
    }

    #[test]
    fn the_end_of_the_last_call_is_waited_for() {
        let activity = Activity::new(Instant::now());
        let call = activity.begin();
        async_io::block_on(async {
            let early = async {
                activity.ceased_for(Duration::ZERO).await;
                true
            };
            let ends = async {
                Timer::after(Duration::from_millis(20)).await;
                false
            };
            assert!(!early.or(ends).await, "a call is under way");
            drop(call);
            activity.ceased_for(Duration::ZERO).await;
        });
    }
}
