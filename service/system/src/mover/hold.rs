//! A process that is about to be moved, held so that it cannot become another one.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use guard_policy::action::Failure;
use guard_policy::id::ProcId;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::proc::{ProcFs, Stat};

use super::call::unreadable;

/// A living process, by its PID, its start time and a pidfd.
#[derive(Debug)]
pub struct Held {
    /// Who it is.
    pub id: ProcId,
    pidfd: Option<OwnedFd>,
}

impl Held {
    /// Takes hold of `id`. Refuses PID 0, which means the caller to systemd: the guard would move
    /// itself; and thread ids, which systemd 252 takes for their process.
    pub fn take(proc: &ProcFs, id: ProcId) -> Result<Held, Failure> {
        if id.pid == 0 {
            return Err(Failure::NoSuchProcess("0 is no process ID".to_owned()));
        }
        let pid = i32::try_from(id.pid).ok().and_then(Pid::from_raw);
        let pid =
            pid.ok_or_else(|| Failure::NoSuchProcess(format!("{} is no process ID", id.pid)))?;
        let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => Some(pidfd),
            Err(Errno::SRCH) => return Err(gone(id)),
            // Threads: EINVAL, since Linux 6.16 ENOENT.
            Err(Errno::INVAL | Errno::NOENT) => {
                return Err(Failure::NoSuchProcess(format!(
                    "{} is a thread; name the process that it belongs to",
                    id.pid
                )));
            }
            // Every supported kernel has pidfds (Linux 5.3); a seccomp filter may hide them.
            Err(Errno::NOSYS | Errno::PERM) => None,
            Err(error) => return Err(unreadable(io::Error::from(error))),
        };
        // After the pidfd was opened: whoever has this start time now is whom it holds.
        match proc.identify(id.pid).map_err(unreadable)? {
            Some(found) if found == id => Ok(Held { id, pidfd }),
            _ => Err(gone(id)),
        }
    }

    /// Its pidfd, for `PIDFDs`.
    pub fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        use std::os::fd::AsFd;
        self.pidfd.as_ref().map(AsFd::as_fd)
    }
}

/// Whether a process has ended or is about to. The kernel moves no process that exits, silently
/// (`PF_EXITING`, linux/sched.h, in field 9 of `/proc/PID/stat`).
pub fn is_leaving(stat: &Stat) -> bool {
    const PF_EXITING: u64 = 0x4;
    stat.is_dead() || stat.flags & PF_EXITING != 0
}

/// Whether systemd moves no process of this name: it reads one line of `/proc/PID/stat` to tell kernel
/// threads, and a line break in the name, which any process may give itself (PR_SET_NAME), ends that line
/// early (measured on 257: InvalidArgs). One such process has a whole call refused.
pub fn is_illegible(stat: &Stat) -> bool {
    stat.comm().contains('\n')
}

/// The process ended, or its PID is another's by now.
pub fn gone(id: ProcId) -> Failure {
    Failure::NoSuchProcess(format!("process {} has ended", id.pid))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::stat_line;

    #[test]
    fn a_name_with_a_line_break_is_told_from_others() {
        let illegible = |name: &str| {
            let line = stat_line(42, name, 7, (0, 0), 5, 4096);
            is_illegible(&Stat::parse(line.as_bytes()).expect("a stat line"))
        };
        assert!(illegible("x\ny") && illegible("\n"));
        assert!(!illegible("make") && !illegible("a) S 1 (b"));
    }
}
