//! SIGTERM and SIGINT as something to wait for.

use async_io::Async;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// The signals that end the daemon.
pub struct Signals(Async<SignalFd>);

impl Signals {
    /// Blocks the signals for this thread and all that it starts: call it before any thread is.
    pub fn block() -> anyhow::Result<Signals> {
        let mut set = SigSet::empty();
        set.add(Signal::SIGTERM);
        set.add(Signal::SIGINT);
        set.thread_block()?;
        let fd = SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        Ok(Signals(Async::new_nonblocking(fd)?))
    }

    /// Waits for one.
    pub async fn wait(&self) -> std::io::Result<()> {
        self.0
            .read_with(|fd| match fd.read_signal() {
                Ok(Some(_)) => Ok(()),
                Ok(None) => Err(std::io::ErrorKind::WouldBlock.into()),
                Err(error) => Err(error.into()),
            })
            .await
    }
}
