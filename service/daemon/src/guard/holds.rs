//! Holds: from callers to the engine, to the disk and back, and the process table's word on their ends.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use guard_policy::action::{Failure, Move};
use guard_policy::event::Event;
use guard_policy::holds::{Deadline, Hold, HoldEvent, Kind, Owner, Terms, Wish};
use guard_policy::id::ProcId;
use guard_policy::printable::command_line;
use workload_guard_dbus::types::{HoldKind, HoldRow, Reason};

use super::{Guard, Waiting};
use crate::bus::{Answer, Caller, HoldCommand, HoldTarget, Options};
use crate::clock;

/// The longest line of ancestors that is followed; a process table that changes meanwhile can hold a circle.
const MAX_ANCESTORS: usize = 256;

/// An answer to a caller.
pub enum HoldAnswer {
    /// The cookie of a hold.
    Held(Answer<u64>, u64),
    /// How many holds have ended.
    Unheld(Answer<u32>, u32),
}

impl Guard {
    /// Answers callers, now that `State` says what they will read and the next guard knows of it, too.
    pub(super) fn answer_about_holds(&mut self) {
        for answer in std::mem::take(&mut self.hold_answers) {
            // A caller that has left waits for nothing.
            match answer {
                HoldAnswer::Held(answer, id) => drop(answer.send(Ok(id))),
                HoldAnswer::Unheld(answer, ended) => drop(answer.send(Ok(ended))),
            }
        }
    }

    /// A caller wants something held, or lets go.
    pub(super) fn hold_command(&mut self, command: HoldCommand) {
        match command {
            HoldCommand::Take {
                caller,
                target,
                options,
                answer,
            } => {
                let (wish, process) = match self.wish(&target) {
                    Ok(wish) => wish,
                    Err(failure) => return Waiting::Held(answer).refuse(failure),
                };
                let caller_unit = caller.pid.and_then(|pid| self.workload_of(pid));
                let terms = self.terms(&caller, &options, process);
                let ticket = self.ticket(Waiting::Held(answer));
                self.decide(Event::Hold(HoldEvent::Wanted {
                    ticket,
                    wish: wish.clone(),
                    terms,
                    caller_unit,
                }));
                if let Wish::Exempt(root) = wish
                    && self.engine.holds().exempt_roots().any(|held| held == root)
                {
                    self.bring_back_tree(root, |_| true);
                }
            }
            HoldCommand::LetGo { id, answer } => {
                let ticket = self.ticket(Waiting::Unheld(answer));
                self.decide(Event::Hold(HoldEvent::LetGo { ticket, id }));
            }
            HoldCommand::Resume { answer } => {
                let ticket = self.ticket(Waiting::Unheld(answer));
                self.decide(Event::Hold(HoldEvent::Resume { ticket }));
            }
        }
    }

    fn wish(&self, target: &HoldTarget) -> Result<(Wish, Option<ProcId>), Failure> {
        Ok(match target {
            HoldTarget::Everything => (Wish::Pause, None),
            HoldTarget::Exempt(target) => {
                let root = self.identify(target)?;
                self.is_own(root)?;
                self.is_a_part(root)?;
                (Wish::Exempt(root), Some(root))
            }
            HoldTarget::Pin(target) => {
                let process = self.identify(target)?;
                let unit = self.workload_of(process.pid);
                (Wish::Pin { process, unit }, Some(process))
            }
        })
    }

    /// What is another user's is out of reach anyway: a hold on it would promise what nobody keeps.
    fn is_own(&self, process: ProcId) -> Result<(), Failure> {
        let own = nix::unistd::getuid().as_raw();
        let uids = self.proc.uids(process.pid).ok().flatten();
        match uids.map(|uids| uids.other_than(own)) {
            Some(None) => Ok(()),
            Some(Some(uid)) => Err(Failure::OutOfReach(format!(
                "process {process} runs as user {uid}: the guard never moves it anyway"
            ))),
            None => Err(Failure::NoSuchProcess(format!(
                "process {process} does not exist"
            ))),
        }
    }

    /// The user manager is the ancestor of all that the guard could route, and of the guard: exempting it would switch
    /// the guard off for good, without a word in `State`.
    fn is_a_part(&self, root: ProcId) -> Result<(), Failure> {
        if self.ancestors(std::process::id()).contains(&root) {
            return Err(Failure::OutOfReach(format!(
                "process {root} is an ancestor of the guard itself: exempting it would exempt the whole session; a pause \
                 does that (workload-guard pause)"
            )));
        }
        Ok(())
    }

    /// The terms of a hold that begins now.
    pub(super) fn terms(
        &self,
        caller: &Caller,
        options: &Options,
        subject: Option<ProcId>,
    ) -> Terms {
        let command = |pid: u32| match self.proc.argv(pid) {
            Ok(Some(argv)) => command_line(&argv),
            _ => String::new(),
        };
        let since = clock::wall_usec();
        Terms {
            owner: Owner {
                bus_name: caller.name.clone().filter(|_| options.lease),
                pid: caller.pid.unwrap_or(0),
                command: caller.pid.map(command).unwrap_or_default(),
            },
            reason: options.reason.clone(),
            subject: subject
                .map(|process| command(process.pid))
                .unwrap_or_default(),
            since,
            until: options.duration.map(|span| Deadline {
                boot: clock::since_boot() + span,
                wall: since.saturating_add(span.as_micros() as u64),
            }),
        }
    }

    /// Takes over what an earlier guard saved, once it is known which workloads there are.
    pub(super) fn restore_holds(&mut self) {
        let saved = self.hold_file.load();
        self.engine.skip_hold_ids(saved.last_id);
        for hold in saved.holds {
            let is_there = match &hold.kind {
                Kind::Pin { unit, .. } | Kind::Lease { unit } => {
                    self.engine.workload(unit).is_some()
                }
                Kind::Pause | Kind::Exempt { .. } => true,
            };
            if is_there {
                self.decide(Event::Hold(HoldEvent::Restored(hold)));
            }
        }
        self.look_at_holds();
        let roots: Vec<ProcId> = self.engine.holds().exempt_roots().collect();
        for root in roots {
            // The person's own `Route` came later than the hold.
            self.bring_back_tree(root, |reason| reason != Reason::Requested);
        }
    }

    /// Ends holds whose time is over or whose process has ended.
    pub(super) fn look_at_holds(&mut self) {
        self.end_due_holds();
        let ended: Vec<ProcId> = self
            .engine
            .holds()
            .processes()
            .filter(|process| !self.proc.is_alive(*process).unwrap_or(true))
            .collect();
        for process in ended {
            self.decide(Event::Hold(HoldEvent::TreeEnded(process)));
        }
    }

    /// Ends holds whose time is over.
    pub(super) fn end_due_holds(&mut self) {
        let now = clock::since_boot();
        if self.engine.holds().next_end().is_some_and(|end| end <= now) {
            self.decide(Event::Hold(HoldEvent::Elapsed(now)));
        }
    }

    /// When the next hold ends by itself. While the machine is suspended this clock stands still: the next
    /// sample sees what is over then.
    pub(super) fn next_hold_end(&self) -> Option<Instant> {
        let left = self
            .engine
            .holds()
            .next_end()?
            .saturating_sub(clock::since_boot());
        Some(Instant::now() + left + Duration::from_millis(1))
    }

    /// Has workloads brought back that hold a process of an exempt tree, if their reason is such a one.
    fn bring_back_tree(&mut self, root: ProcId, which: impl Fn(Reason) -> bool) {
        if self.routes.is_empty() {
            return;
        }
        let mut tree = vec![root];
        match self.proc.all_descendants(root) {
            Ok(descendants) => tree.extend(descendants),
            Err(error) => log::warn!("the descendants of process {root} cannot be read: {error}"),
        }
        let units: BTreeSet<String> = tree
            .iter()
            .filter_map(|process| self.workload_of(process.pid))
            .filter(|unit| {
                self.routes
                    .get(unit)
                    .is_some_and(|record| which(record.reason))
            })
            .collect();
        for unit in units {
            self.decide(Event::Hold(HoldEvent::Carried { unit }));
        }
    }

    /// A move by detection has ended in this scope: whatever is exempt goes back.
    pub(super) fn bring_back_exempt(&mut self, unit: &str) {
        let taken = self
            .engine
            .holds()
            .exempt_roots()
            .any(|root| self.workload_of(root.pid).as_deref() == Some(unit));
        if taken {
            let unit = unit.to_owned();
            self.decide(Event::Hold(HoldEvent::Carried { unit }));
        }
    }

    /// Whether a move is held back now that its turn has come.
    pub(super) fn is_withheld(&self, order: &Move) -> bool {
        // Most of the time there is no hold, and nobody's ancestors need to be read.
        !self.engine.holds().is_empty()
            && self
                .engine
                .is_withheld(order, &self.ancestors(order.root().pid))
    }

    fn ancestors(&self, pid: u32) -> Vec<ProcId> {
        let mut line = Vec::new();
        let mut next = self.proc.stat(pid).ok().flatten().map(|stat| stat.ppid);
        while let Some(pid) = next.filter(|pid| *pid > 1 && line.len() < MAX_ANCESTORS) {
            let Some(stat) = self.proc.stat(pid).ok().flatten() else {
                break;
            };
            line.push(ProcId {
                pid,
                start: stat.start,
            });
            next = Some(stat.ppid);
        }
        line
    }

    /// Follows the clients that holds are bound to, and those that a lease waits for.
    pub(super) async fn follow_owners(&mut self) {
        let names: BTreeSet<&str> = self.engine.bound_names().collect();
        if let Err(error) = self.owners.follow(&names).await {
            log::warn!("the bus does not tell who leaves it: {error}; it is asked again");
        }
    }

    /// What the bus shows.
    pub(super) fn hold_rows(&self) -> Vec<HoldRow> {
        self.engine.holds().iter().map(row).collect()
    }

    /// Why routing is paused, a sentence for each pause; none when it is not.
    pub(super) fn pause_reasons(&self) -> Vec<String> {
        self.engine
            .holds()
            .iter()
            .filter(|hold| hold.kind == Kind::Pause)
            .map(|hold| pause_words(&hold.terms))
            .collect()
    }
}

fn pause_words(terms: &Terms) -> String {
    let told = terms.told();
    format!("routing is paused{told}; `workload-guard resume` ends it")
}

fn row(hold: &Hold) -> HoldRow {
    let (kind, pid, unit) = match &hold.kind {
        Kind::Pause => (HoldKind::Pause, 0, ""),
        Kind::Exempt { root } => (HoldKind::Exempt, root.pid, ""),
        Kind::Pin { process, unit } => (HoldKind::Pin, process.pid, unit.as_str()),
        Kind::Lease { unit } => (HoldKind::Lease, 0, unit.as_str()),
    };
    let terms = &hold.terms;
    HoldRow {
        id: hold.id,
        kind: kind.to_string(),
        pid,
        subject: terms.subject.clone(),
        unit: unit.to_owned(),
        owner: terms.owner.bus_name.clone().unwrap_or_default(),
        owner_pid: terms.owner.pid,
        owner_command: terms.owner.command.clone(),
        reason: terms.reason.clone(),
        since: terms.since,
        until: terms.until.map_or(0, |until| until.wall),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_says_who_why_and_how_long() {
        let mut terms = Terms {
            owner: Owner {
                bus_name: None,
                pid: 77,
                command: "workload-guard pause".to_owned(),
            },
            reason: "a meeting".to_owned(),
            subject: String::new(),
            since: 1_000_000,
            until: Some(Deadline {
                boot: Duration::ZERO,
                wall: 1_801_000_000,
            }),
        };
        assert_eq!(
            pause_words(&terms),
            "routing is paused for 30 min by workload-guard pause (process 77): a meeting; \
             `workload-guard resume` ends it"
        );
        terms.owner.command.clear();
        terms.reason.clear();
        terms.until = None;
        assert_eq!(
            pause_words(&terms),
            "routing is paused by process 77; `workload-guard resume` ends it"
        );
    }
}
