//! New programs that the kernel told of, between two samples.
//!
//! A known-heavy program is routed at once, by the same rules as in a sample. Nothing is counted, and
//! nothing is remembered of a process that no sample has shown: it may be gone before the next one.
//! Whatever is in doubt is left to that sample.

use super::seen::is_excluded;
use super::{Engine, MAX_WORKLOADS};
use crate::action::{Action, Why};
use crate::event::{Exec, Process};
use crate::id::{Moment, ProcId};
use crate::rules::Match;

/// Moves in flight up to which more are asked for at once. Somebody who starts known-heavy programs
/// faster than systemd moves them starts short ones: most have ended before the next sample.
pub(super) const MAX_HASTY: usize = 16;

impl Engine {
    /// Whether a program is routed by its name, as far as that alone tells: whether its ancestors are
    /// worth a look.
    pub fn is_candidate(&self, argv: &[Box<str>]) -> bool {
        self.known(argv).is_some()
    }

    pub(super) fn executed(&mut self, exec: &Exec, now: Moment) -> Vec<Action> {
        self.note_roots_of(&exec.line);
        match self.chosen(exec, now) {
            Some((root, why)) => vec![self.route(root, why, now)],
            None => Vec::new(),
        }
    }

    /// A command that a person placed becomes another program: what it starts from now on is judged by
    /// that one.
    fn note_roots_of(&mut self, line: &[Process]) {
        for tracked in self.workloads.values_mut() {
            let root = tracked.workload.root;
            if let Some(process) = line.iter().find(|process| process.id == root) {
                tracked.root_known = self.rules.matches(&process.argv).is_some();
            }
        }
    }

    fn chosen(&self, exec: &Exec, now: Moment) -> Option<(ProcId, (String, Why))> {
        let spared = self.spared();
        if self.holds.is_paused() || spared.hears(exec) {
            return None;
        }
        // Who comes back is known at the end.
        let returning = !self.recovering.is_empty();
        if returning || self.moving.len() >= MAX_HASTY || self.load() >= MAX_WORKLOADS {
            return None;
        }
        let line = || exec.line.iter().map(|process| process.id);
        // An ancestor on its way takes it along; it may be there already, and so outside of what is watched.
        if line()
            .chain(exec.elsewhere.iter().copied())
            .any(|id| self.is_busy(id))
        {
            return None;
        }
        let is_back = |id| {
            let returned = self.returned.get(&id);
            returned.is_some_and(|returned| returned.until > now)
        };
        if line().any(is_back) {
            return None;
        }
        let process = exec.line.first()?;
        // A move of one of them takes the process along.
        let carriers = || {
            exec.line
                .iter()
                .filter(|other| other.cgroup == process.cgroup)
        };
        let astray =
            |other: &Process| self.is_root(other.id) && !self.keeps(&other.cgroup, other.id);
        if carriers().any(astray) {
            return None;
        }
        carriers()
            .filter(|other| !spared.carries(other.id))
            .filter_map(|other| Some((other.id, self.wanted_by_name(other, now)?)))
            .next_back()
    }

    /// Why a process is routed, and into which class, if its name is enough.
    fn wanted_by_name(&self, process: &Process, now: Moment) -> Option<(String, Why)> {
        let known = self.known(&process.argv)?;
        let seen = self
            .process(process.id)
            .filter(|seen| seen.runs(&process.argv));
        let held = seen.as_ref().is_some_and(|seen| seen.refused || seen.spent);
        let cooling = self
            .cooldowns
            .get(&process.id)
            .is_some_and(|until| *until > now);
        if held || cooling || self.is_root(process.id) || self.keeps(&process.cgroup, process.id) {
            return None;
        }
        let why = Why::KnownHeavy {
            rule: known.rule,
            cpu: seen.and_then(|seen| seen.cpu),
        };
        Some((known.class, why))
    }

    /// The rule that routes a program, if one does.
    fn known(&self, argv: &[Box<str>]) -> Option<Match> {
        self.rules
            .matches(argv)
            .filter(|known| self.takes_known(known))
            .filter(|_| !is_excluded(argv, &self.settings.routing.exclude_patterns))
    }

    fn is_root(&self, id: ProcId) -> bool {
        self.workloads
            .values()
            .any(|tracked| tracked.workload.root == id)
    }
}
