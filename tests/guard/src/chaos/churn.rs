//! Work of every kind that starts, burns, calms down and ends, and what must be true of it at any time.

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;

use crate::harness::dice::Dice;
use crate::harness::guard::{Guard, PROTECTED};
use crate::harness::load::{self, Load, busy, idle, load};
use crate::harness::proc;

/// A kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// One busy process.
    Spin,
    /// One that a rule names.
    KnownHeavy,
    /// A parent with busy children.
    Nest,
    /// The same in a unit that takes processes back.
    DelegatedNest,
    /// A busy root with idle descendants.
    Tree,
    /// A busy root whose children come and go.
    Forker,
    /// Ends by itself, often while it is moved.
    Short,
}

const KINDS: &[Kind] = &[
    Kind::Spin,
    Kind::Spin,
    Kind::KnownHeavy,
    Kind::Nest,
    Kind::DelegatedNest,
    Kind::Tree,
    Kind::Forker,
    Kind::Short,
];

/// Loads that live at the same time.
const AT_ONCE: usize = 8;

/// A load and what it is.
#[derive(Debug)]
struct Work {
    kind: Kind,
    load: Load,
}

/// The loads of the moment.
#[derive(Debug)]
pub struct Churn {
    dice: Dice,
    works: Vec<Work>,
    starts_may_fail: bool,
    /// Loads started so far.
    pub started: u32,
}

impl Churn {
    /// None yet.
    pub fn new(dice: Dice) -> Churn {
        Churn {
            dice,
            works: Vec::new(),
            starts_may_fail: false,
            started: 0,
        }
    }

    /// For a manager that may be away when a load is started.
    pub fn whose_starts_may_fail(mut self) -> Churn {
        self.starts_may_fail = true;
        self
    }

    /// One change: a load comes, goes, wakes or falls asleep.
    pub fn turn(&mut self) -> Result<()> {
        self.collect()?;
        if self.works.len() < AT_ONCE && !self.dice.one_in(4) {
            let kind = self.dice.pick(KINDS);
            match start(kind).with_context(|| format!("starting {kind:?}")) {
                Ok(load) => {
                    self.started += 1;
                    self.works.push(Work { kind, load });
                }
                Err(_) if self.starts_may_fail => {}
                Err(error) => return Err(error),
            }
            return Ok(());
        }
        let index = self.dice.below(self.works.len());
        let Some(work) = self.works.get(index) else {
            return Ok(());
        };
        match self.dice.below(4) {
            // Dropping ends it and all that it started.
            0 => drop(self.works.swap_remove(index)),
            1 => order(work, busy),
            _ => order(work, idle),
        }
        Ok(())
    }

    /// Somebody's wish about one of the loads. It may fail: the guard may be gone before it answers.
    pub fn wish(&mut self, guard: &Guard) {
        let index = self.dice.below(self.works.len());
        let Some(pid) = self.works.get(index).map(|work| work.load.pid) else {
            return;
        };
        let _ = match self.dice.one_in(2) {
            true => guard.route(pid, "heavy").map(|_| ()),
            false => guard.release(pid).map(|_| ()),
        };
    }

    /// Takes out those that ended by themselves. Nobody else may end one.
    fn collect(&mut self) -> Result<()> {
        let mut at = 0;
        while at < self.works.len() {
            let Work { kind, load } = &mut self.works[at];
            match load.exit()? {
                None => at += 1,
                Some(status) => {
                    ensure!(
                        *kind == Kind::Short && status.success(),
                        "{kind:?} in {}, process {}, was ended: {status}",
                        load.unit,
                        load.pid
                    );
                    self.works.swap_remove(at);
                }
            }
        }
        Ok(())
    }

    /// No process was lost: each load that was not ended here lives, with everything that it started.
    pub fn nobody_is_lost(&mut self) -> Result<()> {
        self.collect()?;
        for Work { kind, load } in &self.works {
            for pid in &load.members {
                ensure!(
                    proc::alive(*pid),
                    "{kind:?} in {}: its process {pid} is gone",
                    load.unit
                );
            }
        }
        Ok(())
    }

    /// No route was lost: each process is in a workload that is listed, or home.
    pub fn everybody_is_listed_or_home(&self, guard: &Guard) -> Result<()> {
        let rows = guard.workloads()?;
        for (pid, now) in self.places() {
            let inside = |cgroup: &str| {
                now.strip_prefix(cgroup)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            let listed = rows.iter().any(|row| inside(&row.control_group));
            ensure!(
                listed || is_home(&now),
                "process {pid} is in {now}, which is neither home nor listed: {rows:#?}"
            );
        }
        Ok(())
    }

    /// Nobody is away from home.
    pub fn everybody_is_home(&self) -> Result<()> {
        for (pid, now) in self.places() {
            ensure!(is_home(&now), "process {pid} is in {now}");
        }
        Ok(())
    }

    /// Where everybody is who lives.
    fn places(&self) -> Vec<(u32, String)> {
        let roots = self.works.iter().map(|work| work.load.pid);
        roots
            .flat_map(|root| proc::tree(root).unwrap_or_default())
            .filter(|pid| proc::alive(*pid))
            .filter_map(|pid| Some((pid, proc::cgroup_of(pid).ok()?)))
            .collect()
    }

    /// Ends all of it but the calm: forkers go, the rest falls asleep.
    pub fn calm_down(&mut self) -> Result<()> {
        self.collect()?;
        self.works.retain(|work| work.kind != Kind::Forker);
        for work in &self.works {
            order(work, idle);
        }
        Ok(())
    }

    /// How many live.
    pub fn len(&self) -> usize {
        self.works.len()
    }
}

/// In the watched slice, in its own unit or in one that stands in for it; not half-way.
fn is_home(cgroup: &str) -> bool {
    cgroup.contains(&format!("/{PROTECTED}/")) && !cgroup.contains("-passing-")
}

/// Tells a load and all that it started; one that ends just now need not hear it.
fn order(work: &Work, what: fn(u32) -> Result<()>) {
    if work.kind == Kind::Short {
        return;
    }
    for pid in std::iter::once(&work.load.pid).chain(&work.load.members) {
        let _ = what(*pid);
    }
}

fn start(kind: Kind) -> Result<Load> {
    let load = match kind {
        Kind::Spin => load(&["spin"]).start(),
        Kind::KnownHeavy => load(&["spin", "--idle"]).named("make").start(),
        Kind::Nest => load(&["nest", "2"]).start(),
        Kind::DelegatedNest => load(&["nest", "2"]).property("Delegate=yes").start(),
        Kind::Tree => load(&["tree", "2"]).start(),
        Kind::Forker => load(&["forker"]).start(),
        Kind::Short => load(&["short", "300"]).named("make").start(),
    }?;
    match kind {
        // The root of a forker has no members, and its children end by themselves.
        Kind::Nest | Kind::DelegatedNest => {
            for pid in &load.members {
                busy(*pid)?;
            }
        }
        Kind::Tree => load::signal(load.pid, Signal::SIGUSR1)?,
        _ => {}
    }
    Ok(load)
}
