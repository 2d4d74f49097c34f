//! A second engine, which is shown only processes of control groups that used CPU, as the sampler does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::action::Action;
use crate::engine::Engine;
use crate::event::{Event, Sample};
use crate::id::{Moment, ProcId};
use crate::rules::RuleSet;
use crate::settings::Settings;

pub struct Pruned {
    engine: Engine,
    /// Groups that used CPU since the last sample.
    active: BTreeSet<Arc<str>>,
    /// Where each process was when its group was last listed.
    listed: BTreeMap<ProcId, Arc<str>>,
    /// Something was moved: everything is read at the next sample.
    all: bool,
    /// What the last sample was reduced to.
    pub last: Sample,
}

impl Pruned {
    pub fn new(settings: Arc<Settings>, rules: Arc<RuleSet>) -> Pruned {
        Pruned {
            engine: Engine::new(settings, rules),
            active: BTreeSet::new(),
            listed: BTreeMap::new(),
            all: true,
            last: Sample::default(),
        }
    }

    pub fn engine_mut(&mut self) -> &mut Engine {
        &mut self.engine
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    pub fn skip_hold_ids(&mut self, last: u64) {
        self.engine.skip_hold_ids(last);
    }

    pub fn restart(&mut self, settings: Arc<Settings>, rules: Arc<RuleSet>) {
        *self = Pruned::new(settings, rules);
    }

    /// A process of the group used CPU.
    pub fn used(&mut self, cgroup: &Arc<str>) {
        self.active.insert(Arc::clone(cgroup));
    }

    pub fn step(&mut self, event: &Event, now: Moment) -> Vec<Action> {
        self.all |= matches!(event, Event::Moved { .. } | Event::Recovered { .. });
        let event = match event {
            Event::Sample(sample) => {
                self.last = self.prune(sample);
                Event::Sample(self.last.clone())
            }
            other => other.clone(),
        };
        self.engine.step(event, now)
    }

    fn prune(&mut self, whole: &Sample) -> Sample {
        let all = std::mem::take(&mut self.all);
        let active = std::mem::take(&mut self.active);
        let is_read = |cgroup: &Arc<str>| all || active.contains(cgroup);
        let mut sample = Sample {
            workloads: whole.workloads.clone(),
            ..Sample::default()
        };
        for process in &whole.processes {
            // A process that left a group which is read is looked for.
            let was_in = self.listed.get(&process.id);
            let left = was_in.is_some_and(|group| *group != process.cgroup && is_read(group));
            if is_read(&process.cgroup) || left {
                self.listed.insert(process.id, Arc::clone(&process.cgroup));
                sample.processes.push(process.clone());
            }
        }
        let there: BTreeSet<ProcId> = whole.processes.iter().map(|process| process.id).collect();
        self.listed.retain(|id, group| {
            let stays = there.contains(id) || !is_read(group);
            if !stays {
                sample.ended.push(*id);
            }
            stays
        });
        sample
    }
}
