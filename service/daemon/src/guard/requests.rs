//! From a caller's wish to an event of the engine.

use std::os::fd::AsFd;

use guard_policy::action::Failure;
use guard_policy::event::{Event, Request, Ticket};
use guard_policy::id::ProcId;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::{Guard, Waiting};
use crate::bus::{Answer, Command, Target};

impl Guard {
    pub(super) async fn command(&mut self, command: Command) {
        match command {
            Command::Place { caller, targets, class, placement, options, answer } => {
                let mut processes = Vec::with_capacity(targets.len());
                for target in &targets {
                    match self.identify(target) {
                        Ok(id) if processes.contains(&id) => {}
                        Ok(id) => processes.push(id),
                        Err(failure) => return Waiting::Placed(answer).refuse(failure),
                    }
                }
                let caller_unit = caller.pid.and_then(|pid| self.workload_of(pid));
                let subject = processes.first().copied();
                let lease = options.ends().then(|| self.terms(&caller, &options, subject));
                let ticket = self.ticket(Waiting::Placed(answer));
                self.decide(Event::Request(Request { ticket, processes, class, placement, reason: options.reason, caller_unit, lease }));
            }
            Command::ReleaseProcess { pid, answer } => match self.workload_of(pid) {
                Some(unit) => self.release(unit, answer),
                None => Waiting::Released(answer).refuse(Failure::NoSuchWorkload(format!(
                    "process {pid} is in no workload of the guard; `workload-guard status` lists them"
                ))),
            },
            Command::ReleaseUnit { unit, answer } => self.release(unit, answer),
            Command::Explain { found, answer } => drop(answer.send(Ok(self.explain(found)))),
            Command::Hold(command) => self.hold_command(command),
            Command::SetQuota { caller, percent, reason, answer } => {
                let _ = answer.send(self.quota_asked(caller, percent, &reason).await);
            }
            Command::ResetQuota { caller, answer } => {
                let _ = answer.send(self.quota_reset(caller).await);
            }
            Command::Watch { .. } | Command::Reload { .. } => unreachable!("the loop handles it, since it changes the loop's pace"),
        }
    }

    fn release(&mut self, unit: String, answer: Answer<String>) {
        let ticket = self.ticket(Waiting::Released(answer));
        self.decide(Event::Release { ticket, unit });
    }

    pub(super) fn ticket(&mut self, waiting: Waiting) -> Ticket {
        self.last_ticket += 1;
        let ticket = Ticket(self.last_ticket);
        self.waiting.insert(ticket, waiting);
        ticket
    }

    /// The workload whose scope a process is in.
    pub(super) fn workload_of(&self, pid: u32) -> Option<String> {
        let cgroup = self.proc.cgroup(pid)?;
        self.routes
            .values()
            .map(|record| &record.route)
            .find(|route| {
                cgroup
                    .strip_prefix(route.cgroup.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
            .map(|route| route.unit.clone())
    }

    pub(super) fn identify(&self, target: &Target) -> Result<ProcId, Failure> {
        let gone = |what: &str| Failure::NoSuchProcess(format!("{what} does not exist"));
        match target {
            Target::Pid(pid) => match self.proc.identify(*pid) {
                Ok(Some(id)) => Ok(id),
                _ => Err(gone(&format!("process {pid}"))),
            },
            Target::Fd(fd) => {
                let pid = pid_of(fd)?;
                let id = self.proc.identify(pid).ok().flatten();
                // Alive after its start time was read: the PID cannot have changed hands before.
                match id {
                    Some(id) if alive(fd) => Ok(id),
                    _ => Err(gone("the process of the pidfd")),
                }
            }
        }
    }
}

/// The PID that a pidfd stands for (`Pid:` of its fdinfo, proc_pid_fdinfo(5)).
fn pid_of(fd: &zvariant::OwnedFd) -> Result<u32, Failure> {
    let number = std::os::fd::AsRawFd::as_raw_fd(&fd.as_fd());
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}"))
        .map_err(|error| Failure::NoSuchProcess(format!("a descriptor cannot be read: {error}")))?;
    let pid: i64 = info
        .lines()
        .find_map(|line| line.strip_prefix("Pid:"))
        .and_then(|pid| pid.trim().parse().ok())
        .ok_or_else(|| {
            Failure::NoSuchProcess("a descriptor is not a pidfd (see pidfd_open(2))".into())
        })?;
    match u32::try_from(pid) {
        Ok(pid) if pid > 0 => Ok(pid),
        // -1: it has ended; 0: it is in a PID namespace that we do not see.
        _ => Err(Failure::NoSuchProcess(
            "the process of the pidfd has ended".into(),
        )),
    }
}

/// A pidfd becomes readable when its process ends (pidfd_open(2)).
fn alive(fd: &zvariant::OwnedFd) -> bool {
    let mut fds = [PollFd::new(fd.as_fd(), PollFlags::POLLIN)];
    matches!(poll(&mut fds, PollTimeout::ZERO), Ok(0))
}
