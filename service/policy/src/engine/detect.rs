//! Which watched processes are routed.

use std::collections::{HashMap, HashSet};

use super::seen::{Program, Seen};
use super::{Engine, MAX_WORKLOADS};
use crate::action::{Action, Move, Placement, Why};
use crate::event::Process;
use crate::id::{Moment, ProcId};

/// Where sustained load goes.
const HEAVY: &str = "heavy";
/// Not a place for detection: who is protected is the person's word.
const PROTECTED: &str = "protected";
/// The longest line of ancestors that is followed. A sample is no snapshot: with PIDs that were used
/// again in between it can even hold a circle.
const MAX_ANCESTORS: usize = 1024;

/// The processes of a sample with their parents.
struct Family<'a> {
    processes: &'a [Process],
    by_pid: HashMap<u32, usize>,
}

impl<'a> Family<'a> {
    fn new(processes: &'a [Process]) -> Self {
        let by_pid = processes
            .iter()
            .enumerate()
            .map(|(at, process)| (process.id.pid, at))
            .collect();
        Family { processes, by_pid }
    }

    /// The parent, its parent, and so on, as far as they are watched.
    fn ancestors(&self, at: usize) -> impl Iterator<Item = usize> {
        let parent = |at: &usize| {
            let process = &self.processes[*at];
            self.by_pid
                .get(&process.ppid)
                .copied()
                .filter(|parent| self.processes[*parent].id != process.id)
        };
        std::iter::successors(parent(&at), parent).take(MAX_ANCESTORS)
    }

    /// Of those, the ones in the same control group: a move of one takes the process along.
    fn carriers(&self, at: usize) -> impl Iterator<Item = usize> {
        self.ancestors(at)
            .filter(move |other| self.processes[*other].cgroup == self.processes[at].cgroup)
    }
}

impl Engine {
    /// Counts, and routes what is known to be heavy or has been hot for long enough.
    pub(super) fn detect(&mut self, processes: &[Process], now: Moment) -> Vec<Action> {
        let new = self.observe(processes, now);
        let wanted: Vec<usize> = (0..processes.len())
            .filter(|at| self.is_wanted(&processes[*at]))
            .collect();
        if wanted.is_empty() && !self.may_have_returned(&new) {
            return Vec::new();
        }
        let family = Family::new(processes);
        self.mark_returned(&family, &new);
        self.note_placed_roots();
        let roots: HashSet<ProcId> = self
            .workloads
            .values()
            .map(|tracked| tracked.workload.root)
            .collect();
        let trees = self.tree_load(&family, &wanted);
        let mut chosen: HashMap<usize, (String, Why)> = HashMap::new();
        for at in wanted {
            let process = &processes[at];
            let free = !roots.contains(&process.id)
                && !self.is_busy(process.id)
                && !self.is_settled(process);
            if let Some(why) = self
                .reason(process, trees.get(&at).copied())
                .filter(|_| free)
            {
                chosen.insert(at, why);
            }
        }
        let carried = |at: &usize| {
            family.carriers(*at).any(|other| {
                let id = processes[other].id;
                // A root that is not where its workload is: the sample is older than the move.
                chosen.contains_key(&other)
                    || self.is_busy(id)
                    || roots.contains(&id) && !self.is_settled(&processes[other])
            })
        };
        let mut topmost: Vec<usize> = chosen.keys().copied().filter(|at| !carried(at)).collect();
        topmost.sort_by_key(|at| processes[*at].id);
        topmost.truncate(MAX_WORKLOADS.saturating_sub(self.load()));
        let orders = topmost
            .into_iter()
            .filter_map(|at| Some((processes[at].id, chosen.remove(&at)?)));
        orders
            .collect::<Vec<_>>()
            .into_iter()
            .map(|(root, why)| self.route(root, why, now))
            .collect()
    }

    /// Takes the sample in, and forgets who is not in it. Answers whose program is new.
    fn observe(&mut self, processes: &[Process], now: Moment) -> Vec<usize> {
        let mut new = Vec::new();
        for (at, process) in processes.iter().enumerate() {
            let mut first = false;
            let seen = self.processes.entry(process.id).or_insert_with(|| {
                first = true;
                Seen::new(process)
            });
            seen.round = self.round;
            seen.update(process, now, &self.settings);
            if seen.judge(process, first, &self.settings, &self.rules, self.generation)
                == Program::New
            {
                new.push(at);
            }
        }
        self.processes.retain(|_, seen| seen.round == self.round);
        new
    }

    /// Whether a process could be routed as far as it alone tells. Cheap, and false for nearly all.
    fn is_wanted(&self, process: &Process) -> bool {
        self.processes.get(&process.id).is_some_and(|seen| {
            (seen.known.is_some() || seen.hot_samples >= self.settings.routing.sustained_samples)
                && !seen.excluded
                && !seen.refused
                && !self.cooldowns.contains_key(&process.id)
        })
    }

    fn may_have_returned(&self, new: &[usize]) -> bool {
        let none =
            self.returned.is_empty() && self.recovering.is_empty() && self.just_returned.is_empty();
        !none && !new.is_empty()
    }

    /// A tree that came back calm is not routed again by its name alone, or an idle build daemon would
    /// go to and fro for ever. Where its root has ended, its other processes cannot be told from
    /// strangers: everything that is new in that one sample then needs a hot sample too.
    fn mark_returned(&mut self, family: &Family<'_>, new: &[usize]) {
        let on_the_way: Vec<ProcId> = self.recovering.values().copied().collect();
        let came_back = |id: &ProcId| self.returned.contains_key(id) || on_the_way.contains(id);
        let lost = self
            .just_returned
            .iter()
            .chain(&on_the_way)
            .any(|root| !self.processes.contains_key(root));
        let of_tree = |at: &usize| {
            let line = std::iter::once(*at).chain(family.ancestors(*at));
            lost || line
                .map(|other| family.processes[other].id)
                .any(|id| came_back(&id))
        };
        let marked: Vec<ProcId> = new
            .iter()
            .filter(|at| of_tree(at))
            .map(|at| family.processes[*at].id)
            .collect();
        for id in marked {
            if let Some(seen) = self.processes.get_mut(&id) {
                seen.spent = true;
            }
        }
    }

    fn note_placed_roots(&mut self) {
        for tracked in self.workloads.values_mut() {
            if let Some(seen) = self.processes.get(&tracked.workload.root) {
                tracked.root_known = seen.known.is_some();
            }
        }
    }

    /// CPU of the tree of each wanted process that its name alone does not route.
    fn tree_load(&self, family: &Family<'_>, wanted: &[usize]) -> HashMap<usize, f64> {
        let spent = |at: &&usize| {
            self.processes
                .get(&family.processes[**at].id)
                .is_some_and(|seen| seen.spent)
        };
        let mut trees: HashMap<usize, f64> =
            wanted.iter().filter(spent).map(|at| (*at, 0.0)).collect();
        if trees.is_empty() {
            return trees;
        }
        for (at, process) in family.processes.iter().enumerate() {
            let cpu = self
                .processes
                .get(&process.id)
                .and_then(|seen| seen.cpu)
                .filter(|cpu| *cpu > 0.0);
            let Some(cpu) = cpu else { continue };
            for carrier in std::iter::once(at).chain(family.carriers(at)) {
                if let Some(sum) = trees.get_mut(&carrier) {
                    *sum += cpu;
                }
            }
        }
        trees
    }

    /// Why a process is routed, and into which class. `tree` is the CPU of its tree if that decides.
    fn reason(&self, process: &Process, tree: Option<f64>) -> Option<(String, Why)> {
        let seen = self.processes.get(&process.id)?;
        let threshold = self.settings.routing.cpu_threshold;
        let known = seen.known.as_ref().filter(|known| {
            known.class != PROTECTED && self.settings.class(&known.class).is_some()
        });
        if let Some(known) = known.filter(|_| tree.is_none_or(|cpu| cpu >= threshold)) {
            let why = Why::KnownHeavy {
                rule: known.rule.clone(),
                cpu: tree.or(seen.cpu),
            };
            return Some((known.class.clone(), why));
        }
        let cpu = seen
            .cpu
            .filter(|_| seen.hot_samples >= self.settings.routing.sustained_samples)?;
        let why = Why::SustainedCpu {
            cpu,
            threshold,
            hot_samples: seen.hot_samples,
        };
        Some((HEAVY.to_owned(), why))
    }

    /// Whether a process is in a workload that keeps it: a routed one, or one that a person placed, of
    /// which the named processes stay, and everything when the command itself is known to be heavy.
    fn is_settled(&self, process: &Process) -> bool {
        let unit = process
            .cgroup
            .rsplit('/')
            .find_map(|part| self.workloads.get(part));
        unit.is_some_and(|tracked| match tracked.workload.placement {
            Placement::Routed => true,
            Placement::Placed => {
                tracked.root_known
                    || tracked.workload.root == process.id
                    || tracked.named.contains(&process.id)
            }
        })
    }

    fn route(&mut self, root: ProcId, (class, why): (String, Why), now: Moment) -> Action {
        self.cool_down(root, now);
        self.moving.insert(root, vec![root]);
        Action::Move(Move {
            processes: vec![root],
            class,
            placement: Placement::Routed,
            why,
            ticket: None,
        })
    }
}
