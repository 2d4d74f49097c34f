//! Time passes and is looked at, and the guard starts again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::learning;
use super::world::{INTERVAL, Running, Scope, World, rules};
use crate::action::{Move, Placement};
use crate::engine::Engine;
use crate::event::{Event, Sample, Usage, Workload};
use crate::holds::Hold;
use crate::id::ProcId;

fn ids(sample: &Sample) -> BTreeSet<ProcId> {
    sample.processes.iter().map(|process| process.id).collect()
}

impl World {
    pub fn tick(&mut self) {
        self.now += INTERVAL;
        self.burn(INTERVAL);
        let on_its_way: Vec<ProcId> = self.moves.iter().map(Move::root).collect();
        for (unit, scope) in &mut self.scopes {
            let busy = self.processes.values().any(|process| {
                (process.busy || process.forks) && process.scope.as_ref() == Some(unit)
            });
            let blocked =
                self.recoveries.contains(unit) || on_its_way.contains(&scope.workload.root);
            let held = self.engine.holds().is_paused() || self.engine.holds().is_pinned(unit);
            let idle = !busy && !blocked && !held && scope.workload.placement == Placement::Routed;
            scope.idle_ticks = if idle { scope.idle_ticks + 1 } else { 0 };
        }
        self.look_at_holds();
        self.sample();
        self.explain_everybody();
        // Ten low samples, 20 s since the first, 20 s after a failure, doubled with each, and one sample
        // without a rate.
        for (unit, scope) in &self.scopes {
            let asked = self.recoveries.contains(unit);
            assert!(
                asked || scope.idle_ticks < 15 + (10 << scope.failures.saturating_sub(1).min(5)),
                "{unit} stays idle and is not brought back"
            );
        }
    }

    pub fn gap(&mut self) {
        let gap = Duration::from_secs(60 + self.dice.below(10_000) as u64);
        self.now += gap;
        self.burn(gap);
        self.scopes
            .values_mut()
            .for_each(|scope| scope.idle_ticks = 0);
        self.sample();
        for process in self.processes.values() {
            if let Some(seen) = self.engine.process(process.id) {
                assert_eq!(
                    (seen.cpu, seen.hot_samples),
                    (None, 0),
                    "no rate over a gap"
                );
            }
        }
        for tracked in self.engine.workloads() {
            assert!(tracked.low_samples == 0 || !self.scopes.contains_key(&tracked.workload.unit));
        }
        self.count("gap");
    }

    pub fn quick_sample(&mut self) {
        let before: Vec<(ProcId, u32)> = self.hot_counters();
        self.now += Duration::from_millis(5);
        self.burn(Duration::from_millis(5));
        self.sample();
        let after: BTreeMap<ProcId, u32> = self.hot_counters().into_iter().collect();
        for (id, hot) in before {
            assert!(
                after.get(&id).is_none_or(|now| *now == hot),
                "a quick sample counts nothing"
            );
        }
    }

    pub fn hot_counters(&self) -> Vec<(ProcId, u32)> {
        let counter =
            |process: &Running| Some((process.id, self.engine.process(process.id)?.hot_samples));
        self.processes.values().filter_map(counter).collect()
    }

    /// Another engine, which is told what lives, as the daemon does after kill -9.
    pub fn restart(&mut self) {
        let settings = Arc::clone(self.engine.settings());
        let holds: Vec<Hold> = self.engine.holds().iter().cloned().collect();
        let last_id = self.engine.holds().last_id();
        self.pruned.restart(Arc::clone(&settings), rules());
        let mut engine = Engine::new(settings, rules());
        learning::hand_down(&self.engine, &mut engine);
        learning::hand_down(&self.engine, self.pruned.engine_mut());
        self.engine = engine;
        self.forget_shadows();
        self.shown.clear();
        self.moves.clear();
        self.recoveries.clear();
        self.execs.clear();
        self.refused.clear();
        self.attempts.clear();
        self.released.clear();
        let known: Vec<Workload> = self
            .scopes
            .values()
            .map(|scope| scope.workload.clone())
            .collect();
        for workload in known {
            self.step(Event::Adopted(workload));
        }
        self.restore_holds(holds, last_id);
        self.scopes
            .values_mut()
            .for_each(|scope| scope.idle_ticks = 0);
        self.count("restart");
    }

    pub fn sample(&mut self) {
        let watched = self
            .processes
            .values()
            .filter(|process| self.is_watched(process));
        let usage = |(unit, scope): (&String, &Scope)| Usage {
            unit: unit.clone(),
            usage_usec: scope.usage,
        };
        let mut sample = Sample {
            processes: watched.map(Running::as_process).collect(),
            ended: Vec::new(),
            workloads: self.scopes.iter().map(usage).collect(),
        };
        sample.ended = self.shown.difference(&ids(&sample)).copied().collect();
        self.shown = ids(&sample);
        let seen = ids(&sample);
        for process in self
            .processes
            .values_mut()
            .filter(|process| seen.contains(&process.id))
        {
            process.sampled_argv = Arc::clone(&process.argv);
        }
        // What is not in a sample is forgotten, and what executed something else is judged again.
        let processes = &self.processes;
        self.refused
            .retain(|id, argv| seen.contains(id) && processes[&id.pid].argv == *argv);
        self.step(Event::Sample(sample.clone()));
        let pruned = self.pruned.last.clone();
        self.consult_shadow(&sample, &pruned);
        for id in &self.shown {
            let known = |engine: &Engine| {
                let seen = engine.process(*id).expect("it was shown");
                (
                    seen.cpu,
                    seen.hot_samples,
                    seen.tree.hot_samples,
                    seen.tree.cpu,
                    seen.known.is_some(),
                    seen.spent,
                    seen.refused,
                )
            };
            assert_eq!(known(self.pruned.engine()), known(&self.engine));
        }
    }
}
