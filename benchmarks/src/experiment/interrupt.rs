//! A signal ends an experiment in order: what it changed is put back first.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// What a person, a terminal or a service manager ends a program with.
const ENDING: [Signal; 4] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
];

/// A signal came.
#[derive(Debug, thiserror::Error)]
#[error("interrupted by signal {0}")]
pub struct Interrupted(pub u8);

/// The blocked signals as something to wait for.
pub struct Interrupt(SignalFd);

impl Interrupt {
    /// Blocks the signals for this thread and all that it starts: call it before any thread is.
    pub fn block() -> anyhow::Result<Interrupt> {
        let set = SigSet::from_iter(ENDING);
        block_again()?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        Ok(Interrupt(SignalFd::with_flags(&set, flags)?))
    }

    /// Waits; an error as soon as a signal comes.
    pub fn wait(&self, time: Duration) -> anyhow::Result<()> {
        let end = Instant::now() + time;
        loop {
            if let Some(signal) = self.0.read_signal()? {
                return Err(Interrupted(signal.ssi_signo as u8).into());
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            let mut fds = [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)];
            // Rounded up, or the last millisecond would be spent in a busy loop.
            let left =
                PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX);
            poll(&mut fds, left)?;
        }
    }

    /// Looks every 20 ms until `look` answers something; an error when `patience` is over.
    pub fn until<T>(
        &self,
        what: &str,
        patience: Duration,
        mut look: impl FnMut() -> anyhow::Result<Option<T>>,
    ) -> anyhow::Result<T> {
        let end = Instant::now() + patience;
        loop {
            if let Some(found) = look()? {
                return Ok(found);
            }
            anyhow::ensure!(
                Instant::now() < end,
                "waited {} s in vain: {what}",
                patience.as_secs()
            );
            self.wait(Duration::from_millis(20))?;
        }
    }
}

/// Undoes [`unblock`].
pub fn block_again() -> anyhow::Result<()> {
    Ok(SigSet::from_iter(ENDING).thread_block()?)
}

/// Lets a program that was started while the signals are blocked be ended by them.
pub fn unblock() -> anyhow::Result<()> {
    Ok(SigSet::from_iter(ENDING).thread_unblock()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_ends_the_wait_with_its_number() {
        // Blocked in this thread alone, and sent to it alone.
        let interrupt = Interrupt::block().expect("signals");
        interrupt
            .wait(Duration::from_millis(5))
            .expect("none came yet");
        nix::sys::signal::raise(Signal::SIGTERM).expect("sent");
        let error = interrupt
            .wait(Duration::from_secs(60))
            .expect_err("one came");
        assert_eq!(
            error.downcast_ref::<Interrupted>().map(|found| found.0),
            Some(15)
        );
    }
}
