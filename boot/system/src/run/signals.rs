//! Signals that are meant for the command.

use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::Child;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;

use super::Ended;

/// Those that people and service managers send to a program.
const FORWARDED: [Signal; 6] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
];

/// `si_code` of a signal that the kernel sent, such as that of Ctrl-C (SI_KERNEL, sigaction(2)).
const SI_KERNEL: i32 = 0x80;

/// The blocked signals as something to read.
pub struct Signals {
    fd: SignalFd,
    /// What was blocked before, for the command.
    pub mask_before: SigSet,
}

impl Drop for Signals {
    fn drop(&mut self) {
        // What came for a command that has ended is for nobody.
        while matches!(self.fd.read_signal(), Ok(Some(_))) {}
        let _ = self.mask_before.thread_set_mask();
    }
}

impl Signals {
    /// Blocks them for this thread and those that it starts, until this is dropped.
    pub fn block() -> std::io::Result<Signals> {
        let mut set = SigSet::empty();
        for signal in FORWARDED {
            set.add(signal);
        }
        let mask_before = set.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        Ok(Signals {
            fd: SignalFd::with_flags(&set, flags)?,
            mask_before,
        })
    }

    /// Passes signals on until the command has ended.
    pub fn until_it_ends(&self, child: &mut Child) -> std::io::Result<Ended> {
        // A pidfd, not SIGCHLD: that one another thread could take.
        let pid = rustix::process::Pid::from_child(child);
        let process = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty())?;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(match status.code() {
                    Some(code) => Ended::Exited(code),
                    None => Ended::Signalled(status.signal().unwrap_or(0)),
                });
            }
            let mut fds = [
                PollFd::new(process.as_fd(), PollFlags::POLLIN),
                PollFd::new(self.fd.as_fd(), PollFlags::POLLIN),
            ];
            match poll(&mut fds, PollTimeout::NONE) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
            self.pass_on(child)?;
        }
    }

    /// Sends the command what has come for it.
    fn pass_on(&self, child: &Child) -> std::io::Result<()> {
        while let Some(info) = self.fd.read_signal()? {
            // The terminal sends its signals to the whole foreground group: the command has had them.
            if info.ssi_code == SI_KERNEL {
                continue;
            }
            let signal = i32::try_from(info.ssi_signo)
                .ok()
                .and_then(|number| Signal::try_from(number).ok());
            // It is not waited for yet, so the number is still its own. Should it have ended, nobody misses this.
            let _ = kill(Pid::from_raw(child.id().cast_signed()), signal);
        }
        Ok(())
    }
}
